package config

import (
	"strings"
	"testing"
)

// Field case C10: names with capitals, dots, quotes and hyphens worked at the
// first start and failed at the next. Sources: ClickHouse/ClickHouse#107423,
// lukashes/outboxx#91, opensearch-project/data-prepper#7077, olucasandrade/kaptanto#56.
// Ideal: a dot or quote inside a name separates nothing; an impossible slot name
// is refused with the allowed alphabet.

func TestRelationIsReadAsSQLReadsIt(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Relation{
		"outbox":                       {"public", "outbox", false},
		"public.outbox":                {"public", "outbox", false},
		"Public.OutBox":                {"public", "outbox", true},
		`"Sales-EU"."Outbox.Order"`:    {"Sales-EU", "Outbox.Order", false},
		`sales."Outbox"`:               {"sales", "Outbox", false},
		`"a""b"."c"`:                   {`a"b`, "c", false},
		`"select".""""`:                {"select", `"`, false},
		`" "." "`:                      {" ", " ", false},
		"_x$1.täble":                   {"_x$1", "täble", false},
		"ÄX":                           {"public", "Äx", true},
		strings.Repeat("a", 63) + ".b": {strings.Repeat("a", 63), "b", false},
	} {
		got, err := ParseRelation(text)
		if err != nil || got != want {
			t.Errorf("%s is read as %+v (%v), want %+v", text, got, err, want)
		}
		again, err := ParseRelation(got.String())
		if err != nil || again.Schema != got.Schema || again.Name != got.Name || again.Folded {
			t.Errorf("%s prints as %s, read as %+v (%v)", text, got, again, err)
		}
	}
	for text, why := range map[string]string{
		"":                            "missing",
		".":                           "missing",
		"a.":                          "missing",
		".a":                          "missing",
		"a.b.c":                       "3 parts",
		"my-table":                    "double quotes",
		"a b":                         "double quotes",
		"1a":                          "double quotes",
		"$a":                          "double quotes",
		`"a`:                          "not closed",
		`"a"b`:                        "want a dot",
		`a"b"`:                        "want a dot",
		`""`:                          "empty name",
		`"a" . "b"`:                   "want a dot",
		strings.Repeat("a", 64):       "Postgres keeps 63",
		`"a` + "\x00" + `"`:           "NUL",
		"public.outbox; drop table x": "double quotes",
	} {
		if got, err := ParseRelation(text); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%q: %+v, error %v does not say %q", text, got, err, why)
		}
	}
}

func TestNamesKeepTheirCapitalsDotsAndQuotes(t *testing.T) {
	t.Parallel()
	c := mustLoad(t, world{}, `name: Shop.EU
sources:
  Orders-1:
    postgres:
      url: host=localhost
      tables: ['"Sales-EU"."Outbox.Order"', "\"a\"\"b\""]
      publication: MyPub
      bookkeeping: '"Wal Relay"'
  plain:
    postgres: {url: host=other, tables: [Outbox], publication: '"My""Pub"', slot: my_slot_1, bookkeeping: none}
kafka: {brokers: [localhost:9092]}
`)
	a, b := c.Sources[0].Value.Postgres, c.Sources[1].Value.Postgres
	if a.Slot != "walrelay_shop_eu_orders_1" || a.Publication != "MyPub" || a.Bookkeeping != "Wal Relay" {
		t.Errorf("slot %s, publication %s, bookkeeping %s", a.Slot, a.Publication, a.Bookkeeping)
	}
	if a.Tables[0] != (Relation{"Sales-EU", "Outbox.Order", false}) || a.Tables[1] != (Relation{"public", `a"b`, false}) {
		t.Errorf("tables %+v", a.Tables)
	}
	if b.Slot != "my_slot_1" || b.Publication != `My"Pub` || b.Bookkeeping != "none" {
		t.Errorf("slot %s, publication %s, bookkeeping %s", b.Slot, b.Publication, b.Bookkeeping)
	}
}

func TestFoldedNameIsWarnedOf(t *testing.T) {
	t.Parallel()
	_, warnings, err := world{}.load(strings.Replace(minimal, "public.outbox", "public.Outbox", 1))
	if err != nil || len(warnings) != 1 || !strings.Contains(warnings[0].What, `"public"."outbox"`) ||
		warnings[0].Name != "sources.orders.postgres.tables[0]" {
		t.Errorf("warnings %v, error %v", warnings, err)
	}
}

