package config

import (
	"reflect"
	"slices"
	"strings"
	"testing"
)

// Field case C72: a misspelt option was accepted and its default used. Sources:
// blazing-Gael/dcms#35, oteldb/oteldb#1285, SolaceProducts/solace-broker-mcp#49.
// Ideal: refused with full path and nearest name; an unknown variable with our
// prefix is warned of.

// misspell swaps the last two letters that differ.
func misspell(s string) string {
	for i := len(s) - 1; i > 0; i-- {
		if s[i] != s[i-1] {
			return s[:i-1] + s[i:i+1] + s[i-1:i] + s[i+1:]
		}
	}
	return s + s
}

func TestMisspeltOptionIsRefusedWithTheNearestName(t *testing.T) {
	t.Parallel()
	for _, o := range Options() {
		t.Run(o.Path, func(t *testing.T) {
			t.Parallel()
			path := example(o.Path)
			key := path[strings.LastIndex(path, ".")+1:]
			if strings.HasSuffix(o.Path, "<header>") {
				return // any name will do
			}
			wrong := strings.TrimSuffix(path, key) + misspell(key)
			text, line := nest(wrong, "1")
			found := problemsOf(t, world{}, text)
			wantProblem(t, found, wrong, line, "did you mean "+key+"?")
			if o.Variable == "" {
				return
			}
			flagged := problemsOf(t, world{flags: []Override{{"--flag", wrong, "1"}}}, minimal)
			wantProblem(t, flagged, wrong, 0, "did you mean "+path+"?")
		})
	}
}

func TestMisspeltVariableIsWarnedOfWithTheNearestName(t *testing.T) {
	t.Parallel()
	for _, o := range Options() {
		if o.Variable == "" {
			continue
		}
		wrong := misspell(o.Variable)
		_, warnings, err := world{env: map[string]string{wrong: "S3cr3t"}}.load(minimal)
		if err != nil {
			t.Errorf("%s: %v", wrong, err)
		}
		if len(warnings) != 1 || warnings[0].Name != wrong || !strings.Contains(warnings[0].What, "did you mean "+o.Variable+"?") {
			t.Errorf("%s: warnings %v", wrong, warnings)
		}
		if strings.Contains(warnings[0].String(), "S3cr3t") {
			t.Errorf("the value of a variable is in the warning %v", warnings[0])
		}
	}
}

func TestVariablesThatAreNotMeantForUsAreNotWarnedOf(t *testing.T) {
	t.Parallel()
	env := map[string]string{
		"WALRELAY_TEST_POSTGRES": "x", "WALRELAY_CI": "1", "WALRELAY_CONFIG": "x", "OTHER": "x",
		"WALRELAY_PORT": "tcp://10.0.0.1:80", "WALRELAY_PORT_80_TCP": "x", "WALRELAY_SERVICE_HOST": "x",
	}
	if _, warnings, err := (world{env: env}).load(minimal); err != nil || len(warnings) != 0 {
		t.Errorf("warnings %v, error %v", warnings, err)
	}
}

func TestWrongTypeIsRefusedWithPathAndLine(t *testing.T) {
	t.Parallel()
	for _, o := range Options() {
		path := example(o.Path)
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			wrong := []string{"{a: 1}", "[[1]]", "", "null", `""`, "{}", "[]"}
			switch {
			case o.section():
				wrong = []string{"[a]", "", "null", "12"}
				if o.kind == reflect.TypeFor[Schema]() || o.kind == reflect.TypeFor[Messages]() {
					wrong = []string{"", "null"} // the short form takes other types
				}
			case o.kind.Kind() == reflect.Slice && !strings.Contains(o.Path, "<header>") && !strings.Contains(o.Path, "<field>"):
				wrong = append(wrong, "one", "12", "[a, a]", `[""]`, "[null]")
			case o.kind == durationType:
				wrong = append(wrong, "1000", "10", "soon", "true", "1.5")
			case o.kind.Kind() == reflect.Bool:
				wrong = append(wrong, "yes", "1", "maybe")
			case o.kind.Kind() == reflect.Int, o.kind == reflect.TypeFor[Size]():
				wrong = append(wrong, "many", "1.5", "true", "1XB", "99999999999999999999")
			case o.kind.Kind() == reflect.String:
				wrong = append(wrong, "true")
			}
			for _, value := range wrong {
				text, line := nest(path, value)
				found := problemsOf(t, world{}, text)
				if !slices.ContainsFunc(found, func(p Problem) bool {
					return strings.HasPrefix(p.Path, path) && p.Origin.Line == line && len(p.What) > 10
				}) {
					t.Errorf("%s: %s was not refused at line %d:\n%v", path, value, line, found)
				}
			}
		})
	}
}

