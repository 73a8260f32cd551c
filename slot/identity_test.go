package slot

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/walrelay/walrelay/event"
)

const segment = 16 << 20

func served(confirmed event.LSN) Facts {
	return Facts{
		SystemID: "7001", Timeline: 1, FlushLSN: 1000, InsertLSN: 1000, SegmentBytes: segment,
		Slot: SlotFacts{Name: "walrelay_orders", Exists: true, Plugin: "pgoutput", Confirmed: confirmed, Restart: confirmed - 10, WALStatus: "reserved"},
	}
}

func remembered(confirmed event.LSN) *Marker {
	return &Marker{SystemID: "7001", Timeline: 1, Slot: "walrelay_orders", Confirmed: confirmed, Phase: event.PhaseStreaming}
}

func TestJudgeStartsAtTheGreaterMemoryOrNamesTheGap(t *testing.T) {
	t.Parallel()
	lost := func(f Facts) Facts { f.Slot = SlotFacts{Name: f.Slot.Name}; return f }
	timeline := func(n int32, f Facts) Facts { f.Timeline = n; return f }
	with := func(f Facts, change func(*Facts)) Facts { change(&f); return f }
	cases := []struct {
		name   string
		marker *Marker
		facts  Facts
		at     event.LSN
		anchor event.Anchor
		says   string
	}{
		{"first start", nil, served(500), 500, "", "first start"},
		{"first start without a slot", nil, lost(served(0)), 0, AnchorNotInitialised, "init"},
		{"first start, slot invalidated", nil, with(served(500), func(f *Facts) { f.Slot.Invalidation = "wal_removed" }), 0, AnchorSlotInvalid, "wal_removed"},
		{"first start, slot beyond the log", nil, served(1001), 0, AnchorLogWentBack, "restored"},

		{"both agree", remembered(500), served(500), 500, "", "marker"},
		{"the slot went back in a restart", remembered(500), served(400), 500, "", "the slot says 0/190"},
		{"marker at the end of the log", remembered(1000), served(400), 1000, "", ""},
		{"marker beyond the log", remembered(1001), served(400), 0, AnchorLogWentBack, "0/3E9"},
		{"slot of another name, no gap", func() *Marker { m := remembered(500); m.Slot = "old"; return m }(), served(400), 400, "", "old"},

		{"slot advanced", remembered(500), served(600), 0, AnchorSlotAdvanced, "0/1F4"},
		{"slot of another name, begins later", func() *Marker { m := remembered(500); m.Slot = "old"; return m }(), served(600), 0, AnchorSlotAdvanced, ""},
		{"confirmed by a shutdown", remembered(500), with(served(600), func(f *Facts) { f.ShutdownCheckpoint = 600 }), 600, "", "shutdown"},
		{"confirmed by a shutdown at a page's end", remembered(500), with(served(600), func(f *Facts) { f.ShutdownCheckpoint = 640 }), 600, "", "shutdown"},
		{"advanced before a shutdown", remembered(500), with(served(600), func(f *Facts) { f.ShutdownCheckpoint = 641 }), 0, AnchorSlotAdvanced, ""},
		{"advanced after a shutdown", remembered(500), with(served(601), func(f *Facts) { f.ShutdownCheckpoint = 600 }), 0, AnchorSlotAdvanced, ""},
		{"shutdown with a switch of segments", remembered(500), with(served(600), func(f *Facts) {
			f.ShutdownCheckpoint, f.FlushLSN = segment+longPageHeader, segment+1000
		}), 600, "", "shutdown"},
		{"advanced a segment before a shutdown", remembered(500), with(served(600), func(f *Facts) {
			f.ShutdownCheckpoint, f.FlushLSN = 2*segment+longPageHeader, 2*segment+1000
		}), 0, AnchorSlotAdvanced, ""},

		{"slot dropped", remembered(500), lost(served(0)), 0, AnchorSlotLost, "0/1F4"},
		{"slot invalidated", remembered(500), with(served(500), func(f *Facts) { f.Slot.WALStatus = "lost" }), 0, AnchorSlotInvalid, "lost"},
		{"other cluster", remembered(500), with(served(500), func(f *Facts) { f.SystemID = "7002" }), 0, AnchorOtherCluster, "7002"},
		{"other cluster without a slot", remembered(500), with(lost(served(0)), func(f *Facts) { f.SystemID = "7002" }), 0, AnchorOtherCluster, "7001"},

		{"promoted without the slot", remembered(500), timeline(2, lost(served(0))), 0, AnchorPromoted, "from timeline 1 to 2"},
		{"promoted with the slot behind", remembered(500), timeline(2, served(400)), 400, "", "carried over"},
		{"promoted with the slot at the marker", remembered(500), timeline(2, served(500)), 500, "", "carried over"},
		{"promoted, slot made afterwards", remembered(500), timeline(2, served(600)), 0, AnchorPromoted, "0/258"},
		{"promoted, slot beyond the log", remembered(2000), timeline(2, served(1500)), 0, AnchorLogWentBack, ""},
		{"promoted, shutdown explains nothing", remembered(500), timeline(2, with(served(600), func(f *Facts) { f.ShutdownCheckpoint = 600 })), 0, AnchorPromoted, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			start, err := Judge(c.marker, c.facts)
			if c.anchor == "" {
				if err != nil || start.At != c.at || !strings.Contains(start.Note, c.says) {
					t.Fatalf("got %s (%s), %v; want %s (…%s…)", start.At, start.Note, err, c.at, c.says)
				}
				return
			}
			var e *event.Error
			if !errors.As(err, &e) || e.Anchor != c.anchor || e.Class != event.Halt || e.Remedy == "" || !strings.Contains(err.Error(), c.says) {
				t.Fatalf("got %v, want anchor %s and %q", err, c.anchor, c.says)
			}
			wantFault := event.FaultGap
			if c.anchor == AnchorNotInitialised {
				wantFault = event.FaultPrecondition
			}
			if e.Fault != wantFault {
				t.Fatalf("fault %v, want %v", e.Fault, wantFault)
			}
		})
	}
}

