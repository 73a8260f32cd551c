package mongostream

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/address"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/description"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/topology"

	"github.com/walrelay/walrelay/event"
)

func as(err error, target **event.Error) bool { return errors.As(err, target) }

func command(code int32, message string, labels ...string) error {
	return mongo.CommandError{Code: code, Name: "Name", Message: message, Labels: labels}
}

func TestEveryErrorHasItsClass(t *testing.T) {
	t.Parallel()
	type want struct {
		class  event.Class
		fault  event.Fault
		anchor event.Anchor
	}
	again := func(a event.Anchor) want { return want{event.Retry, event.FaultOther, a} }
	missing := func(a event.Anchor) want { return want{event.Halt, event.FaultPrecondition, a} }
	lost := want{event.Halt, event.FaultGap, AnchorPositionLost}
	unknown := want{event.Halt, event.FaultOther, AnchorServer}
	selection := func(kind description.ServerKind, last error) error {
		return topology.ServerSelectionError{Wrapped: context.DeadlineExceeded, Desc: description.Topology{
			Servers: []description.Server{{Addr: address.Address("h1:27017"), Kind: kind, LastError: last}},
		}}
	}
	for _, c := range []struct {
		err  error
		want want
	}{
		{command(6, ""), again(AnchorUnreachable)},
		{command(91, ""), again(AnchorUnreachable)},
		{command(11600, ""), again(AnchorUnreachable)},
		{command(189, ""), again(AnchorNoPrimary)},
		{command(10107, ""), again(AnchorNoPrimary)},
		{command(13436, ""), again(AnchorNoPrimary)},
		{command(216, ""), again(AnchorNoPrimary)},
		{command(43, ""), again(AnchorServer)},
		{command(50, ""), again(AnchorServer)},
		{command(112, ""), again(AnchorServer)},
		{command(134, ""), again(AnchorServer)},
		{command(237, ""), again(AnchorServer)},
		{command(64, ""), again(AnchorMajority)},
		{mongo.WriteException{WriteConcernError: &mongo.WriteConcernError{Code: 64}}, again(AnchorMajority)},
		{mongo.WriteException{WriteErrors: mongo.WriteErrors{{Code: 11000}}}, again(AnchorServer)},
		{command(13, ""), missing(AnchorRights)},
		{command(18, ""), missing(AnchorCredentials)},
		{command(8000, ""), missing(AnchorCredentials)},
		{command(40573, ""), missing(AnchorStandalone)},
		{command(20, "Transaction numbers are only allowed on a replica set member or mongos"), missing(AnchorStandalone)},
		{command(20, "something else"), unknown},
		{command(40324, ""), missing(AnchorVersion)},
		{command(290, ""), again(AnchorServer)},
		{command(121, ""), missing(AnchorCollection)},
		{command(292, ""), missing(AnchorIndex)},
		{command(26, ""), missing(AnchorNotInitialised)},
		{command(286, "", "NonResumableChangeStreamError"), lost},
		{command(260, ""), lost},
		{command(280, ""), lost},
		{command(136, ""), lost},
		{command(50811, ""), lost},
		{command(99999, "", "NonResumableChangeStreamError"), lost},
		{command(99999, "", "ResumableChangeStreamError"), again(AnchorServer)},
		{command(99999, ""), unknown},
		{command(10334, ""), want{event.Halt, event.FaultOther, AnchorOversize}},
		{command(0, "connection pool for h1:1 was cleared", "TransientTransactionError"), again(AnchorServer)},
		{command(0, "connection(h1:1) broke"), again(AnchorUnreachable)},
		{mongo.ErrClientDisconnected, again(AnchorUnreachable)},
		{io.ErrUnexpectedEOF, again(AnchorUnreachable)},
		{context.DeadlineExceeded, again(AnchorUnreachable)},
		{&net.OpError{Op: "read", Err: errors.New("reset")}, again(AnchorUnreachable)},
		{x509.UnknownAuthorityError{}, missing(AnchorTLS)},
		{selection(0, errors.New("connection refused")), again(AnchorUnreachable)},
		{selection(description.ServerKindRSSecondary, nil), again(AnchorNoPrimary)},
		{errors.New("server at h1 reports wire version 5, but this version of the driver requires at least 9"), missing(AnchorVersion)},
		{errors.New("?"), unknown},
	} {
		for _, err := range []error{c.err, fmt.Errorf("wrapped: %w", c.err)} {
			var e *event.Error
			if got := Classify(err, "reading"); !as(got, &e) || (want{e.Class, e.Fault, e.Anchor}) != c.want {
				t.Errorf("%v is %+v, want %+v", c.err, e, c.want)
			} else if e.Remedy == "" || !strings.HasPrefix(e.What, "reading failed: ") || !errors.Is(got, c.err) && !sameType(got, c.err) {
				t.Errorf("%v: %+v", c.err, e)
			}
		}
	}
}

// sameType stands for errors.Is where the error's type cannot be compared.
func sameType(got, want error) bool {
	for ; got != nil; got = errors.Unwrap(got) {
		if fmt.Sprintf("%T", got) == fmt.Sprintf("%T", want) {
			return true
		}
	}
	return false
}

func TestWhatAnswersAlreadyAndTheCallersEndPassUnchanged(t *testing.T) {
	t.Parallel()
	for _, err := range []error{nil, context.Canceled, fmt.Errorf("x: %w", context.Canceled), &event.Error{Class: event.Poison, What: "x"}} {
		if got := Classify(err, "reading"); got != err {
			t.Errorf("%v became %v", err, got)
		}
	}
}

func TestMessagesHoldNoDocumentsAndAreShort(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err   error
		keeps string
	}{
		{command(13, `not authorized on shop to execute command { insert: "walrelay_parked", documents: [ { payload: "`+secret+`" } ] }`), `insert: "walrelay_parked"`},
		{mongo.WriteException{WriteErrors: mongo.WriteErrors{{Code: 11000, Message: `E11000 duplicate key error collection: shop.outbox index: x dup key: { a: "` + secret + `" }`}}}, "collection: shop.outbox index: x"},
		{mongo.WriteException{WriteErrors: mongo.WriteErrors{{Code: 121, Message: "Document failed validation", Details: []byte(secret)}}}, "failed validation"},
		{command(99999, strings.Repeat("long ", 1000)), "long"},
		{topology.ServerSelectionError{Desc: description.Topology{Servers: []description.Server{{Addr: "h1:27017", LastError: errors.New(strings.Repeat("x", 5000))}, {Addr: "h2:27017"}}}}, "h2:27017"},
	} {
		text := Classify(c.err, "writing").Error()
		if strings.Contains(text, secret) || len(text) > 900 || !strings.Contains(text, c.keeps) {
			t.Errorf("%d bytes: %s", len(text), text)
		}
	}
}
