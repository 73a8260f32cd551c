package outbox

import (
	"context"
	"fmt"
	"time"

	"github.com/walrelay/walrelay/event"
)

// figuresEvery is the time between two readings of a table's gauges.
const figuresEvery = 10 * time.Second

// CaretakerObserver hears what a Caretaker does. Every field may be nil; calls must not block.
type CaretakerObserver struct {
	Figures  func(relation string, f Figures)
	Retained func(relation string, r Retained)
	// Warning is something an operator should know of; an empty What takes it back.
	Warning func(key string, c event.Condition)
	// Beat: a loop steps.
	Beat func()
}

// Caretaker reads the gauges of a source's tables and deletes published rows that
// were kept long enough.
type Caretaker struct {
	tables []Table
	opt    Options
	obs    CaretakerObserver
}

// NewCaretaker makes one; Run works.
func NewCaretaker(tables []Table, opt Options, obs CaretakerObserver) *Caretaker {
	return &Caretaker{tables: tables, opt: opt.WithDefaults(), obs: obs}
}

// Run works until ctx ends. What fails is tried again at its next time.
func (c *Caretaker) Run(ctx context.Context) {
	figures := time.NewTimer(0)
	defer figures.Stop()
	retain := time.NewTimer(0)
	defer retain.Stop()
	if c.opt.KeepPublished <= 0 {
		retain.Stop()
	}
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
			return
		case <-figures.C:
			c.each(ctx, "figures", "reading the figures of", c.readFigures)
			figures.Reset(figuresEvery)
		case <-retain.C:
			c.each(ctx, "retention", "deleting published rows of", c.retain)
			retain.Reset(c.opt.RetainEvery)
		}
		if c.obs.Beat != nil {
			c.obs.Beat()
		}
	}
}

func (c *Caretaker) each(ctx context.Context, key, doing string, f func(context.Context, Table) error) {
	var cond event.Condition
	for _, t := range c.tables {
		if err := f(ctx, t); err != nil && ctx.Err() == nil {
			cond = event.ConditionOf(err)
			cond.What = fmt.Sprintf("%s %s failed: %s", doing, t.Relation(), cond.What)
		}
	}
	if ctx.Err() == nil && c.obs.Warning != nil {
		c.obs.Warning(key, cond)
	}
}

func (c *Caretaker) readFigures(ctx context.Context, t Table) error {
	f, err := t.Figures(ctx)
	if err == nil && c.obs.Figures != nil {
		c.obs.Figures(t.Relation(), f)
	}
	return err
}

// retain deletes in batches until one is not full: each is a transaction of its own,
// and others get their turn between them.
func (c *Caretaker) retain(ctx context.Context, t Table) error {
	for ctx.Err() == nil {
		r, err := t.Retain(ctx, c.opt.KeepPublished, c.opt.RetainBatch)
		if err != nil {
			return err
		}
		if (r.Rows > 0 || len(r.Partitions) > 0) && c.obs.Retained != nil {
			c.obs.Retained(t.Relation(), r)
		}
		if r.Rows < int64(c.opt.RetainBatch) {
			return nil
		}
	}
	return context.Cause(ctx)
}
