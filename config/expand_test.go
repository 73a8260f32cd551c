package config

import (
	"strings"
	"testing"
)

func TestValuesAreExpandedAfterParsing(t *testing.T) {
	t.Parallel()
	w := world{
		env: map[string]string{
			"DB": "postgres://relay:pw@localhost/shop", "EMPTY": "", "LEVEL": "debug", "OFF": "false",
			"EVIL": "x\nsources: {}\n# ${DB}",
		},
		files: map[string]string{"/run/pw": "pa55\n", "/run/two": "a\n\n", "/run/dos": "b\r\n", "/run/empty": "\n"},
	}
	for value, want := range map[string]string{
		"plain":                          "plain",
		"${LEVEL}":                       "debug",
		"a-${LEVEL}-${OFF}":              "a-debug-false",
		"${UNSET:-fallback}":             "fallback",
		"${EMPTY:-fallback}":             "fallback",
		"${LEVEL:-fallback}":             "debug",
		"${UNSET:-}x":                    "x",
		"${file:/run/pw}":                "pa55",
		"${file:/run/two}":               "a\n",
		"${file:/run/dos}":               "b",
		"$${LEVEL}":                      "${LEVEL}",
		"$$${LEVEL}":                     "$${LEVEL}",
		"$LEVEL $ $$ {LEVEL}":            "$LEVEL $ $$ {LEVEL}",
		"${EVIL}":                        w.env["EVIL"],
		"${file:/run/pw}:${UNSET:-a:-b}": "pa55:a:-b",
	} {
		got, _, faults := (&expander{lookup(w.env), w.read}).expand(value)
		if got != want || len(faults) != 0 {
			t.Errorf("%q becomes %q, want %q (%v)", value, got, want, faults)
		}
	}
	for value, why := range map[string]string{
		"${UNSET}":                "UNSET is not set",
		"${EMPTY}":                "EMPTY is empty",
		"${LEVEL":                 "not closed",
		"${}":                     "neither the name",
		"${9}":                    "neither the name",
		"${A B}":                  "neither the name",
		"${file:run/pw}":          "no absolute path",
		"${file:/no}":             "does not exist",
		"${file:/run/empty}":      "is empty",
		"${UNSET}${file:/no}":     "UNSET is not set",
		"${LEVEL}${file:/no}more": "does not exist",
	} {
		_, _, faults := (&expander{lookup(w.env), w.read}).expand(value)
		if len(faults) == 0 || !strings.Contains(strings.Join(faults, "; "), why) {
			t.Errorf("%q: %v does not say %q", value, faults, why)
		}
	}
}

func TestMissingVariableIsRefusedWithPathAndLine(t *testing.T) {
	t.Parallel()
	text := strings.Replace(minimal, "postgres://relay@localhost:5432/shop?sslmode=disable", "${DATABASE_URL}", 1)
	wantProblem(t, problemsOf(t, world{}, text), "sources.orders.postgres.url", 5, "DATABASE_URL is not set", ":-default")
	c := mustLoad(t, world{env: map[string]string{"DATABASE_URL": "host=db user=relay"}}, text)
	if got := c.Sources[0].Value.Postgres.URL.Reveal(); got != "host=db user=relay" {
		t.Errorf("url is %q", got)
	}
}

func TestValueNeverChangesTheStructure(t *testing.T) {
	t.Parallel()
	evil := "[a:1, b:2]\nkafka: {acks: 0}\n- x: &a *a"
	w := world{env: map[string]string{"TOPIC": "{route}", "EVIL": evil, "SWITCH": "false", "WAIT": "3s"}}
	c := mustLoad(t, w, minimal+`routes: {"*": {topic: "${TOPIC}"}}
grace: ${WAIT}
`)
	if got := c.Routes[0].Value.Topic; got != "{route}" {
		t.Errorf("topic is %q", got)
	}
	wantProblem(t, problemsOf(t, w, strings.Replace(minimal, "[localhost:9092]", "${EVIL}", 1)), "kafka.brokers", 8, "is text: want a list")
	wantProblem(t, problemsOf(t, w, strings.Replace(minimal, "[localhost:9092]", `["${EVIL}"]`, 1)), "kafka.brokers[0]", 8, "host:port")
}

func TestAnchorsAndMergeKeysShareOptions(t *testing.T) {
	t.Parallel()
	c := mustLoad(t, world{}, `name: shop
sources:
  a:
    postgres: &base
      url: postgres://relay@localhost/a
      tables: &tables [public.outbox]
      check_interval: 7s
  b:
    postgres:
      <<: *base
      url: postgres://relay@localhost/b
  c:
    postgres: {url: postgres://relay@localhost/c, tables: *tables}
kafka:
  brokers: [localhost:9092]
`)
	a, b := c.Sources[0].Value.Postgres, c.Sources[1].Value.Postgres
	if b.CheckInterval != a.CheckInterval || b.URL == a.URL || len(b.Tables) != 1 || b.Slot != "walrelay_shop_b" {
		t.Errorf("b is %+v", b)
	}
	for text, why := range map[string]string{
		"a: *nowhere": "there is none", "a: &x [*x]": "there is none", "<<: 1": "want a mapping", "a: !!str b": "no meaning here",
		"a: b\n---\nc: d": "second document", "- a": "want a mapping", "[[[[": "not YAML", "a: b\nc: {d: [${X}]}": "needs quotes",
		strings.Repeat("{a: ", 40) + "b" + strings.Repeat("}", 40): "levels deep",
	} {
		if found := problemsOf(t, world{}, text); !strings.Contains(found.Error(), why) {
			t.Errorf("%q: %v does not say %q", text, found, why)
		}
	}
}

func TestAddressInNestedBracketsIsOneValue(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"{brokers: [localhost:9092]}":                     "localhost:9092",
		"{brokers: [localhost:9092, b:9093], linger: 1s}": "localhost:9092 b:9093",
		"{brokers: [ häuser:9092 , 10.0.0.1:9092 ]}":      "häuser:9092 10.0.0.1:9092",
		"{brokers: ['${HOST}:9092', 'c:1']}":              "db:9092 c:1",
		"{brokers:\n    [a:1,\n    b:2]}":                 "a:1 b:2",
	} {
		w := world{env: map[string]string{"HOST": "db"}}
		c, _, err := w.load(strings.Replace(minimal, "kafka:\n  brokers: [localhost:9092]\n", "kafka: "+text+"\n", 1))
		if err != nil || strings.Join(c.Kafka.Brokers, " ") != want {
			t.Errorf("%s: %v", text, err)
		}
	}
	for _, text := range []string{"{brokers: [localhost: 9092]}", "{brokers: [{localhost:9092}]}"} {
		found := problemsOf(t, world{}, strings.Replace(minimal, "kafka:\n  brokers: [localhost:9092]\n", "kafka: "+text+"\n", 1))
		wantProblem(t, found, "kafka.brokers[0]", 7, "is a mapping")
	}
}
