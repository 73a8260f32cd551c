package protocol

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/walrelay/walrelay/test/pgserver"
)

// patience bounds every wait for something that has to come.
const patience = 60 * time.Second

// wire is a bare client in copy mode: it reads and writes nothing by itself.
type wire struct {
	t    *testing.T
	conn *pgconn.PgConn
	srv  *pgserver.Server
	db   string
	slot string
}

// frame is what the server sent: a keepalive, or a message of the plugin.
type frame struct {
	keepalive bool
	reply     bool          // a keepalive that asks for an answer
	at        pglogrepl.LSN // of a message: its start; of a keepalive: the end of the log
	data      []byte        // the message; nil for a keepalive
}

func (f frame) kind() byte {
	if f.keepalive {
		return 'k'
	}
	return f.data[0]
}

// errQuiet: nothing came within the time.
var errQuiet = errors.New("nothing came")

// settings of the session, as name=value pairs.
func connect(t *testing.T, srv *pgserver.Server, db string, settings ...string) *pgconn.PgConn {
	t.Helper()
	cfg, err := pgconn.ParseConfig(srv.URL(db))
	if err != nil {
		t.Fatal(err)
	}
	cfg.RuntimeParams["replication"] = "database"
	for i := 0; i < len(settings); i += 2 {
		cfg.RuntimeParams[settings[i]] = settings[i+1]
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	conn, err := pgconn.ConnectConfig(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = conn.Close(ctx)
	})
	return conn
}

// options of pgoutput: protocol 1 and a publication, unless more is said.
func plugin(publication string, more ...string) []string {
	return append([]string{"publication_names '" + publication + "'"}, more...)
}

const proto1, proto2 = "proto_version '1'", "proto_version '2'"

// begin starts replication and fails the test when the server refuses.
func (p *place) begin(t *testing.T, at pglogrepl.LSN, options ...string) *wire {
	t.Helper()
	w, err := p.tryBegin(t, at, options...)
	if err != nil {
		t.Fatalf("START_REPLICATION: %v", err)
	}
	return w
}

func (p *place) tryBegin(t *testing.T, at pglogrepl.LSN, options ...string) (*wire, error) {
	t.Helper()
	if len(options) == 0 {
		options = plugin(p.publication, proto1)
	}
	w := &wire{t: t, conn: connect(t, p.srv, p.db, p.settings...), srv: p.srv, db: p.db, slot: p.slot}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	return w, pglogrepl.StartReplication(ctx, w.conn, p.slot, at, pglogrepl.StartReplicationOptions{Mode: pglogrepl.LogicalReplication, PluginArgs: options})
}

// next waits for a frame; errQuiet when none comes within the time, the server's
// error when it ends the stream.
func (w *wire) next(within time.Duration) (frame, error) {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	for {
		msg, err := w.conn.ReceiveMessage(ctx)
		if err != nil {
			if pgconn.Timeout(err) && ctx.Err() != nil {
				return frame{}, errQuiet
			}
			return frame{}, err
		}
		switch m := msg.(type) {
		case *pgproto3.CopyData:
			return parseFrame(m.Data)
		case *pgproto3.ErrorResponse:
			return frame{}, pgconn.ErrorResponseToPgError(m)
		case *pgproto3.CopyDone:
			return frame{}, errors.New("the server ended the stream")
		}
	}
}

func parseFrame(data []byte) (frame, error) {
	switch data[0] {
	case pglogrepl.PrimaryKeepaliveMessageByteID:
		k, err := pglogrepl.ParsePrimaryKeepaliveMessage(data[1:])
		return frame{keepalive: true, reply: k.ReplyRequested, at: k.ServerWALEnd}, err
	case pglogrepl.XLogDataByteID:
		x, err := pglogrepl.ParseXLogData(data[1:])
		return frame{at: x.WALStart, data: append([]byte(nil), x.WALData...)}, err
	}
	return frame{}, fmt.Errorf("CopyData of kind %q", data[0])
}

// message waits for the next message of the plugin, of one of the kinds when any are given.
func (w *wire) message(kinds ...byte) frame {
	w.t.Helper()
	for deadline := time.Now().Add(patience); ; {
		f, err := w.next(time.Until(deadline))
		if err != nil {
			w.t.Fatalf("waiting for a message %q: %v", kinds, err)
		}
		if f.keepalive {
			continue
		}
		for _, k := range kinds {
			if f.kind() == k {
				return f
			}
		}
		if len(kinds) == 0 {
			return f
		}
	}
}

// status says a position: received, durable and applied are one.
func (w *wire) status(at pglogrepl.LSN) {
	w.t.Helper()
	if err := w.trySay(at); err != nil {
		w.t.Fatalf("status: %v", err)
	}
}

func (w *wire) trySay(at pglogrepl.LSN) error {
	// The library takes 0 for "the same as write"; the write position is no matter here.
	return pglogrepl.SendStandbyStatusUpdate(context.Background(), w.conn,
		pglogrepl.StandbyStatusUpdate{WALWritePosition: at, WALFlushPosition: at, WALApplyPosition: at})
}

// leave closes the connection and waits until the slot is free.
func (w *wire) leave() {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = w.conn.Close(ctx)
	eventually(w.t, "the slot to be free", func() bool {
		return query[bool](w.t, w.srv, w.db, `select not active from pg_replication_slots where slot_name = $1`, w.slot)
	})
}

// tx is a transaction as it came.
type tx struct {
	begin  pglogrepl.BeginMessage
	commit pglogrepl.CommitMessage
	keys   []string        // first column of the rows
	at     []pglogrepl.LSN // of the rows
}

// transaction reads a whole transaction, protocol 1.
func (w *wire) transaction() tx {
	w.t.Helper()
	var x tx
	for {
		f := w.message()
		switch f.kind() {
		case 'B':
			decode(w.t, f, &x.begin)
		case 'I':
			var m pglogrepl.InsertMessage
			decode(w.t, f, &m)
			x.keys = append(x.keys, string(m.Tuple.Columns[0].Data))
			x.at = append(x.at, f.at)
		case 'C':
			decode(w.t, f, &x.commit)
			return x
		}
	}
}

// until reads transactions up to the one that brings the key, and returns all keys.
func (w *wire) until(key string) (keys []string) {
	w.t.Helper()
	for {
		x := w.transaction()
		keys = append(keys, x.keys...)
		if len(x.keys) > 0 && x.keys[len(x.keys)-1] == key {
			return keys
		}
	}
}

func decode(t *testing.T, f frame, into interface{ Decode([]byte) error }) {
	t.Helper()
	if err := into.Decode(f.data[1:]); err != nil {
		t.Fatal(err)
	}
}
