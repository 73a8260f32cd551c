package slot

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/walrelay/walrelay/event"
)

// session is one replication connection in copy mode. The pump alone uses it.
type session struct {
	conn net.Conn
	// read is the client library's view of conn: in a slow moment of the handshake
	// it may have read ahead there, so the stream is read through it too.
	read io.Reader
}

// pluginArgs are the options of pgoutput that walrelay streams with.
func pluginArgs(publication string, messages bool) []string {
	args := []string{"proto_version '1'", "publication_names '" + QuotePublicationName(publication) + "'"}
	if messages {
		args = append(args, "messages 'true'")
	}
	return args
}

// openSession connects and starts replication at a position. On success no byte
// of the stream has been read yet.
func openSession(ctx context.Context, cfg *pgconn.Config, opt Options, at event.LSN, args []string) (*session, error) {
	cfg = cfg.Copy()
	var read io.Reader
	cfg.BuildFrontend = func(r io.Reader, w io.Writer) *pgproto3.Frontend {
		read = r
		return pgproto3.NewFrontend(&boundaryReader{r: r}, w)
	}
	pc, err := pgconn.ConnectConfig(ctx, cfg)
	if err != nil {
		return nil, err
	}
	if opt.Temporary {
		_, err = pglogrepl.CreateReplicationSlot(ctx, pc, QuoteIdent(opt.Slot), "pgoutput", pglogrepl.CreateReplicationSlotOptions{
			Temporary: true, SnapshotAction: "NOEXPORT_SNAPSHOT", Mode: pglogrepl.LogicalReplication,
		})
		at = 0 // where the slot begins
	}
	if err == nil {
		err = pglogrepl.StartReplication(ctx, pc, QuoteIdent(opt.Slot), pglogrepl.LSN(at), pglogrepl.StartReplicationOptions{
			Mode: pglogrepl.LogicalReplication, PluginArgs: args,
		})
	}
	if err != nil {
		closeCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = pc.Close(closeCtx)
		return nil, err
	}
	if n := pc.Frontend().ReadBufferLen(); n != 0 {
		// Cannot be, see boundaryReader; losing these bytes would lose events.
		_ = pc.Conn().Close()
		return nil, fmt.Errorf("the client library holds %d bytes of the stream back", n)
	}
	h, err := pc.Hijack()
	if err != nil {
		return nil, err
	}
	// The library's context watcher may have left a deadline behind.
	if err := h.Conn.SetDeadline(time.Time{}); err != nil {
		return nil, err
	}
	return &session{conn: h.Conn, read: read}, nil
}

// serverError reads an ErrorResponse frame's body.
func serverError(body []byte) error {
	var msg pgproto3.ErrorResponse
	if err := msg.Decode(body); err != nil {
		return errors.Join(errFrame, err)
	}
	return pgconn.ErrorResponseToPgError(&msg)
}

// noticeError finds the one notice that means a loss. Since Postgres 18 rows that
// are older than the publication are no error any more: the server passes them
// over and warns (55000, "skipped loading publication"). It does so before the
// transaction's commit, so nothing of it has been confirmed.
func noticeError(body []byte, opt Options) error {
	var msg pgproto3.NoticeResponse
	if err := msg.Decode(body); err != nil {
		return errors.Join(errFrame, err)
	}
	if msg.Code != "55000" {
		return nil
	}
	return precondition(AnchorPublicationOld,
		fmt.Sprintf("publication %s did not exist when a row that is read now was written, and making it now does not help that row: %s (%s)", opt.Publication, msg.Message, msg.Detail),
		fmt.Sprintf("slot %s cannot see a publication that is younger than it: make sure that the publication exists; ", opt.Slot)+remedyNewSlot)
}

// goodbye ends copy mode and waits, until ctx ends, for the server to say that
// it has seen the end: everything sent before, the last status included, has
// then been taken in.
func (s *session) goodbye(ctx context.Context) error {
	deadline, ok := ctx.Deadline()
	if !ok {
		deadline = time.Now().Add(5 * time.Second)
	}
	if err := s.conn.SetDeadline(deadline); err != nil {
		return err
	}
	if _, err := s.conn.Write([]byte{msgCopyDone, 0, 0, 0, 4}); err != nil {
		return err
	}
	buf := make([]byte, 0, 64<<10)
	for {
		for len(buf) >= frameHeader {
			size, err := frameSize(buf)
			if err != nil {
				return err
			}
			if buf[0] == msgReady || buf[0] == msgError {
				// Terminate: the server need not wonder where we went.
				_, err := s.conn.Write([]byte{'X', 0, 0, 0, 4})
				return err
			}
			if size > len(buf) {
				// The rest of a frame nobody wants: skip it as it comes.
				if _, err := io.CopyN(io.Discard, s.read, int64(size-len(buf))); err != nil {
					return err
				}
				size = len(buf)
			}
			buf = buf[:copy(buf, buf[size:])]
		}
		n, err := s.read.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		if err != nil {
			return err
		}
	}
}