func TestDurationWithoutUnitIsToldHowToWriteIt(t *testing.T) {
	t.Parallel()
	found := problemsOf(t, world{}, minimal+"grace: 1000\n")
	wantProblem(t, found, "grace", 9, `"1000"`, "1000s", "1000ms")
}

func TestZeroAndNegativeAreRefusedWhereTheyMeanNothing(t *testing.T) {
	t.Parallel()
	for _, o := range Options() {
		zero, negative := "0s", "-1s"
		switch {
		case o.kind == durationType:
		case o.kind == reflect.TypeFor[Size](), o.kind.Kind() == reflect.Int:
			zero, negative = "0", "-1"
		default:
			continue
		}
		path := example(o.Path)
		values := []string{zero, negative}
		if o.Path == "kafka.linger" || strings.HasSuffix(o.Path, ".keep_published") || o.Path == "order.clock_error" {
			// 0s sends at once, keeps for ever, and is an exact clock
			values = values[1:]
		}
		for _, value := range values {
			text, line := nest(path, value)
			wantProblem(t, problemsOf(t, world{}, text), path, line, "want")
		}
	}
	mustLoad(t, world{}, strings.Replace(minimal, "kafka:\n", "kafka:\n  linger: 0s\n", 1))
}

func TestUnknownWordIsRefusedWithTheNearest(t *testing.T) {
	t.Parallel()
	for _, o := range Options() {
		if len(o.Words) == 0 {
			continue
		}
		path := example(o.Path)
		for _, word := range o.Words {
			if len(word) < 3 {
				continue
			}
			text, line := nest(path, word+"x")
			wantProblem(t, problemsOf(t, world{}, text), path, line, "did you mean "+word+"?")
		}
	}
}

func TestKeyThatStandsTwiceIsRefused(t *testing.T) {
	t.Parallel()
	for _, o := range Options() {
		path := example(o.Path)
		keys := strings.Split(path, ".")
		text, line := nest(path, "1")
		text += strings.Repeat("  ", len(keys)-1) + keys[len(keys)-1] + ": 1\n"
		wantProblem(t, problemsOf(t, world{}, text), path, line+1, "stands twice", "line "+string(rune('0'+line)))
	}
}

func TestAllProblemsAreReportedTogether(t *testing.T) {
	t.Parallel()
	found := problemsOf(t, world{}, `name: shop
sources:
  orders:
    postgres:
      url: postgres://relay@localhost/shop
      tabels: [public.outbox]
      status_interval: 1000
      capture: pull
    mongo: {url: x}
kafka:
  brokers: [localhost]
  acks: 1
http: {listen: nowhere}
grace: ${GRACE}
`)
	wantProblem(t, found, "sources.orders.postgres.tabels", 6, "did you mean tables?")
	wantProblem(t, found, "sources.orders.postgres.status_interval", 7)
	wantProblem(t, found, "sources.orders.postgres.capture", 8, "did you mean poll?")
	wantProblem(t, found, "sources.orders.mongo", 9, "stands beside postgres")
	wantProblem(t, found, "kafka.brokers[0]", 11, "host:port")
	wantProblem(t, found, "kafka.acks", 12, "acks=all")
	wantProblem(t, found, "http.listen", 13, "host:port")
	wantProblem(t, found, "grace", 14, "GRACE", "is not set")
	if len(found) != 8 {
		t.Errorf("%d problems, want 8:\n%v", len(found), found)
	}
	if !slices.IsSortedFunc(found, func(a, b Problem) int { return a.Origin.Line - b.Origin.Line }) {
		t.Errorf("not in the order of the file:\n%v", found)
	}
}

func TestOptionOfAnotherSectionIsPointedTo(t *testing.T) {
	t.Parallel()
	text, line := nest("sources.orders.tables", "[public.outbox]")
	wantProblem(t, problemsOf(t, world{}, text), "sources.orders.tables", line, "sources.<source>.postgres.tables")
}
