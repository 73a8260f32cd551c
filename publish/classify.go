package publish

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/walrelay/walrelay/event"
)

// ErrStopped is why a record was not sent: an earlier one of its source stopped it.
var ErrStopped = errors.New("an earlier event stopped its source")

// ErrClosed is why a record has no acknowledgement: the publisher was closed first.
var ErrClosed = errors.New("the publisher was closed")

func errClosed() *event.Error {
	return &event.Error{
		Class: event.Retry, Fault: event.FaultUnacknowledged, What: "kafka: closed before acknowledgement",
		Anchor: AnchorClosed, Cause: ErrClosed,
	}
}

// classify says what a broker's refusal of a batch means. What nobody foresaw is
// Retry, not Halt: nothing is lost by trying again, and the condition shows it.
func classify(err error) (event.Class, string) {
	switch {
	case errors.Is(err, kerr.MessageTooLarge), errors.Is(err, kerr.RecordListTooLarge):
		return event.Poison, "too_large"
	case errors.Is(err, kerr.InvalidTimestamp):
		return event.Poison, "timestamp"
	case errors.Is(err, kerr.InvalidRecord):
		return event.Poison, "invalid"
	case errors.Is(err, kerr.CorruptMessage):
		return event.Poison, "corrupt"
	case errors.Is(err, kerr.PolicyViolation):
		return event.Poison, "policy"
	case errors.Is(err, kerr.InvalidTopicException):
		return event.Poison, "topic"
	case errors.Is(err, kerr.ClusterAuthorizationFailed), errors.Is(err, kerr.UnsupportedVersion):
		// Raised by the request for a producer id; franz-go does not ask again.
		return event.Halt, "producer"
	default:
		return event.Retry, "retry"
	}
}

// collateral reports that a record failed only because one before it did.
func collateral(err error) bool { return errors.Is(err, context.Canceled) }

// explain turns an error into a reason for not being ready. topic may be empty.
func (p *Publisher) explain(topic string, err error) event.Condition {
	where := "kafka: "
	if topic != "" {
		where = "topic " + topic + ": "
	}
	who := p.opts.SASL.principal(p.opts.TLS)
	var cert *tls.CertificateVerificationError
	switch {
	case errors.Is(err, kerr.UnknownTopicOrPartition), errors.Is(err, kerr.UnknownTopicID):
		return event.Condition{
			What:   where + "does not exist; its events wait in order",
			Remedy: "create it, or set kafka.create_topics: true", Anchor: AnchorTopicMissing,
		}
	case errors.Is(err, kerr.TopicAuthorizationFailed):
		return event.Condition{
			What:   fmt.Sprintf("%s%s may not write to it (TOPIC_AUTHORIZATION_FAILED); its events wait in order", where, who),
			Remedy: fmt.Sprintf("grant Write and Describe on topic %s to %s", topic, who), Anchor: AnchorACL,
		}
	case errors.Is(err, kerr.ClusterAuthorizationFailed):
		return event.Condition{
			What:   fmt.Sprintf("%s%s may not use the idempotent producer (CLUSTER_AUTHORIZATION_FAILED)", where, who),
			Remedy: fmt.Sprintf("grant Write on the topics, or IdempotentWrite on the cluster, to %s", who), Anchor: AnchorACL,
		}
	case errors.Is(err, kerr.SaslAuthenticationFailed), errors.Is(err, kerr.UnsupportedSaslMechanism), errors.Is(err, kerr.IllegalSaslState):
		return event.Condition{
			What:   fmt.Sprintf("%sthe broker refused %s: %v", where, who, err),
			Remedy: "check kafka.sasl: mechanism, user and password or token", Anchor: AnchorAuthentication,
		}
	case errors.As(err, &cert):
		return event.Condition{
			What: fmt.Sprintf("%sthe broker's certificate is not trusted: %v", where, err),
			// The name matters as often as the authority.
			Remedy: "check kafka.tls.ca_file, and that the certificate names the broker's host or kafka.tls.server_name", Anchor: AnchorTLS,
		}
	case errors.Is(err, kerr.NotEnoughReplicas), errors.Is(err, kerr.NotEnoughReplicasAfterAppend):
		return event.Condition{
			What:   fmt.Sprintf("%sfewer replicas are in sync than min.insync.replicas asks for; its events wait in order", where),
			Remedy: "bring the missing brokers back", Anchor: AnchorReplicas,
		}
	case errors.Is(err, kerr.UnsupportedVersion):
		return event.Condition{
			What: where + "the broker is too old for the idempotent producer", Remedy: "use Kafka 1.0 or newer", Anchor: AnchorVersion,
		}
	case topic == "":
		return event.Condition{
			What:   fmt.Sprintf("%sno broker of %v answers: %v", where, p.opts.Brokers, err),
			Remedy: "check kafka.brokers and that the brokers run and can be reached", Anchor: AnchorUnreachable,
		}
	default:
		return event.Condition{
			What:   fmt.Sprintf("%sthe broker refuses records: %v; they wait in order and are tried again", where, err),
			Remedy: "see the broker's log", Anchor: AnchorRetry,
		}
	}
}

// fatalAtStart reports an error that waiting cannot cure.
func fatalAtStart(err error) bool {
	var cert *tls.CertificateVerificationError
	return errors.Is(err, kerr.SaslAuthenticationFailed) || errors.Is(err, kerr.UnsupportedSaslMechanism) ||
		errors.Is(err, kerr.IllegalSaslState) || errors.Is(err, kerr.UnsupportedVersion) || errors.As(err, &cert)
}

// closedByUs reports that franz-go gave a record back because the client is gone.
func closedByUs(err error) bool { return errors.Is(err, kgo.ErrClientClosed) }
