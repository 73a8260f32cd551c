package ops_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/ops"
)

func get(t *testing.T, h http.Handler, path string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
	return w
}

func TestReadyzNamesReasonRemedyAndAnchor(t *testing.T) {
	t.Parallel()
	o := ops.New(ops.Options{Name: "shop"})
	state, cond := event.StateHalted, event.Condition{What: "slot a is gone", Remedy: "catch up", Anchor: "gap"}
	o.Source("orders", ops.SourceProbes{State: func() (event.State, event.Condition) { return state, cond }})
	w := get(t, o.Handler(), "/readyz")
	if w.Code != http.StatusServiceUnavailable {
		t.Errorf("status %d, want 503", w.Code)
	}
	// The shape is a contract: probes and scripts read it.
	var got struct {
		Ready   bool
		Sources []struct {
			Name, State string
			Reasons     []struct{ What, Remedy, Anchor string }
		}
		Broker []any
	}
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if got.Ready || got.Broker == nil || len(got.Sources) != 1 || got.Sources[0].Name != "orders" || got.Sources[0].State != "halted" ||
		len(got.Sources[0].Reasons) != 1 || got.Sources[0].Reasons[0].Remedy != "catch up" || got.Sources[0].Reasons[0].Anchor != "gap" {
		t.Errorf("answer %s", w.Body)
	}
	state, cond = event.StateStreaming, event.Condition{}
	if w := get(t, o.Handler(), "/readyz"); w.Code != http.StatusOK {
		t.Errorf("status %d after recovery, want 200", w.Code)
	}
}

func TestHealthzAnswers503OnlyForAStuckLoop(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_700_000_000, 0)
	o := ops.New(ops.Options{Clock: func() time.Time { return now }})
	o.Loop("committer", time.Minute)
	if w := get(t, o.Handler(), "/healthz"); w.Code != http.StatusOK {
		t.Errorf("status %d, want 200: %s", w.Code, w.Body)
	}
	now = now.Add(2 * time.Minute)
	if w := get(t, o.Handler(), "/healthz"); w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), "committer") {
		t.Errorf("status %d, want 503 with the loop's name: %s", w.Code, w.Body)
	}
}

func TestThePageEscapesEverything(t *testing.T) {
	t.Parallel()
	const evil = `"><script>alert(1)</script>`
	l, _ := newLog(t, ops.LogOptions{})
	o := ops.New(ops.Options{Name: evil, Version: evil, Log: l})
	cond := event.Condition{What: evil, Remedy: evil, Anchor: evil}
	s := o.Source(evil, ops.SourceProbes{
		State:    func() (event.State, event.Condition) { return event.State(evil), cond },
		Progress: func() event.Progress { return event.Progress{Server: 5, Received: 3} },
	})
	s.SlotReport(event.SlotReport{Slot: evil, WALStatus: evil, Invalidation: evil})
	s.Refused(evil, evil)
	s.Ignored(evil, 1)
	o.Broker().Condition(evil, cond)
	o.Broker().Published(evil, 1, 1)
	o.Warn(cond)
	o.Loop(evil, time.Minute)
	l.Logger.Error(evil)
	w := get(t, o.Handler(), "/")
	body := w.Body.String()
	if w.Code != http.StatusOK || strings.Contains(body, "<script>alert") {
		t.Errorf("status %d; a script from data is in the page", w.Code)
	}
	if n := strings.Count(body, "alert(1)"); n < 10 {
		t.Errorf("the texts appear %d times: the page does not show them", n)
	}
	if strings.Contains(body, "ZgotmplZ") {
		t.Error("the template refused a value")
	}
	csp := w.Header().Get("Content-Security-Policy")
	if !strings.Contains(csp, "default-src 'none'") || strings.Contains(csp, "unsafe") {
		t.Errorf("policy %q", csp)
	}
	for _, outside := range []string{"src=", "@import", "url(", "<link"} {
		if strings.Contains(body, outside) {
			t.Errorf("the page loads something: %s", outside)
		}
	}
}

func TestStatusIsReadBackAsItsOwnType(t *testing.T) {
	t.Parallel()
	o := ops.New(ops.Options{Name: "shop", Version: "1"})
	s := o.Source("orders", ops.SourceProbes{
		State:    streaming().State,
		Progress: func() event.Progress { return event.Progress{Server: 0x16_00000010, Received: 0x16_00000008} },
	})
	s.SlotReport(event.SlotReport{Slot: "a", WALStatus: "reserved", SafeBytes: -1})
	o.Broker().Published("t", 3, 9)
	w := get(t, o.Handler(), "/api/status")
	dec := json.NewDecoder(w.Body)
	dec.DisallowUnknownFields()
	var st ops.Status
	if err := dec.Decode(&st); err != nil {
		t.Fatal(err)
	}
	if st.Name != "shop" || !st.Ready || !st.Live || st.Sources[0].Ladder[0].LSN != "16/10" || st.Sources[0].Slot.Slot != "a" ||
		st.Sources[0].Name != "orders" || st.Broker.Topics[0] != (ops.TopicStatus{Topic: "t", Records: 3, Bytes: 9}) {
		t.Errorf("read back: %+v", st)
	}
}

func TestMetricsAreServedAsText(t *testing.T) {
	t.Parallel()
	o := ops.New(ops.Options{Version: "1.2.3"})
	o.Source("orders", streaming())
	h := o.Handler()
	body := get(t, h, "/metrics").Body.String()
	for _, want := range []string{
		`walrelay_source_state{source="orders",state="streaming"} 1`, `walrelay_source_state{source="orders",state="halted"} 0`,
		"walrelay_ready 1", `version="1.2.3"`, "go_goroutines", "process_cpu_seconds_total",
	} {
		if !strings.Contains(body, want) {
			t.Errorf("no %s in the metrics", want)
		}
	}
}

func TestOnlyReadingIsPossible(t *testing.T) {
	t.Parallel()
	h := ops.New(ops.Options{}).Handler()
	for path, want := range map[string]int{"/": 405, "/readyz": 405, "/nothing": 404} {
		w := httptest.NewRecorder()
		method := "POST"
		if want == 404 {
			method = "GET"
		}
		h.ServeHTTP(w, httptest.NewRequest(method, path, nil))
		if w.Code != want {
			t.Errorf("%s %s: %d, want %d", method, path, w.Code, want)
		}
	}
}

func TestABusyPortHaltsAndNamesTheSetting(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for _, listen := range []string{taken.Addr().String(), "127.0.0.1", "192.0.2.1:80"} {
		err := ops.New(ops.Options{}).Serve(t.Context(), listen)
		e, ok := errors.AsType[*event.Error](err)
		if !ok || e.Class != event.Halt || e.Remedy == "" || e.Anchor != ops.AnchorListen || !strings.Contains(e.What, "http.listen") {
			t.Errorf("%s: %v, want a halt that names http.listen", listen, err)
		}
	}
}

func TestTheServerEndsCleanlyWithItsContext(t *testing.T) {
	t.Parallel()
	for range 20 {
		ctx, cancel := context.WithCancel(t.Context())
		s, err := ops.New(ops.Options{}).Listen(ctx, "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() { done <- s.Run(ctx) }()
		resp, err := http.Get("http://" + s.Addr().String() + "/healthz")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, resp.Body); err != nil {
			t.Error(err)
		}
		resp.Body.Close()
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
		if c, err := net.Dial("tcp", s.Addr().String()); err == nil {
			c.Close()
			t.Error("still listening after the end")
		}
	}
}
