package publish

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/walrelay/walrelay/event"
)

// desk is a Desk in memory. The real ones are in package outbox.
type desk struct {
	mu       sync.Mutex
	keys     map[string]bool // held
	aside    []aside         // in the order of the calls
	lettered []uint64
	returned []uint64
	asked    func(key string)                                         // before Held answers
	park     func(rec *event.Record, t event.Ticket, why error) error // asked before anything is noted
	takes    bool                                                     // Return's answer
}

type aside struct {
	n     uint64
	key   string
	held  bool
	value string
}

func newDesk() *desk { return &desk{keys: map[string]bool{}} }

func (d *desk) Held(_ uint16, key []byte) bool {
	if d.asked != nil {
		d.asked(string(key))
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.keys[string(key)]
}

func (d *desk) hold(key string) { d.mu.Lock(); d.keys[key] = true; d.mu.Unlock() }

func (d *desk) open(key string) { d.mu.Lock(); delete(d.keys, key); d.mu.Unlock() }

var errNotHeld = &event.Error{Class: event.Retry, What: "its key is not held any more"}

func (d *desk) Park(ctx context.Context, rec *event.Record, t event.Ticket, why error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if d.park != nil {
		if err := d.park(rec, t, why); err != nil {
			return err
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	held := errors.Is(why, event.ErrHeld)
	if held && !d.keys[string(rec.Key)] {
		return errNotHeld
	}
	if !rec.Loose {
		d.keys[string(rec.Key)] = true
	}
	d.aside = append(d.aside, aside{t.Entry, string(rec.Key), held, string(rec.Value)})
	return nil
}

func (d *desk) Lettered(_ *event.Record, t event.Ticket, _ error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lettered = append(d.lettered, t.Entry)
}

func (d *desk) Return(rec *event.Record, t event.Ticket, why error) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.takes || !strings.Contains(why.Error(), rec.Topic) {
		return false
	}
	d.returned = append(d.returned, t.Entry)
	d.keys[string(rec.Key)] = true
	return true
}

// put lists what was put aside: a number for poison, in brackets what waits behind it.
func (d *desk) put() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var words []string
	for _, a := range d.aside {
		if a.held {
			words = append(words, fmt.Sprintf("(%d)", a.n))
		} else {
			words = append(words, fmt.Sprint(a.n))
		}
	}
	return strings.Join(words, " ")
}

// ascending checks that the numbers of each key were put aside in order.
func (d *desk) ascending() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	last := map[string]uint64{}
	for _, a := range d.aside {
		if before, ok := last[a.key]; ok && a.n <= before {
			return fmt.Errorf("key %s: %d was put aside after %d", a.key, a.n, before)
		}
		last[a.key] = a.n
	}
	return nil
}

func (d *desk) has(n uint64) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.ContainsFunc(d.aside, func(a aside) bool { return a.n == n })
}
