package ops_test

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"

	"github.com/walrelay/walrelay/ops"
)

var update = flag.Bool("update", false, "write docs/metrics.md anew")

func TestMetricsPageIsThatOfTheCode(t *testing.T) {
	t.Parallel()
	page := filepath.Join("..", "docs", "metrics.md")
	want := ops.MetricsMarkdown()
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Error("docs/metrics.md is not what ops/metrics.go says: run go test ./ops -run MetricsPage -update")
	}
}

func TestEveryMetricHasItsUnitInTheName(t *testing.T) {
	t.Parallel()
	for _, m := range ops.Metrics() {
		if m.Kind == ops.Counter != strings.HasSuffix(m.Name, "_total") {
			t.Errorf("%s is a %s: _total belongs to counters", m.Name, m.Kind)
		}
		if m.Kind == ops.Histogram && !strings.HasSuffix(m.Name, "_seconds") {
			t.Errorf("%s has no unit in its name", m.Name)
		}
		if m.Help == "" {
			t.Errorf("%s has no help", m.Name)
		}
	}
}

// Everything that a dashboard or an alert asks for exists, with the labels it uses.
func TestDeployedQueriesNameOnlyMetricsThatExist(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	for _, m := range ops.Metrics() {
		known[m.Name] = true
		if m.Kind == ops.Histogram {
			known[m.Name+"_bucket"], known[m.Name+"_sum"], known[m.Name+"_count"] = true, true, true
		}
	}
	name := regexp.MustCompile(`\bwalrelay_[a-z0-9_]+`)
	for _, file := range []string{"alerts.yml", "grafana/dashboard.json"} {
		text, err := os.ReadFile(filepath.Join("..", "deploy", file))
		if err != nil {
			t.Fatal(err)
		}
		found := name.FindAllString(string(text), -1)
		if len(found) == 0 {
			t.Errorf("%s names no metric", file)
		}
		for _, n := range found {
			if !known[n] {
				t.Errorf("%s asks for %s, which does not exist", file, n)
			}
		}
	}
}

// scrape gathers all series and counts those of walrelay.
func scrape(t *testing.T, o *ops.Ops) (map[string]*dto.MetricFamily, int) {
	t.Helper()
	families, err := o.Registry().Gather()
	if err != nil {
		t.Fatalf("scrape: %v", err)
	}
	byName, series := map[string]*dto.MetricFamily{}, 0
	for _, f := range families {
		byName[f.GetName()] = f
		for _, m := range f.GetMetric() {
			if h := m.GetHistogram(); h != nil {
				series += len(h.GetBucket()) + 3
				continue
			}
			series++
		}
	}
	return byName, series
}

// value finds the series whose label values, in any order, contain all of labels.
func value(t *testing.T, families map[string]*dto.MetricFamily, name string, labels ...string) (float64, bool) {
	t.Helper()
next:
	for _, m := range families[name].GetMetric() {
		for _, want := range labels {
			found := false
			for _, l := range m.GetLabel() {
				found = found || l.GetValue() == want
			}
			if !found {
				continue next
			}
		}
		return m.GetGauge().GetValue() + m.GetCounter().GetValue(), true
	}
	return 0, false
}