func TestJudgeNeverPassesTheLogOrWhatWasConfirmed(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		lsn := func(name string) event.LSN { return event.LSN(rapid.Uint64Range(1, 100).Draw(t, name)) }
		f := served(lsn("slot"))
		f.FlushLSN = lsn("flush")
		f.ShutdownCheckpoint = event.LSN(rapid.Uint64Range(0, 100).Draw(t, "shutdown"))
		f.Timeline = rapid.Int32Range(1, 2).Draw(t, "timeline")
		f.Slot.Exists = rapid.Bool().Draw(t, "exists")
		f.Slot.Failover = rapid.Bool().Draw(t, "failover")
		f.SystemID = rapid.SampledFrom([]string{"7001", "7002"}).Draw(t, "system")
		f.Slot.WALStatus = rapid.SampledFrom([]string{"reserved", "extended", "unreserved", "lost"}).Draw(t, "status")
		var m *Marker
		if rapid.Bool().Draw(t, "remembers") {
			m = remembered(lsn("marker"))
			m.Timeline = rapid.Int32Range(1, 2).Draw(t, "marker's timeline")
		}
		start, err := Judge(m, f)
		if err != nil {
			if event.ClassOf(err) != event.Halt {
				t.Fatalf("class %v of %v", event.ClassOf(err), err)
			}
			return
		}
		known := f.Slot.Confirmed
		if m != nil {
			known = max(known, m.Confirmed)
			if m.SystemID != f.SystemID {
				t.Fatal("went on with another cluster")
			}
		}
		switch {
		case start.At > f.FlushLSN:
			t.Fatalf("starts at %s, the log ends at %s", start.At, f.FlushLSN)
		case start.At > known || start.At < f.Slot.Confirmed:
			t.Fatalf("starts at %s, known are %s and %s", start.At, f.Slot.Confirmed, known)
		case !f.Slot.Exists || f.Slot.WALStatus == "lost":
			t.Fatalf("starts at %s on an unusable slot", start.At)
		case m != nil && start.At > m.Confirmed && !confirmedByShutdown(start.At, f):
			t.Fatalf("passes over %s…%s", m.Confirmed, start.At)
		}
	})
}
