package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"text/tabwriter"
	"time"
)

// result is one line of the table, and one object of the JSON list. A figure
// that a case does not have is null. The percentiles are those of the time from
// commit to consumer, or of a claim.
type result struct {
	Name        string   `json:"name"`
	RowsPerS    *float64 `json:"rows_per_s"`
	Ratio       *float64 `json:"ratio"` // to the client, the bare loop or the first line of the same case
	CPUPerEvent *float64 `json:"cpu_us_per_event"`
	PeakRSS     *float64 `json:"peak_rss_mib"`
	P50         *float64 `json:"p50_ms"`
	P99         *float64 `json:"p99_ms"`

	walsender, busy *float64 // the server process: µs per row, share of a core
}

// sum makes the line of several drains; base are those of the client.
func sum(name string, runs, base []drained) result {
	over := func(runs []drained, f func(drained) float64) *float64 {
		var v []float64
		for _, d := range runs {
			v = append(v, f(d))
		}
		return new(median(v))
	}
	speed := func(d drained) float64 { return float64(d.rows) / d.took.Seconds() }
	r := result{
		Name: name, RowsPerS: over(runs, speed),
		CPUPerEvent: over(runs, func(d drained) float64 { return micros(d.cpu, d.rows) }),
		PeakRSS:     over(runs, func(d drained) float64 { return float64(d.peak) / (1 << 20) }),
	}
	if runs[0].walsender > 0 {
		r.walsender = over(runs, func(d drained) float64 { return micros(d.walsender, d.rows) })
		r.busy = over(runs, func(d drained) float64 { return d.walsender.Seconds() / d.took.Seconds() })
	}
	r.Ratio = new(*r.RowsPerS / *over(base, speed))
	return r
}

func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	n := len(v)
	return (v[(n-1)/2] + v[n/2]) / 2
}

// quantile of sorted times, in milliseconds.
func quantile(sorted []time.Duration, q float64) *float64 {
	return new(float64(sorted[int(q*float64(len(sorted)-1))].Microseconds()) / 1000)
}

func printTable(w io.Writer, results []result) {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	_, _ = fmt.Fprintln(tw, "\trows/s\tratio\tCPU µs/event\tserver µs/event\tserver busy\tpeak MiB\tp50 ms\tp99 ms\t")
	for _, r := range results {
		_, _ = fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t\n", r.Name, cell(r.RowsPerS, "%.0f"), cell(r.Ratio, "%.2f"), cell(r.CPUPerEvent, "%.2f"),
			cell(r.walsender, "%.2f"), cell(r.busy, "%.2f"), cell(r.PeakRSS, "%.0f"), cell(r.P50, "%.2f"), cell(r.P99, "%.2f"))
	}
	_ = tw.Flush()
}

func cell(v *float64, format string) string {
	if v == nil {
		return "–"
	}
	return fmt.Sprintf(format, *v)
}

func writeJSON(name string, results []result) error {
	b, err := json.MarshalIndent(results, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(name, append(b, '\n'), 0o644)
}
