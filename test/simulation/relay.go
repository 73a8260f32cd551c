package simulation

import (
	"math/rand/v2"
	"time"

	"github.com/walrelay/walrelay/ack"
	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/hlc"
	"github.com/walrelay/walrelay/reorder"
)

// Mode is an order that the relay offers.
type Mode string

// The modes.
const (
	Commit Mode = "commit"                  // order: commit
	Stamps Mode = "hlc"                     // order: hlc
	Heads  Mode = "hlc, within_key: commit" // merge by heads
)

// Plan is one relay and what befalls it.
type Plan struct {
	Seed uint64
	Mode Mode
	// Bounds are what the relay is told; zero: what is true of the world.
	Bounds reorder.Bounds
	// Lag is how long a commit takes from the log of each source to the relay.
	Lag [sources]time.Duration
	// Stalls are when the stream of each source stands still, since the start. The server
	// itself is well and its clock can be read.
	Stalls [sources][]Span
	// Blind is how long the clocks of the servers cannot be read, since the start; as good
	// as in a backlog, where all readings are far ahead of the stream.
	Blind time.Duration
	// Budget is the number of events that each source may hold; zero: any.
	Budget int64
	// Relieve gives up order when a source that all wait for has no room.
	Relieve bool
	// DetachAfter is how long a watermark may stand still; zero: for ever.
	DetachAfter time.Duration
	// Crashes are when the process dies and is started again, since the start.
	Crashes []time.Duration

	// Twins that are broken.
	OwnClock      bool // the watermark comes from the relay's clock
	PositionFirst bool // readings look at the log's end before the open transactions
	ConfirmRead   bool // what was read is confirmed, not what went out
	AlwaysWait    bool // a source without room waits even if all wait for it
}

// Span is a time since the start.
type Span struct{ From, To time.Duration }

// Out is an event that went out.
type Out struct {
	Event int
	Found reorder.Found
	Run   int // counts restarts
}

// Output is all that a relay published.
type Output struct {
	Plan    Plan
	Out     []Out
	Figures reorder.Figures // of the last run
	Peak    int             // events held at once, at most
	Stuck   bool            // it did not come to the end
}

// tick is how often the relay looks.
const tick = 2 * millis

type relay struct {
	Plan
	w   *World
	rng *rand.Rand
	out Output
	now int64
	run int

	buf   *reorder.Buffer[int]
	feeds [sources]feed
}

type feed struct {
	progress  *reorder.Progress
	window    *ack.Window
	entries   map[int]uint64 // of a transaction
	next      int            // transaction in the log
	part      int            // event in that transaction
	confirmed int            // transactions; outlives a crash
	looks     [3]int64       // when those of the next reading are taken
	moved     int64          // when the watermark moved
}

// Publish runs the plan over a world.
func Publish(w *World, p Plan) Output {
	if p.Bounds == (reorder.Bounds{}) {
		p.Bounds = reorder.Bounds{Transaction: w.Transaction, Staged: w.Staged, Skew: time.Duration(max(0, w.behind)) * time.Microsecond}
	}
	r := &relay{Plan: p, w: w, rng: rand.New(rand.NewPCG(p.Seed, 6)), now: start}
	r.out.Plan = p
	r.start()
	crashes := p.Crashes
	limit := w.End + (20 * time.Second).Microseconds()
	for ; !r.done(); r.now += tick {
		if r.now > limit {
			r.out.Stuck = true
			break
		}
		if len(crashes) > 0 && r.now >= start+crashes[0].Microseconds() {
			crashes = crashes[1:]
			r.run++
			r.start()
		}
		r.step()
	}
	r.out.Figures = r.buf.Figures()
	return r.out
}

// start is a process that knows nothing but what was confirmed.
func (r *relay) start() {
	budget := int64(1 << 40)
	if r.Budget > 0 {
		budget = r.Budget
	}
	r.buf = reorder.New[int](sources, budget, 0)
	for s := range r.feeds {
		f := &r.feeds[s]
		*f = feed{
			progress: reorder.NewProgress(r.Bounds), window: ack.NewWindow(len(r.w.Logs[s]) + 1), entries: map[int]uint64{},
			next: f.confirmed, confirmed: f.confirmed, moved: r.now,
		}
		r.look(s)
		r.buf.Attach(s)
	}
}

func (r *relay) done() bool {
	if r.buf.Figures().Items > 0 {
		return false
	}
	for s := range r.feeds {
		if r.feeds[s].confirmed < len(r.w.Logs[s]) {
			return false
		}
	}
	return true
}

