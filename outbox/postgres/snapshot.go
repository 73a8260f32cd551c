package postgres

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// snapshot is a pg_snapshot: which transactions had ended when it was taken. Its
// numbers have 64 bits; the log names transactions by the lower 32.
//
//	text form: xmin:xmax:xip,xip,…
type snapshot struct {
	xmin, xmax uint64
	running    []uint64
}

func parseSnapshot(s string) (snapshot, error) {
	var (
		p    snapshot
		err  error
		part = strings.Split(s, ":")
	)
	if len(part) != 3 {
		return p, fmt.Errorf("snapshot %q has %d parts, want xmin:xmax:running", s, len(part))
	}
	if p.xmin, err = strconv.ParseUint(part[0], 10, 64); err != nil {
		return p, fmt.Errorf("snapshot %q: %w", s, err)
	}
	if p.xmax, err = strconv.ParseUint(part[1], 10, 64); err != nil {
		return p, fmt.Errorf("snapshot %q: %w", s, err)
	}
	if part[2] == "" {
		return p, nil
	}
	for x := range strings.SplitSeq(part[2], ",") {
		n, err := strconv.ParseUint(x, 10, 64)
		if err != nil {
			return p, fmt.Errorf("snapshot %q: %w", s, err)
		}
		p.running = append(p.running, n)
	}
	return p, nil
}

// sees says whether the transaction, which is known to have committed, is visible.
// Zero stands for one that nobody named: there is nothing to wait for.
func (p snapshot) sees(xid uint32) bool {
	if xid == 0 {
		return true
	}
	x := p.full(xid)
	return x < p.xmin || x < p.xmax && !slices.Contains(p.running, x)
}

// full gives a 32-bit number the epoch in which it lies nearest to xmax: the server
// keeps all living transactions within half of the circle (FullTransactionIdFromAllowableAt).
func (p snapshot) full(xid uint32) uint64 {
	const circle = 1 << 32
	x := p.xmax&^(circle-1) | uint64(xid)
	switch {
	case x > p.xmax && x-p.xmax > circle/2 && x >= circle:
		return x - circle
	case x < p.xmax && p.xmax-x > circle/2:
		return x + circle
	}
	return x
}
