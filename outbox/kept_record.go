package outbox

import (
	"encoding/json"
	"fmt"

	"github.com/walrelay/walrelay/event"
)

// keptRecord is the form in which a parking store keeps a record, all but its key and
// value, which are kept as bytes beside it:
//
//	{"topic": "shop.orders", "headers": [{"key": "forze_event_id", "value": "<base64>"}],
//	 "millis": 1, "fallback_millis": 1, "hash": 7, "spread": true, "loose": true, "partial": true}
//
// Names are written in the way of [PlainText].
type keptRecord struct {
	Topic    string       `json:"topic"`
	Headers  []keptHeader `json:"headers"`
	Millis   int64        `json:"millis"`
	Fallback int64        `json:"fallback_millis"`
	Hash     uint32       `json:"hash"`
	Spread   bool         `json:"spread,omitempty"`
	Loose    bool         `json:"loose,omitempty"`
	Partial  bool         `json:"partial,omitempty"`
}

type keptHeader struct {
	Key   string `json:"key"`
	Value []byte `json:"value"` // null and "" are not the same
}

// EncodeRecord is the text, valid UTF-8, in which a [Parking] store keeps a record beside
// its key and its value.
func EncodeRecord(rec *event.Record) (string, error) {
	k := keptRecord{
		Topic: PlainText(rec.Topic), Headers: make([]keptHeader, len(rec.Headers)), Millis: rec.Millis, Fallback: rec.FallbackMillis,
		Hash: rec.Hash, Spread: rec.Spread, Loose: rec.Loose, Partial: rec.Partial,
	}
	for i, h := range rec.Headers {
		k.Headers[i] = keptHeader{PlainText(h.Key), h.Value}
	}
	b, err := json.Marshal(k)
	return string(b), err
}

// DecodeRecord reads what [EncodeRecord] wrote. Key and Value are nil yet.
func DecodeRecord(text []byte) (*event.Record, error) {
	var k keptRecord
	if err := json.Unmarshal(text, &k); err != nil {
		return nil, fmt.Errorf("a record in the parking store: %w", err)
	}
	rec := &event.Record{
		Topic: FromPlainText(k.Topic), Millis: k.Millis, FallbackMillis: k.Fallback, Hash: k.Hash, Spread: k.Spread, Loose: k.Loose, Partial: k.Partial,
	}
	for _, h := range k.Headers {
		rec.Headers = append(rec.Headers, event.Header{Key: FromPlainText(h.Key), Value: h.Value})
	}
	return rec, nil
}

// Origin is what the record of an entry is known by, in messages to people and when it
// is put aside again.
func (p *Parked) Origin(source string) event.Origin {
	o := event.Origin{
		Source: source, Relation: p.Relation, EventID: []byte(p.EventID), Route: []byte(p.Route), Commit: p.Commit, Ordinal: p.Ordinal,
	}
	if p.Row != "" {
		o.Row = []byte(p.Row)
	}
	return o
}
