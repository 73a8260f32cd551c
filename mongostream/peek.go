package mongostream

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/mongo"
)

// peekAt is where a stream would begin that took the source.
func (s *Stream) peekAt(ctx context.Context, client *mongo.Client, p *standing) (start, string, error) {
	ctx, cancel := context.WithTimeout(ctx, s.opt.WireTimeout)
	defer cancel()
	o := s.opt
	o.Peek = false
	r, err := ReadRecord(ctx, client, o)
	if err != nil {
		return start{}, "", err
	}
	facts, err := ReadFacts(ctx, client)
	if err == nil {
		err = judge(r, facts, &o)
	}
	if err != nil {
		return start{}, "", err
	}
	if r == nil {
		return start{}, "nothing is remembered: from now on", nil
	}
	p.received = r.Token
	return r.start(&o), "looking from the remembered position on", nil
}
