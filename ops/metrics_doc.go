package ops

import (
	"fmt"
	"strings"
)

// MetricsMarkdown is docs/metrics.md.
func MetricsMarkdown() string {
	var b strings.Builder
	b.WriteString(`# Metrics

Generated from ops/metrics.go; do not edit (` + "`go test ./ops -run MetricsPage -update`" + ` writes it).

All names start with ` + "`walrelay_`" + ` and end with their unit. ` + fmt.Sprintf(`At most %d topics and %d reasons get a label of
their own, in the order in which they are met; the rest is counted as `+"`%s`"+`, so the number of series does not depend
on the data. Counters start at zero with the process. The registry also carries the metrics of the Go runtime (`+"`go_*`"+`), of
the process (`+"`process_*`"+`) and of the scrapes (`+"`promhttp_*`"+`).`, maxTopics, maxReasons, restLabel) + `

| name | type | labels | meaning |
|---|---|---|---|
`)
	for _, m := range Metrics() {
		labels := "–"
		if len(m.Labels) > 0 {
			labels = "`" + strings.Join(m.Labels, "` `") + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", m.Name, m.Kind, labels, m.Help)
	}
	bounds := make([]string, len(latencyBuckets))
	for i, v := range latencyBuckets {
		bounds[i] = fmt.Sprint(v)
	}
	coarse := make([]string, len(statementBuckets))
	for i, v := range statementBuckets {
		coarse[i] = fmt.Sprint(v)
	}
	fmt.Fprintf(&b, "\nBuckets of the histograms, in seconds: %s; of `%s` and `%s` only %s.\n", strings.Join(bounds, ", "),
		metricClaimTime.Name, metricMarkTime.Name, strings.Join(coarse, ", "))
	return b.String()
}
