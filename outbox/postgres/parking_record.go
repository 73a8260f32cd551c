package postgres

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/outbox"
)

// A record is kept in three columns: value and record_key as bytes, and the rest as JSON:
//
//	{"topic": "shop.orders", "headers": [{"key": "forze_event_id", "value": "<base64>"}],
//	 "millis": 1, "fallback_millis": 1, "hash": 7, "spread": true, "loose": true, "partial": true}
//
// Text in Postgres holds neither the byte zero nor invalid UTF-8: such names are
// written in the way of [plain].
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

func encodeRecord(rec *event.Record) (string, error) {
	k := keptRecord{
		Topic: plain(rec.Topic), Headers: make([]keptHeader, len(rec.Headers)), Millis: rec.Millis, Fallback: rec.FallbackMillis,
		Hash: rec.Hash, Spread: rec.Spread, Loose: rec.Loose, Partial: rec.Partial,
	}
	for i, h := range rec.Headers {
		k.Headers[i] = keptHeader{plain(h.Key), h.Value}
	}
	b, err := json.Marshal(k)
	return string(b), err
}

// decodeRecord reads the columns record, value and record_key. The bytes are copied.
func decodeRecord(record, value, key []byte) (*event.Record, error) {
	var k keptRecord
	if err := json.Unmarshal(record, &k); err != nil {
		return nil, fmt.Errorf("column record: %w", err)
	}
	rec := &event.Record{
		Topic: unplain(k.Topic), Millis: k.Millis, FallbackMillis: k.Fallback, Hash: k.Hash, Spread: k.Spread, Loose: k.Loose, Partial: k.Partial,
	}
	for _, h := range k.Headers {
		rec.Headers = append(rec.Headers, event.Header{Key: unplain(h.Key), Value: h.Value})
	}
	var err error
	if rec.Value, err = bytesOf(value); err == nil {
		rec.Key, err = bytesOf(key)
	}
	return rec, err
}

// entryColumns are what scanEntry reads; kept adds the event itself.
const entryColumns = `e.id, e.state, e.relation, e.row_id, e.event_id, e.route, e.key, e.topic, coalesce(e.commit_lsn, '0/0'::pg_catalog.pg_lsn),
 e.ordinal, e.reason, e.error, e.parked_at, e.record IS NOT NULL, coalesce(pg_catalog.jsonb_extract_path_text(e.record, 'partial'), '') = 'true'`

const keptColumns = entryColumns + `, e.record, e.value, e.record_key`

// scanEntry reads one entry; the text is copied.
func (k *Parking) scanEntry(v [][]byte) (p outbox.Parked, err error) {
	if p.ID, err = strconv.ParseInt(string(v[0]), 10, 64); err != nil {
		return p, fmt.Errorf("column id: %w", err)
	}
	p.State, p.Relation, p.Row = outbox.ParkState(v[1]), string(v[2]), string(v[3])
	p.EventID, p.Route, p.Key, p.Topic = unplain(string(v[4])), unplain(string(v[5])), unplain(string(v[6])), unplain(string(v[7]))
	if p.Commit.LSN, err = event.ParseLSN(string(v[8])); err != nil {
		return p, fmt.Errorf("column commit_lsn: %w", err)
	}
	ordinal, err := strconv.ParseUint(string(v[9]), 10, 32)
	if err != nil {
		return p, fmt.Errorf("column ordinal: %w", err)
	}
	p.Ordinal, p.Reason, p.Error = uint32(ordinal), string(v[10]), string(v[11])
	if p.ParkedAt, err = time.Parse("2006-01-02 15:04:05.999999-07", string(v[12])); err != nil {
		return p, fmt.Errorf("column parked_at: %w", err)
	}
	p.Whole, p.Partial = string(v[13]) == "t", string(v[14]) == "t"
	if len(v) == 15 || v[15] == nil {
		return p, nil
	}
	if p.Record, err = decodeRecord(v[15], v[16], v[17]); err != nil {
		return p, err
	}
	p.Record.Origin = event.Origin{
		Source: k.db.o.Source, Relation: p.Relation, EventID: []byte(p.EventID), Route: []byte(p.Route), Commit: p.Commit, Ordinal: p.Ordinal,
	}
	if p.Row != "" {
		p.Record.Origin.Row = []byte(p.Row)
	}
	return p, nil
}

// plain writes any string as text that Postgres takes: as it is, or where it cannot be (or
// looks as if it had been rewritten) as \x and hexadecimal digits.
func plain(s string) string {
	if utf8.ValidString(s) && !strings.ContainsRune(s, 0) && !strings.HasPrefix(s, `\x`) {
		return s
	}
	return `\x` + hex.EncodeToString([]byte(s))
}

func unplain(s string) string {
	if digits, ok := strings.CutPrefix(s, `\x`); ok {
		if b, err := hex.DecodeString(digits); err == nil {
			return string(b)
		}
	}
	return s
}

// printable makes a message storable. It need not come back as it was.
func printable(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", `\0`)
}

// hexadecimal is a parameter for bytea; nil is NULL.
func hexadecimal(v []byte) []byte {
	if v == nil {
		return nil
	}
	b := make([]byte, 2+hex.EncodedLen(len(v)))
	copy(b, `\x`)
	hex.Encode(b[2:], v)
	return b
}

// bytesOf reads a bytea as the pinned setting prints it.
func bytesOf(v []byte) ([]byte, error) {
	if v == nil {
		return nil, nil
	}
	if len(v) < 2 || string(v[:2]) != `\x` {
		return nil, fmt.Errorf("a bytea of %d bytes does not begin with \\x", len(v))
	}
	b := make([]byte, hex.DecodedLen(len(v)-2))
	_, err := hex.Decode(b, v[2:])
	return b, err
}
