package slot

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/walrelay/walrelay/event"
)

// Scene is what was going on when an error came up.
type Scene struct {
	// Doing completes the sentence "… failed".
	Doing             string
	Slot, Publication string
	// Settled says that this source has worked before in this process. Wrong
	// credentials or a full server are then passing troubles (a password is being
	// rotated), while at a first start they are mistakes.
	Settled bool
}

// ErrSlotActive says who has the slot; errors.As finds it inside an *event.Error.
type ErrSlotActive struct {
	Slot string
	PID  int
	// ApplicationName of the holder; empty where only the server's message was at hand.
	ApplicationName string
}

func (e *ErrSlotActive) Error() string {
	if e.ApplicationName == "" {
		return fmt.Sprintf("slot %s is active for PID %d", e.Slot, e.PID)
	}
	return fmt.Sprintf("slot %s is active for PID %d (%s)", e.Slot, e.PID, e.ApplicationName)
}

// Classify gives an error of the server, the network or the client library its
// class; of several scenes the first counts. An error that answers already, and
// the end of the caller's context, pass unchanged.
func Classify(err error, scene ...Scene) error {
	var s Scene
	if len(scene) > 0 {
		s = scene[0]
	}
	var classed *event.Error
	if err == nil || errors.As(err, &classed) || errors.Is(err, context.Canceled) {
		return err
	}
	if e := classifyServer(err, s); e != nil {
		return s.finish(e, err)
	}
	return s.finish(classifyNetwork(err), err)
}

func (s Scene) finish(e *event.Error, cause error) *event.Error {
	if e.Cause == nil {
		e.Cause = cause
	}
	if s.Doing != "" {
		e.What = s.Doing + " failed: " + e.What
	}
	return e
}

func retry(anchor event.Anchor, what, remedy string) *event.Error {
	return &event.Error{Class: event.Retry, What: what, Remedy: remedy, Anchor: anchor}
}

func precondition(anchor event.Anchor, what, remedy string) *event.Error {
	return &event.Error{Class: event.Halt, Fault: event.FaultPrecondition, What: what, Remedy: remedy, Anchor: anchor}
}

func gap(anchor event.Anchor, what, remedy string) *event.Error {
	return &event.Error{Class: event.Halt, Fault: event.FaultGap, What: what, Remedy: remedy, Anchor: anchor}
}

// passing turns a precondition into Retry where the source has worked before.
func (s Scene) passing(e *event.Error) *event.Error {
	if s.Settled {
		e.Class, e.Fault = event.Retry, event.FaultOther
	}
	return e
}

func pooler() *event.Error {
	return precondition(AnchorPooler, "a connection pooler answers instead of Postgres, and replication cannot pass through it",
		"give the source the address of the Postgres server itself; or write capture: poll, which works through a pooler")
}

func classifyNetwork(err error) *event.Error {
	var (
		certificate *tls.CertificateVerificationError
		unknown     x509.UnknownAuthorityError
		hostname    x509.HostnameError
		invalid     x509.CertificateInvalidError
		netErr      net.Error
	)
	switch {
	case errors.As(err, &certificate), errors.As(err, &unknown), errors.As(err, &hostname), errors.As(err, &invalid):
		return precondition(AnchorTLS, "the server's certificate was not accepted",
			"give the right sslrootcert and a host name that the certificate carries, or choose another sslmode")
	case strings.Contains(err.Error(), "server refused TLS connection"):
		return precondition(AnchorTLS, "the server offers no TLS, but the connection asks for it",
			"switch ssl on in the server, or write sslmode=disable if the network is trusted")
	case errors.Is(err, pgconn.ErrReadOnlyConnection):
		return retry(AnchorStandby, "none of the hosts is a primary that can be written to",
			"wait for the failover to end, or add the primary to the hosts")
	case errors.As(err, &netErr), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed),
		errors.Is(err, context.DeadlineExceeded), pgconn.Timeout(err), pgconn.SafeToRetry(err), strings.Contains(err.Error(), "conn closed"):
		return retry(AnchorUnreachable, "the server cannot be reached", "check that the server runs and that the network lets us through")
	}
	return &event.Error{
		Class: event.Halt, What: "an error that walrelay does not know", Anchor: AnchorServer,
		Remedy: "read the error; if it passes by itself, restart the relay and report it",
	}
}

var (
	activeFor  = regexp.MustCompile(`is active for PID (\d+)`)
	activeSlot = regexp.MustCompile(`replication slot "([^"]+)"`)
)

// slotActive is the error of a slot that another connection uses.
func slotActive(slot, message string) *event.Error {
	a := &ErrSlotActive{Slot: slot}
	if m := activeSlot.FindStringSubmatch(message); m != nil && slot == "" {
		a.Slot = m[1]
	}
	if m := activeFor.FindStringSubmatch(message); m != nil {
		a.PID, _ = strconv.Atoi(m[1])
	}
	return activeBy(a)
}

// activeError is the same, told from the facts: with the holder's name.
func activeError(o Options, f Facts) error {
	return activeBy(&ErrSlotActive{Slot: o.Slot, PID: f.Slot.ActivePID, ApplicationName: f.Slot.ActiveApp})
}

func activeBy(a *ErrSlotActive) *event.Error {
	e := retry(AnchorSlotActive, "another connection has the slot; standing by until it lets go",
		"nothing, if that is another instance of this relay; otherwise end the backend of that PID")
	e.Cause = a
	return e
}
