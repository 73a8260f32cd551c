package oracle

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kgo"
)

// idHeaders are the headers that may carry the event id, best first: that of the
// forze preset, that of the others, and that of the CloudEvents envelope.
var idHeaders = []string{"forze_event_id", "id", "ce_id"}

// EventID finds the event id of a record, empty when there is none.
func EventID(r *kgo.Record) string {
	for _, name := range idHeaders {
		for _, h := range r.Headers {
			if h.Key == name {
				return string(h.Value)
			}
		}
	}
	return ""
}

func place(r *kgo.Record) string { return fmt.Sprintf("%s/%d@%d", r.Topic, r.Partition, r.Offset) }

// same reports whether a consumer that knows one record learns nothing from the other.
func same(a, b *kgo.Record) bool {
	return a.Topic == b.Topic && bytes.Equal(a.Key, b.Key) && bytes.Equal(a.Value, b.Value) &&
		slices.EqualFunc(a.Headers, b.Headers, func(x, y kgo.RecordHeader) bool {
			return x.Key == y.Key && bytes.Equal(x.Value, y.Value)
		})
}
