package inbox

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// MaxID is the most bytes that a message id may have. A longer one would not fit
// into the index of every database.
const MaxID = 1024

var (
	// ErrNoID: the record has neither an event id nor a place in a broker. Its key
	// does not count: many events share one.
	ErrNoID = errors.New("nothing tells the record from others")
	// ErrBadID: the id is longer than MaxID, or no text that a database can keep
	// (not UTF-8, or with a zero byte).
	ErrBadID = errors.New("the record's id cannot be kept")
)

// MessageID is what the record is marked by: the id that Options.ID finds, else
// the header Options.EventIDHeader, else the place topic:partition:offset. An
// empty one gives way to the next. The error is ErrNoID or ErrBadID, and comes
// again with every delivery of the record.
func (in *Inbox) MessageID(r *Record) (string, error) {
	id := ""
	if in.opts.ID != nil {
		id = in.opts.ID(r)
	}
	if id == "" {
		id, _ = r.Header(in.opts.EventIDHeader)
	}
	if id == "" {
		id = r.Place()
	}
	switch {
	case id == "":
		return "", fmt.Errorf("%w: no header %s, and no topic, partition and offset", ErrNoID, in.opts.EventIDHeader)
	case len(id) > MaxID:
		return "", fmt.Errorf("%w: %d bytes in record %s, the most is %d", ErrBadID, len(id), r.Place(), MaxID)
	case !utf8.ValidString(id) || strings.IndexByte(id, 0) >= 0:
		return "", fmt.Errorf("%w: %q in record %s is not UTF-8 text without zero bytes", ErrBadID, id, r.Place())
	}
	return id, nil
}