func TestImpossibleSlotNameIsRefusedWithTheAlphabet(t *testing.T) {
	t.Parallel()
	for _, slot := range []string{"MySlot", "my-slot", "my.slot", "släb", "my slot", strings.Repeat("a", 64)} {
		found := problemsOf(t, world{}, strings.Replace(minimal, "tables:", "slot: "+slot+"\n      tables:", 1))
		wantProblem(t, found, "sources.orders.postgres.slot", 6, "a-z", "digits", "_", "63")
	}
}

func TestDefaultSlotNamesNeverCollideInSilence(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 50)
	a, b := defaultName(long, "orders-eu-central"), defaultName(long, "orders-eu-west")
	if a == b || len(a) != 63 || len(b) != 63 || strings.Trim(a+b, "abcdefghijklmnopqrstuvwxyz0123456789_") != "" {
		t.Errorf("%s and %s", a, b)
	}
	text := minimal + "name: shop\n"
	text = strings.Replace(minimal, "kafka:", "  ORDERS:\n    postgres: {url: host=other, tables: [outbox]}\nkafka:", 1)
	wantProblem(t, problemsOf(t, world{}, text), "sources.ORDERS.postgres.slot", 0, "is the slot of source orders too")
	text = strings.Replace(minimal, "kafka:", "  b:\n    postgres: {url: host=other, tables: [outbox], slot: s}\nkafka:", 1)
	text = strings.Replace(text, "tables: [public", "slot: s\n      tables: [public", 1)
	mustLoad(t, world{}, text) // another server, and meant
}

func TestSourceWithoutAnythingToReadIsRefused(t *testing.T) {
	t.Parallel()
	text := strings.Replace(minimal, "      tables: [public.outbox]\n", "", 1)
	wantProblem(t, problemsOf(t, world{}, text), "sources.orders.postgres", 4, "nothing to read")
	c := mustLoad(t, world{}, strings.Replace(minimal, "tables: [public.outbox]", "messages: [outbox]", 1))
	if got := c.Sources[0].Value.Postgres.Messages.Prefixes; len(got) != 1 || got[0] != "outbox" {
		t.Errorf("prefixes %q", got)
	}
}

func TestBothFormsOfMessagesAndSchemaMeanTheSame(t *testing.T) {
	t.Parallel()
	short := mustLoad(t, world{}, strings.Replace(minimal, "tables: [public.outbox]",
		"messages: [outbox, other]\n      messages_allow_nontransactional: true\n    schema: basic", 1))
	long := mustLoad(t, world{}, strings.Replace(minimal, "tables: [public.outbox]",
		"messages: {prefixes: [outbox, other], allow_nontransactional: true}\n    schema: {preset: basic}", 1))
	if a, b := printed(t, short), printed(t, long); a != b || !strings.Contains(a, "allow_nontransactional: true") {
		t.Errorf("%s\n%s", a, b)
	}
	twice := strings.Replace(minimal, "tables: [public.outbox]",
		"messages: {prefixes: [outbox], allow_nontransactional: true}\n      messages_allow_nontransactional: false", 1)
	wantProblem(t, problemsOf(t, world{}, twice), "sources.orders.postgres.messages_allow_nontransactional", 7, "keep one")
}

func TestSizesAreReadAndPrinted(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Size{
		"16MiB": 16 << 20, "1MB": 1e6, "65536": 65536, "2 GiB": 2 << 30, "7KB": 7000, "7kB": 7000, "7KiB": 7 << 10, "3GB": 3e9, "9B": 9, "0": 0,
	} {
		got, err := ParseSize(text)
		if err != nil || got != want {
			t.Errorf("%s is %d (%v), want %d", text, got, err, want)
		}
		if again, err := ParseSize(got.String()); err != nil || again != got {
			t.Errorf("%d prints as %s, read as %d (%v)", got, got, again, err)
		}
	}
	for _, text := range []string{"", "MiB", "1.5MiB", "1 TB", "1mib", "0x10", "9223372036854775807KiB", "99999999999GiB", "-"} {
		if got, err := ParseSize(text); err == nil {
			t.Errorf("%q is taken for %d", text, got)
		}
	}
}

func TestAcceptedRowFilterIsWarnedOf(t *testing.T) {
	t.Parallel()
	w := world{}
	_, warnings, err := w.load(`
name: shop
sources:
  orders:
    postgres: {url: "postgres://a@localhost/b", tables: [public.outbox], allow_row_filter: true}
kafka: {brokers: [localhost:9092]}
`)
	if err != nil {
		t.Fatal(err)
	}
	if len(warnings) != 1 || warnings[0].Name != "sources.orders.postgres.allow_row_filter" {
		t.Errorf("warnings %v, want one about the row filter", warnings)
	}
}
