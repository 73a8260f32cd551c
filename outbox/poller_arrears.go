package outbox

import (
	"context"
	"fmt"
	"hash/maphash"
	"slices"
)

// arrears is what a catch-up has to bring of one table: the rows that are unfinished when
// it begins and that the log will not bring. Those that it will bring are its own. It has them in the
// order of their commits, among events that no table has (messages, rows that their own transaction
// deleted), and a row that the catch-up took would pass those.
//
//	claimed by the catch-up  =  unfinished when it began − coming with the log
//
// The rows are looked at first and the log after them, up to its end: what is committed later
// is in neither. It is for one goroutine.
type arrears struct {
	table Table
	seed  maphash.Seed
	ids   []uint64 // hashes, ascending: eight bytes a row, however many there are
	came  []uint64 // a bit for each that was claimed once
	left  int      // how many were not
	later []string // came and were not owed
}

// newArrears looks which rows are there. To be called once the log has begun.
func newArrears(ctx context.Context, t Table) (*arrears, error) {
	a := &arrears{table: t, seed: maphash.MakeSeed()}
	if err := t.Owed(ctx, func(id string) { a.ids = append(a.ids, maphash.String(a.seed, id)) }); err != nil {
		return nil, fmt.Errorf("looking what %s holds: %w", t.Relation(), err)
	}
	slices.Sort(a.ids)
	a.ids = slices.Clip(slices.Compact(a.ids))
	a.came = make([]uint64, (len(a.ids)+63)/64)
	a.left = len(a.ids)
	return a, nil
}

// leave takes a row out that comes with the log. To be called before the first claim.
func (a *arrears) leave(id []byte) {
	if at, ok := slices.BinarySearch(a.ids, maphash.Bytes(a.seed, id)); ok {
		a.came[at/64] |= 1 << (at % 64)
	}
}

// settle makes up the account, once all that comes with the log has been said.
func (a *arrears) settle() {
	kept := a.ids[:0]
	for i, h := range a.ids {
		if a.came[i/64]&(1<<(i%64)) == 0 {
			kept = append(kept, h)
		}
	}
	a.ids, a.left = kept, len(kept)
	clear(a.came)
}

// take reports whether the row is owed, and notes that it came.
func (a *arrears) take(id string) bool {
	at, ok := slices.BinarySearch(a.ids, maphash.String(a.seed, id))
	if !ok {
		return false
	}
	if word, bit := &a.came[at/64], uint64(1)<<(at%64); *word&bit == 0 {
		*word |= bit
		a.left--
	}
	return true
}

// claim is Table.Claim for rows that are owed. Once all of them came, it takes only those
// that are asked for by name: they came before, and wait for their next attempt.
func (a *arrears) claim(ctx context.Context, req Request) (*Claim, error) {
	for {
		if a.left == 0 && req.Only == nil {
			if len(req.Heads) == 0 {
				return &Claim{}, nil
			}
			req.Only = req.Heads
		}
		asked := req
		asked.Except = append(slices.Clip(req.Except), a.later...)
		claim, err := a.table.Claim(ctx, asked)
		if err != nil {
			return nil, err
		}
		var back []Outcome
		came := len(claim.Rows)
		claim.Rows = slices.DeleteFunc(claim.Rows, func(r Row) bool {
			if a.take(r.ID) {
				return false
			}
			a.later = append(a.later, r.ID)
			back = append(back, Outcome{ID: r.ID, Fence: claim.Fence, Verdict: Released})
			return true
		})
		if len(back) > 0 && a.table.Traits().Claims {
			if _, err := a.table.Settle(ctx, back); err != nil {
				return nil, err
			}
		}
		if len(claim.Rows) > 0 || came == 0 {
			return claim, nil
		}
	}
}

// noteArrears looks once, in a catch-up, what there is to bring.
func (p *Poller) noteArrears(ctx context.Context) error {
	if p.gear.Kind != GearCatchUp || p.turn.arrears != nil {
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { // a stop does not wait for the end of a long log
		select {
		case <-p.finished:
			cancel()
		case <-ctx.Done():
		}
	}()
	all, some := make([]*arrears, len(p.tables)), false
	by := map[string]*arrears{}
	for i, t := range p.tables {
		var err error
		if all[i], err = newArrears(ctx, t); err != nil {
			return err
		}
		by[t.Relation()] = all[i]
		some = some || all[i].left > 0
	}
	if some && p.gear.Coming != nil {
		err := p.gear.Coming(ctx, func(relation string, id []byte) {
			if a := by[relation]; a != nil {
				a.leave(id)
			}
		})
		if err != nil {
			return fmt.Errorf("looking what the log will bring: %w", err)
		}
		for _, a := range all {
			a.settle()
		}
	}
	p.turn.arrears = all
	return nil
}

// take claims rows of a table, in a catch-up those that are owed.
func (p *Poller) take(ctx context.Context, t int, req Request) (*Claim, error) {
	if p.turn.arrears != nil {
		return p.turn.arrears[t].claim(ctx, req)
	}
	return p.tables[t].Claim(ctx, req)
}
