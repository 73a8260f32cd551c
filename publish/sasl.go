package publish

import (
	"context"
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

// SASL says how to authenticate. The zero value does not.
type SASL struct {
	// Mechanism is PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER.
	Mechanism string
	User      string
	Password  string
	// One of these gives OAUTHBEARER its token: the token itself, a file that is read
	// at each authentication, or an endpoint for the client-credentials grant.
	Token     string
	TokenFile string
	Endpoint  TokenEndpoint
	// AllowPlaintext permits PLAIN or OAUTHBEARER without TLS: the secret is then readable on the wire.
	AllowPlaintext bool
}

var mechanisms = []string{"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"}

func (s SASL) validate(encrypted bool) error {
	sources := 0
	for _, set := range []bool{s.Token != "", s.TokenFile != "", s.Endpoint.URL != ""} {
		if set {
			sources++
		}
	}
	switch {
	case s.Mechanism == "":
		if s.User != "" || s.Password != "" || sources > 0 {
			return usage("sasl credentials are given but no mechanism", fmt.Sprintf("set kafka.sasl.mechanism to one of %v", mechanisms))
		}
		return nil
	case !slices.Contains(mechanisms, s.Mechanism):
		return usage(fmt.Sprintf("sasl mechanism %q is unknown", s.Mechanism), fmt.Sprintf("use one of %v", mechanisms))
	case s.Mechanism == "OAUTHBEARER" && sources != 1:
		return usage(fmt.Sprintf("OAUTHBEARER has %d sources of its token, want 1", sources), "set one of token, token_file and endpoint")
	case s.Mechanism != "OAUTHBEARER" && (s.User == "" || s.Password == ""):
		return usage(s.Mechanism+" needs a user and a password", "set kafka.sasl.user and password")
	case !encrypted && !s.AllowPlaintext && (s.Mechanism == "PLAIN" || s.Mechanism == "OAUTHBEARER"):
		return usage(s.Mechanism+" without TLS sends the secret in the clear", "enable kafka.tls, or set kafka.sasl.allow_plaintext: true")
	}
	return s.Endpoint.validate()
}

// mechanism is nil when there is no authentication.
func (s SASL) mechanism(o *Options) sasl.Mechanism {
	switch s.Mechanism {
	case "PLAIN":
		return plain.Auth{User: s.User, Pass: s.Password}.AsMechanism()
	case "SCRAM-SHA-256":
		return scram.Auth{User: s.User, Pass: s.Password}.AsSha256Mechanism()
	case "SCRAM-SHA-512":
		return scram.Auth{User: s.User, Pass: s.Password}.AsSha512Mechanism()
	case "OAUTHBEARER":
		token := tokenSource(s, o.RequestTimeout)
		return oauth.Oauth(func(ctx context.Context) (oauth.Auth, error) {
			t, err := token(ctx)
			return oauth.Auth{Token: t}, err
		})
	default:
		return nil
	}
}

// principal is who we are to the broker, as far as we know.
func (s SASL) principal(t TLS) string {
	switch {
	case s.Mechanism == "OAUTHBEARER":
		return "the principal of the OAuth token"
	case s.User != "":
		return "User:" + s.User
	case t.CertFile != "":
		return "the principal of the client certificate"
	default:
		return "User:ANONYMOUS"
	}
}

// String does not show secrets.
func (s SASL) String() string {
	if s.Mechanism == "" {
		return "none"
	}
	return fmt.Sprintf("%s as %s", s.Mechanism, s.principal(TLS{}))
}

// GoString is String: secrets stay out of %#v, too.
func (s SASL) GoString() string { return s.String() }
