package relay

import (
	"context"
	"errors"
)

// releaseAtOnce is how many records are taken out of the buffer at a time.
const releaseAtOnce = 256

// release is the releasing goroutine: it alone publishes what the buffer lets go, so that
// the order of the calls is the order of release. It ends when stop is closed and nothing is left,
// or with ctx; what it cannot publish then is dropped, and is read again one day.
func (s *sorter) release(ctx context.Context, stop <-chan struct{}) {
	var batch []*parcel
	for {
		batch = s.take(batch[:0])
		for _, h := range batch {
			s.send(ctx, h)
		}
		if len(batch) > 0 {
			s.sent(batch)
			continue
		}
		if ctx.Err() != nil {
			if s.open() {
				continue // everything may go: to be dropped
			}
			return
		}
		select {
		case <-s.wake:
		case <-ctx.Done():
		case <-stop:
			if s.empty() {
				return
			}
			s.open()
		}
	}
}

// take takes the next records that may go.
func (s *sorter) take(batch []*parcel) []*parcel {
	s.mu.Lock()
	defer s.mu.Unlock()
	batch = append(batch, s.early...)
	clear(s.early)
	s.early = s.early[:0]
	for len(batch) < releaseAtOnce {
		it, ok := s.buf.Pop()
		if !ok {
			break
		}
		batch = append(batch, it.Value)
	}
	s.sending = len(batch) > 0
	return batch
}

func (s *sorter) send(ctx context.Context, h *parcel) {
	f := h.feed
	if h.skip {
		h.ticket.Memory.Release()
		return
	}
	err := ctx.Err()
	if err == nil {
		if failure := f.failure.Load(); failure != nil {
			err = *failure
		}
	}
	switch {
	case err != nil:
	case h.poison != nil:
		err = s.r.pub.Refuse(ctx, &h.rec, h.ticket, h.poison)
	default:
		err = s.r.pub.Publish(ctx, &h.rec, h.ticket)
	}
	if err == nil {
		return
	}
	// It was not taken: there will be no result, and its transaction stays incomplete.
	if ctx.Err() == nil && !errors.Is(err, context.Canceled) {
		f.fail(err)
	}
	f.failed.Add(1)
	f.underWay.Add(-1)
	h.ticket.Memory.Release()
}

// sent lets feeders that wait for room go on.
func (s *sorter) sent(batch []*parcel) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sending = false
	for i, h := range batch {
		headers := h.rec.Headers
		clear(headers) // the publisher has copied them
		*h = parcel{}
		h.rec.Headers = headers[:0]
		if len(s.idle) < maxIdle {
			s.idle = append(s.idle, h)
		}
		batch[i] = nil
	}
	for i := range s.sources {
		select {
		case s.sources[i].room <- struct{}{}:
		default:
		}
	}
}

// open takes every source out of the minimum, and answers whether something is held.
func (s *sorter) open() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.sources {
		s.buf.Detach(i)
	}
	return s.buf.Figures().Items > 0
}

func (s *sorter) empty() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.early) == 0 && s.buf.Figures().Items == 0
}
