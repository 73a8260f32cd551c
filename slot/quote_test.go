package slot

import (
	"testing"

	"pgregory.net/rapid"
)

func TestQuotedNameOfPublicationIsOneIdentifierInOneString(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"mypub":     `"mypub"`,
		"MyPub":     `"MyPub"`,
		`My"Pub`:    `"My""Pub"`,
		`O'Brien`:   `"O''Brien"`,
		"a,b":       `"a,b"`,
		"select":    `"select"`,
		`back\sl"'`: `"back\sl""''"`,
	} {
		if got := QuotePublicationName(name); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
}

func TestTableNameReadsAsWritten(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Table{
		"outbox":                       {"public", "outbox"},
		"public.outbox":                {"public", "outbox"},
		"Sales.Outbox":                 {"Sales", "Outbox"},
		`"Sales-EU"."Outbox.Order"`:    {"Sales-EU", "Outbox.Order"},
		`"Sales-EU".outbox`:            {"Sales-EU", "outbox"},
		`"a""b"."c""d"`:                {`a"b`, `c"d`},
		`"order"`:                      {"public", "order"},
		`"Sales-EU"."Outbox "" Order"`: {"Sales-EU", `Outbox " Order`},
	} {
		got, err := ParseTable(text)
		if err != nil || got != want {
			t.Errorf("%s: got %#v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", ".", "a.", ".a", "a.b.c", `"a`, `"a"b`, `a"b`, `""`, `a."`} {
		if got, err := ParseTable(text); err == nil {
			t.Errorf("%q was read as %#v", text, got)
		}
	}
}

func TestTableNameSurvivesItsTextForm(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`[a-zA-Z0-9_."' $-]{1,12}`)
		want := Table{Schema: name.Draw(t, "schema"), Name: name.Draw(t, "name")}
		got, err := ParseTable(want.String())
		if err != nil || got != want {
			t.Fatalf("%#v prints as %s and reads as %#v, %v", want, want, got, err)
		}
	})
}

func TestTableNameIsQuotedForPeopleOnlyWhereNeeded(t *testing.T) {
	t.Parallel()
	for want, table := range map[string]Table{
		"public.outbox":             {"public", "outbox"},
		`public."order"`:            {"public", "order"},
		`"Sales-EU"."Outbox.Order"`: {"Sales-EU", "Outbox.Order"},
		`public."2026"`:             {"public", "2026"},
	} {
		if got := table.String(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