func (r *relay) step() {
	for s := range r.feeds {
		r.read(s)
		r.sample(s)
		r.advance(s)
	}
	r.release()
	if (r.now-start)/tick%10 == 0 {
		for s := range r.feeds {
			r.confirm(s)
		}
	}
}

// reached is how many commits of a source its stream has come to.
func (r *relay) reached(s int) int {
	t := r.now
	for _, stall := range r.Stalls[s] {
		if from, to := start+stall.From.Microseconds(), start+stall.To.Microseconds(); t > from && t < to {
			t = from
		}
	}
	return r.w.written(s, t-r.Lag[s].Microseconds())
}

func (r *relay) read(s int) {
	f := &r.feeds[s]
	reached := r.reached(s)
	for f.next < reached {
		tx := &r.w.Txs[r.w.Logs[s][f.next]]
		entry, opened := f.entries[r.w.Logs[s][f.next]]
		if !opened {
			entry, _ = f.window.Open()
			f.entries[r.w.Logs[s][f.next]] = entry
			f.window.Add(entry, len(tx.Events))
		}
		for ; f.part < len(tx.Events); f.part++ {
			if !r.buf.Room(s, 1) && (r.AlwaysWait || !r.buf.Gated(s)) {
				return
			}
			for r.Relieve && !r.buf.Room(s, 1) {
				it, _ := r.buf.Relieve(s)
				r.publish(it.Value, it.Found)
			}
			r.take(s, tx, tx.Events[f.part])
		}
		f.window.Close(entry, at(tx.Position), tx.Committed)
		f.progress.Delivered(at(tx.Position), tx.Committed)
		f.next, f.part = f.next+1, 0
		r.advance(s)
	}
	f.progress.Delivered(at(f.next), 0) // a keepalive
}

func (r *relay) take(s int, tx *Tx, id int) {
	if r.Mode == Commit {
		r.publish(id, 0)
		return
	}
	e := &r.w.Events[id]
	r.buf.Add(reorder.Item[int]{
		Source: s, Stamp: e.Stamp, Stamped: true, CommitMicros: tx.Committed, Key: uint64(e.Key + 1),
		WithinKey: r.Mode == Heads, Bytes: 1, Value: id,
	})
	r.out.Peak = max(r.out.Peak, r.buf.Figures().Items)
	r.release()
}

// look plans the next reading of a server: three looks, between which time goes by.
func (r *relay) look(s int) {
	first := r.now + r.rng.Int64N(30*millis)
	second := first + r.rng.Int64N(15*millis)
	r.feeds[s].looks = [3]int64{first, second, second + r.rng.Int64N(15*millis)}
}

func (r *relay) sample(s int) {
	f := &r.feeds[s]
	first, second, third := f.looks[0], f.looks[1], f.looks[2]
	if r.now < third {
		return
	}
	r.look(s)
	if r.now < start+r.Blind.Microseconds() {
		return
	}
	var reading event.Reading
	if r.PositionFirst {
		reading.At = at(r.w.written(s, first))
		first, second = second, third
	} else {
		reading.At = at(r.w.written(s, third))
	}
	reading.NowMicros = first + r.w.server[s]
	reading.OldestMicros = min(r.w.oldest(s, second)+r.w.server[s], reading.NowMicros)
	f.progress.Sample(reading)
}

func (r *relay) advance(s int) {
	f := &r.feeds[s]
	w := f.progress.Watermark()
	if r.OwnClock {
		w = hlc.Stamp((r.now-(r.Bounds.Transaction+r.Bounds.Skew).Microseconds())/millis) << 16
	}
	before := r.buf.Source(s)
	r.buf.Advance(s, w)
	if w > before.Watermark {
		f.moved = r.now
		r.buf.Attach(s)
	} else if r.DetachAfter > 0 && r.now-f.moved > r.DetachAfter.Microseconds() {
		r.buf.Detach(s)
	}
}

func (r *relay) release() {
	for it, ok := r.buf.Pop(); ok; it, ok = r.buf.Pop() {
		r.publish(it.Value, it.Found)
	}
}

func (r *relay) publish(id int, found reorder.Found) {
	r.out.Out = append(r.out.Out, Out{id, found, r.run})
	e := &r.w.Events[id]
	f := &r.feeds[e.Source]
	f.window.Done(f.entries[e.Tx])
}

// confirm tells the source what needs no second reading: nothing from the oldest event
// on that is still held.
func (r *relay) confirm(s int) {
	f := &r.feeds[s]
	if low, ok := f.window.Low(nil); ok {
		f.confirmed = int(low.LSN)
	}
	if r.ConfirmRead {
		f.confirmed = f.next
	}
}

func at(commits int) event.Position { return event.AtLSN(event.LSN(commits)) }
