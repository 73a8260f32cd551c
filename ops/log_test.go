package ops_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/ops"
)

func newLog(t *testing.T, opt ops.LogOptions) (*ops.Log, *bytes.Buffer) {
	t.Helper()
	out := &bytes.Buffer{}
	opt.Out = out
	l, err := ops.NewLogger(opt)
	if err != nil {
		t.Fatal(err)
	}
	return l, out
}

// Case C78: ten minutes without a broker, a thousand errors a second.
func TestTenMinutesOfErrorsLogLessThanAMegabyte(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, out := newLog(t, ops.LogOptions{})
		log := l.Logger.With(zap.String("source", "orders"))
		long := errors.New("UNKNOWN_TOPIC_OR_PARTITION " + strings.Repeat("broker said so; ", 400))
		const each = 600_000
		for i := range each {
			log.Error("record not acknowledged", zap.Int("attempt", i), zap.Error(long))
			time.Sleep(time.Millisecond)
		}
		time.Sleep(20 * time.Second)
		synctest.Wait() // for the last sum
		if out.Len() >= 1_000_000 {
			t.Errorf("%d bytes of log, want less than a megabyte", out.Len())
		}
		// Nothing is hidden: what was written and what was summed up is everything.
		written, summed := 0, 0
		for raw := range bytes.Lines(out.Bytes()) {
			var line struct {
				Message, Line string
				Lines         int
			}
			if err := json.Unmarshal(raw, &line); err != nil {
				t.Fatalf("a line is not JSON: %v", err)
			}
			switch line.Message {
			case "record not acknowledged":
				written++
			case "equal lines were dropped":
				summed += line.Lines
			}
		}
		if written+summed != each || int64(summed) != l.Dropped() {
			t.Errorf("%d written + %d summed up (counter %d), want %d together", written, summed, l.Dropped(), each)
		}
		if n := len(l.Recent.Lines()); n != 100 {
			t.Errorf("%d recent lines, want 100", n)
		}
	})
}

func TestCloseWritesTheLastSum(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, out := newLog(t, ops.LogOptions{})
		for range 12 {
			l.Logger.Warn("again")
		}
		l.Close()
		if !strings.Contains(out.String(), `"line":"again","lines":7`) {
			t.Errorf("no sum at the end:\n%s", out)
		}
	})
}

func TestAutoFormatIsConsoleOnATerminalAndJSONElsewhere(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		format string
		tty    bool
		json   bool
	}{{"", false, true}, {"auto", true, false}, {"json", true, true}, {"console", false, false}} {
		l, out := newLog(t, ops.LogOptions{Format: c.format, IsTTY: c.tty})
		l.Logger.Info("hello", zap.Duration("took", 1500*time.Millisecond))
		if json.Valid(out.Bytes()) != c.json {
			t.Errorf("format %q, terminal %t: %q", c.format, c.tty, out)
		}
	}
}

func TestWrongLogSettingsHaltWithARemedy(t *testing.T) {
	t.Parallel()
	for _, opt := range []ops.LogOptions{{Level: "loud"}, {Format: "xml"}} {
		_, err := ops.NewLogger(opt)
		if e, ok := errors.AsType[*event.Error](err); !ok || e.Fault != event.FaultUsage || e.Remedy == "" {
			t.Errorf("%+v: %v, want a usage fault with a remedy", opt, err)
		}
	}
}

func TestTheLevelHoldsForTheOutputAndWarningsAreKeptForThePage(t *testing.T) {
	t.Parallel()
	l, out := newLog(t, ops.LogOptions{Level: "error"})
	l.Logger.Info("quiet")
	l.Logger.With(zap.String("source", "orders")).Warn("kept", zap.Int("n", 3))
	if out.Len() != 0 {
		t.Errorf("written below the level: %s", out)
	}
	lines := l.Recent.Lines()
	if len(lines) != 1 || lines[0].Message != "kept" || lines[0].Level != "warn" || lines[0].Fields != `{"source":"orders","n":3}` {
		t.Errorf("recent lines %+v", lines)
	}
	for i := range 250 {
		l.Logger.Warn(fmt.Sprintf("line %d", i))
	}
	lines = l.Recent.Lines()
	if len(lines) != 100 || lines[0].Message != "line 249" || lines[99].Message != "line 150" {
		t.Errorf("%d lines from %q to %q, want the newest hundred, newest first", len(lines), lines[0].Message, lines[len(lines)-1].Message)
	}
}

func TestFactsAreLoggedOnceWithTheirRemedy(t *testing.T) {
	t.Parallel()
	l, out := newLog(t, ops.LogOptions{})
	o := ops.New(ops.Options{Log: l})
	s := o.Source("orders", streaming())
	fault := event.Condition{What: "KAFKA_STORAGE_ERROR", Remedy: "free disk space", Anchor: "kafka-storage"}
	for range 3 {
		o.Broker().Condition("t/0", fault)
	}
	o.Broker().Condition("t/0", event.Condition{})
	o.Broker().Condition("t/0", event.Condition{})
	o.Broker().PartitionsChanged("t", 3, 6)
	o.Warn(event.Condition{What: "synchronous_commit is off"})
	s.Received(7, 70)
	o.LogEnd(errors.New("terminated"))
	for text, want := range map[string]int{
		`"message":"not ready"`: 1, `"remedy":"free disk space"`: 1, `"anchor":"kafka-storage"`: 1,
		`"message":"all well again"`: 1, `"partitions":6`: 1, "synchronous_commit": 1,
		`"received":7`: 1, `"error":"terminated"`: 1,
	} {
		if n := strings.Count(out.String(), text); n != want {
			t.Errorf("%s appears %d times, want %d", text, n, want)
		}
	}
}
