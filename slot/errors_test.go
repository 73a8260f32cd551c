package slot

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/walrelay/walrelay/event"
)

func TestEveryKnownErrorHasItsClass(t *testing.T) {
	t.Parallel()
	pg := func(code, message string) *pgconn.PgError {
		return &pgconn.PgError{Severity: "ERROR", Code: code, Message: message}
	}
	detail := func(e *pgconn.PgError, detail string) *pgconn.PgError { e.Detail = detail; return e }
	where := func(e *pgconn.PgError, where string) *pgconn.PgError { e.Where = where; return e }
	const none, pre, gapped = event.FaultOther, event.FaultPrecondition, event.FaultGap
	cases := []struct {
		err     error
		class   event.Class
		settled event.Class // the class once the source has worked
		fault   event.Fault
		anchor  event.Anchor
		says    string
	}{
		{pg("57P01", "terminating connection due to administrator command"), event.Retry, event.Retry, none, AnchorUnreachable, ""},
		{pg("57P02", "crash of another server process"), event.Retry, event.Retry, none, AnchorUnreachable, ""},
		{pg("57P03", "the database system is starting up"), event.Retry, event.Retry, none, AnchorUnreachable, ""},
		{pg("08006", "connection failure"), event.Retry, event.Retry, none, AnchorUnreachable, ""},
		{pg("53300", "sorry, too many clients already"), event.Retry, event.Retry, none, AnchorUnreachable, "max_connections"},
		{pg("53300", "number of requested standby connections exceeds \"max_wal_senders\" (currently 2)"), event.Halt, event.Retry, pre, AnchorNoFreeSender, "max_wal_senders"},
		{pg("53300", "number of requested standby connections exceeds max_wal_senders (currently 2)"), event.Halt, event.Retry, pre, AnchorNoFreeSender, "max_wal_senders"},
		{pg("53400", "all replication slots are in use"), event.Halt, event.Halt, pre, AnchorNoFreeSlot, "max_replication_slots"},
		{pg("53100", "could not extend file: No space left on device"), event.Retry, event.Retry, none, AnchorServer, ""},
		{pg("28P01", "password authentication failed for user \"relay\""), event.Halt, event.Retry, pre, AnchorCredentials, "relay"},
		{pg("28000", "no pg_hba.conf entry for replication connection"), event.Halt, event.Retry, pre, AnchorCredentials, "pg_hba.conf"},
		{pg("3D000", "database \"x\" does not exist"), event.Halt, event.Halt, pre, AnchorDatabase, ""},
		{pg("42501", "permission denied to start WAL sender"), event.Halt, event.Halt, pre, AnchorRights, "REPLICATION"},
		{pg("55006", "replication slot \"s\" is active for PID 4711"), event.Retry, event.Retry, none, AnchorSlotActive, "PID 4711"},
		{pg("42704", "replication slot \"s\" does not exist"), event.Halt, event.Halt, gapped, AnchorSlotLost, "walrelay init --new-slot"},
		{where(pg("42704", "publication \"p\" does not exist"), `slot "s", output plugin "pgoutput", in the change callback, associated LSN 0/15695E8`), event.Halt, event.Halt, pre, AnchorPublicationOld, "0/15695E8"},
		{detail(pg("55000", "can no longer get changes from replication slot \"s\""), "This slot has been invalidated because it exceeded the maximum reserved size."), event.Halt, event.Halt, gapped, AnchorSlotInvalid, "maximum reserved size"},
		{detail(pg("55000", "can no longer access replication slot \"s\""), "This replication slot has been invalidated due to \"wal_removed\"."), event.Halt, event.Halt, gapped, AnchorSlotInvalid, "wal_removed"},
		{pg("55000", "logical decoding requires wal_level >= logical"), event.Halt, event.Halt, pre, AnchorWALLevel, "restart"},
		{pg("55000", "replication slot \"s\" was not created in this database"), event.Halt, event.Halt, pre, AnchorSlotWrong, ""},
		{pg("58P01", "requested WAL segment 000000010000000000000001 has already been removed"), event.Halt, event.Halt, gapped, AnchorSlotInvalid, ""},
		{pg("25006", "cannot execute INSERT in a read-only transaction"), event.Retry, event.Retry, none, AnchorStandby, ""},
		{pg("57014", "canceling statement due to statement timeout"), event.Retry, event.Retry, none, AnchorServer, ""},
		{pg("40P01", "deadlock detected"), event.Retry, event.Retry, none, AnchorServer, ""},
		{pg("42P01", "relation \"walrelay.source\" does not exist"), event.Halt, event.Halt, pre, AnchorNotInitialised, "init"},
		{pg("08P01", "unsupported startup parameter: replication"), event.Halt, event.Halt, pre, AnchorPooler, "itself"},
		{pg("26000", "prepared statement \"stmt_1\" does not exist"), event.Halt, event.Halt, pre, AnchorPooler, ""},
		{pg("XX000", "unexpected duplicate for tablespace"), event.Halt, event.Halt, none, AnchorServer, ""},

		{&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, event.Retry, event.Retry, none, AnchorUnreachable, ""},
		{&net.DNSError{Err: "no such host", IsNotFound: true}, event.Retry, event.Retry, none, AnchorUnreachable, ""},
		{io.ErrUnexpectedEOF, event.Retry, event.Retry, none, AnchorUnreachable, ""},
		{io.EOF, event.Retry, event.Retry, none, AnchorUnreachable, ""},
		{net.ErrClosed, event.Retry, event.Retry, none, AnchorUnreachable, ""},
		{context.DeadlineExceeded, event.Retry, event.Retry, none, AnchorUnreachable, ""},
		{errors.New("tls error: server refused TLS connection"), event.Halt, event.Halt, pre, AnchorTLS, "sslmode"},
		{x509.UnknownAuthorityError{}, event.Halt, event.Halt, pre, AnchorTLS, "sslrootcert"},
		{x509.HostnameError{Certificate: &x509.Certificate{}, Host: "h"}, event.Halt, event.Halt, pre, AnchorTLS, ""},
		{pgconn.ErrReadOnlyConnection, event.Retry, event.Retry, none, AnchorStandby, ""},
		{errors.New("something new"), event.Halt, event.Halt, none, AnchorServer, ""},
	}
	for _, c := range cases {
		wrapped := fmt.Errorf("on the way: %w", c.err)
		for _, settled := range []bool{false, true} {
			err := Classify(wrapped, Scene{Doing: "streaming", Slot: "s", Publication: "p", Settled: settled})
			want := c.class
			if settled {
				want = c.settled
			}
			var e *event.Error
			if !errors.As(err, &e) || e.Class != want || e.Anchor != c.anchor || e.Remedy == "" {
				t.Errorf("%v (settled %v): got %v %v, want %v %v", c.err, settled, event.ClassOf(err), err, want, c.anchor)
				continue
			}
			if want == event.Halt && e.Fault != c.fault {
				t.Errorf("%v: fault %v, want %v", c.err, e.Fault, c.fault)
			}
			if !strings.Contains(err.Error(), c.says) || !strings.HasPrefix(err.Error(), "streaming failed: ") {
				t.Errorf("%v: says %q, want %q in it", c.err, err, c.says)
			}
		}
	}
}

func TestHolderOfAnActiveSlotIsFoundInTheError(t *testing.T) {
	t.Parallel()
	err := Classify(&pgconn.PgError{Code: "55006", Message: `replication slot "walrelay_orders" is active for PID 4711`})
	var active *ErrSlotActive
	if !errors.As(err, &active) || active.PID != 4711 || active.Slot != "walrelay_orders" {
		t.Fatalf("got %#v of %v", active, err)
	}
}

func TestAnswersOfOthersPassUnchanged(t *testing.T) {
	t.Parallel()
	own := &event.Error{Class: event.Poison, What: "x"}
	for _, err := range []error{nil, own, context.Canceled, fmt.Errorf("wrapped: %w", own)} {
		if got := Classify(err, Scene{Doing: "x"}); !errors.Is(got, err) || got != err {
			t.Errorf("%v became %v", err, got)
		}
	}
}
