package mongostream

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/topology"

	"github.com/walrelay/walrelay/event"
)

// Classify gives an error of the server, the network or the driver its class; doing completes
// the sentence "… failed". An error that answers already, and the end of the caller's
// context, pass unchanged. The cause's text holds neither documents nor secrets, and is short.
func Classify(err error, doing string) error {
	var classed *event.Error
	if err == nil || errors.As(err, &classed) || errors.Is(err, context.Canceled) && !isServer(err) {
		return err
	}
	e := classifyServer(err)
	if e == nil {
		e = classifyNetwork(err)
	}
	e.Cause = quiet{err}
	if doing != "" {
		e.What = doing + " failed: " + e.What
	}
	return e
}

func isServer(err error) bool {
	var s mongo.ServerError
	return errors.As(err, &s)
}

func classifyNetwork(err error) *event.Error {
	var (
		certificate *tls.CertificateVerificationError
		unknown     x509.UnknownAuthorityError
		hostname    x509.HostnameError
		invalid     x509.CertificateInvalidError
		record      tls.RecordHeaderError
		selection   topology.ServerSelectionError
		netErr      net.Error
	)
	text := err.Error()
	switch {
	case errors.As(err, &certificate), errors.As(err, &unknown), errors.As(err, &hostname), errors.As(err, &invalid), strings.Contains(text, "x509:"):
		return precondition(AnchorTLS, "the server's certificate was not accepted",
			"give the right tlsCAFile and host names that the certificate carries")
	case errors.As(err, &record), strings.Contains(text, "first record does not look like a TLS handshake"):
		return precondition(AnchorTLS, "the server offers no TLS, but the connection asks for it",
			"switch TLS on in the server, or take tls=true out of the URL if the network is trusted")
	case strings.Contains(text, "requires at least"), strings.Contains(text, "wire version"):
		return precondition(AnchorVersion, "the server is too old for the driver", "use MongoDB 4.4 or later (tested with 6.0)")
	case errors.As(err, &selection):
		return unselected(selection)
	case errors.As(err, &netErr), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed),
		errors.Is(err, context.DeadlineExceeded), mongo.IsTimeout(err), mongo.IsNetworkError(err), passingLabel(err),
		errors.Is(err, mongo.ErrClientDisconnected), strings.Contains(text, "connection pool"), strings.Contains(text, "connection("):
		return retry(AnchorUnreachable, "the server cannot be reached", "check that the server runs and that the network lets us through")
	}
	return &event.Error{
		Class: event.Halt, What: "an error that walrelay does not know", Anchor: AnchorServer,
		Remedy: "read the error; if it passes by itself, restart the relay and report it",
	}
}

// passingLabel reports whether the server or the driver has labelled the error as one to try again after.
// The labels are no condition: after a killed server some are missing.
func passingLabel(err error) bool {
	var l mongo.LabeledError
	if !errors.As(err, &l) {
		return false
	}
	return slices.ContainsFunc([]string{"NetworkError", "ResumableChangeStreamError", "TransientTransactionError", "UnknownTransactionCommitResult", "RetryableWriteError", "RetryableError"}, l.HasErrorLabel)
}
