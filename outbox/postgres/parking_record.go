package postgres

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"time"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/outbox"
)

// entryColumns are what scanEntry reads; kept adds the event itself.
const entryColumns = `e.id, e.state, e.relation, e.row_id, e.event_id, e.route, e.key, e.topic, coalesce(e.commit_lsn, '0/0'::pg_catalog.pg_lsn),
 e.ordinal, e.reason, e.error, e.parked_at, e.record IS NOT NULL, coalesce(pg_catalog.jsonb_extract_path_text(e.record, 'partial'), '') = 'true'`

// record is what outbox.EncodeRecord wrote.
const keptColumns = entryColumns + `, e.record, e.value, e.record_key`

// scanEntry reads one entry; the text is copied.
func (k *Parking) scanEntry(v [][]byte) (p outbox.Parked, err error) {
	if p.ID, err = strconv.ParseInt(string(v[0]), 10, 64); err != nil {
		return p, fmt.Errorf("column id: %w", err)
	}
	p.State, p.Relation, p.Row = outbox.ParkState(v[1]), string(v[2]), string(v[3])
	p.EventID, p.Route, p.Key, p.Topic = outbox.FromPlainText(string(v[4])), outbox.FromPlainText(string(v[5])), outbox.FromPlainText(string(v[6])), outbox.FromPlainText(string(v[7]))
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
	if p.Record, err = outbox.DecodeRecord(v[15]); err != nil {
		return p, err
	}
	if p.Record.Value, err = bytesOf(v[16]); err == nil {
		p.Record.Key, err = bytesOf(v[17])
	}
	p.Record.Origin = p.Origin(k.db.o.Source)
	return p, err
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
