package outboxfake

import (
	"context"
	"hash/fnv"
	"slices"

	"github.com/walrelay/walrelay/outbox"
)

// Table is the outbox table of a DB as one process sees it.
type Table struct {
	*DB
	// Kind says what its rows can carry.
	Kind outbox.Traits
	// Before, when set, is asked before each statement; its error is the statement's.
	Before func(op string) error
	// After, when set, is asked after each: its error hides what was done.
	After func(op string) error
	// Slow, when set, is called after a statement took effect and before its answer arrives.
	Slow func(op string)

	fences []outbox.Fence // of its claims, where they are locks
}

// ForzeRow, ForzeLease, Basic and Debezium are the traits of the presets.
var (
	ForzeRow   = outbox.Traits{States: true, Retries: true, Claims: true}
	ForzeLease = outbox.Traits{States: true, Retries: true}
	Basic      = outbox.Traits{States: true}
	Debezium   = outbox.Traits{States: true, Claims: true}
)

// Relation is the table's name.
func (t *Table) Relation() string { return "public.outbox" }

// Traits are its kind.
func (t *Table) Traits() outbox.Traits { return t.Kind }

func (t *Table) enter(ctx context.Context, op string) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if t.Before != nil {
		return t.Before(op)
	}
	return nil
}

func (t *Table) linger(op string) {
	if t.Slow != nil {
		t.Slow(op)
	}
}

func (t *Table) leave(op string) error {
	if t.After != nil {
		return t.After(op)
	}
	return nil
}

// Shard is the part of the key space that a key is in.
func Shard(key string, of int) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(key))
	return int(h.Sum32() % uint32(of))
}

func in(s outbox.Shards, r *Row) bool {
	return s.Of == 0 || slices.Contains(s.Own, Shard(r.EffectiveKey(), s.Of))
}

func set(ids []string) map[string]bool {
	m := make(map[string]bool, len(ids))
	for _, id := range ids {
		m[id] = true
	}
	return m
}
