package ops

import (
	"bytes"
	"crypto/rand"
	_ "embed"
	"fmt"
	"html/template"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/walrelay/walrelay/event"
)

//go:embed page.html
var pageText string

// runbook is where anchors lead.
const runbook = "https://github.com/walrelay/walrelay/blob/main/docs/runbook.md#"

var pageTemplate = template.Must(template.New("page").Funcs(template.FuncMap{
	"bytes": bytesText, "count": countText, "duration": durationText, "tone": tone, "percent": percent,
	"perSecond": func(v float64) string { return countText(int64(v + .5)) },
	"runbook":   func(a event.Anchor) string { return runbook + string(a) },
	"clock":     func(t time.Time) string { return t.Format("15:04:05") },
	"fine":      func(t *time.Time) string { return t.Format("15:04:05.000") },
	"behind":    behind, "distance": Rung.distance, "worst": worst, "meaning": meaning, "gearText": gearText, "upTo": upTo,
}).Parse(pageText))

// page renders the status for people. The script in it fetches the same page
// again and swaps its main part, so that there is one renderer, and everything
// that is shown went through html/template's escaping.
func (o *Ops) page(w http.ResponseWriter, _ *http.Request) {
	nonce := rand.Text()
	var b bytes.Buffer
	err := pageTemplate.Execute(&b, struct {
		Status
		Nonce string
	}{o.Status(), nonce})
	if err != nil {
		http.Error(w, "the status page cannot be rendered", http.StatusInternalServerError)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", fmt.Sprintf(
		"default-src 'none'; style-src 'nonce-%s'; script-src 'nonce-%s'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
		nonce, nonce))
	_, _ = w.Write(b.Bytes()) // the reader may be gone; nobody else is told
}

// tone is the colour class of a state.
func tone(s SourceStatus) string {
	switch {
	case s.State == event.StateHalted || s.State == event.StateDisconnected || s.State == event.StateStopped:
		return "bad"
	case !s.Ready:
		return "wait"
	case s.State == event.StateStandby:
		return "idle"
	}
	return "good"
}

// worst is how far the last rung is behind.
func worst(ladder []Rung) int64 {
	var w int64
	for _, r := range ladder {
		w = max(w, r.distance())
	}
	return w
}

// distance is the length of a rung's bar, in a unit that all rungs of the ladder share.
func (r Rung) distance() int64 {
	if r.BehindSeconds != nil {
		return int64(*r.BehindSeconds)
	}
	return r.BehindBytes
}

// behind is how far a rung is behind the head.
func behind(r Rung) string {
	if r.BehindSeconds != nil {
		return durationText(*r.BehindSeconds)
	}
	return bytesText(r.BehindBytes)
}

// percent is the length of a bar.
func percent(part, whole int64) string {
	if whole <= 0 {
		return "0"
	}
	return strconv.FormatFloat(100*float64(part)/float64(whole), 'f', 1, 64)
}

// meaning explains a rung.
func meaning(name string) string {
	switch name {
	case "server":
		return "end of the server's log"
	case "sent":
		return "sent to us"
	case "received":
		return "read by us"
	case "published":
		return "acknowledged by Kafka"
	case "confirmed":
		return "told to the server"
	case "restart":
		return "where the server keeps WAL from"
	}
	return ""
}

// gearText says how the source is read.
func gearText(gear string) string {
	switch gear {
	case "log":
		return "reads the log"
	case "poll":
		return "polls the table"
	case "catch_up":
		return "catches up from the table"
	case "deciding":
		return "looks how to read"
	}
	return gear
}

// upTo is a count that stopped at a limit.
func upTo(n, limit int64) string {
	if limit > 0 && n >= limit {
		return "≥ " + countText(n)
	}
	return countText(n)
}

// countText groups digits by thin spaces.
func countText(n int64) string {
	s := strconv.FormatInt(n, 10)
	var b strings.Builder
	for i, c := range s {
		if i > 0 && s[i-1] != '-' && (len(s)-i)%3 == 0 {
			b.WriteString("\u202f")
		}
		b.WriteRune(c)
	}
	return b.String()
}

// durationText prints seconds for people.
func durationText(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second))
	switch {
	case d == 0:
		return "0 s"
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%d min %02d s", int(d.Minutes()), int(d.Seconds())%60)
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h %02d min", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%d days", int(d.Hours()/24))
}
