package config

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/slot"
)

// DSN is a Postgres connection string. It keeps the text as given and prints it
// with everything masked that is, or could be, a secret; where the parts cannot
// be told apart for certain, all of it.
type DSN struct{ raw string }

// NewDSN makes a DSN of a text, whatever it holds; Check says whether it is one.
func NewDSN(raw string) DSN { return DSN{raw} }

// Reveal is the text itself, for the one place that connects.
func (d DSN) Reveal() string { return d.raw }

// IsZero reports whether there is no text.
func (d DSN) IsZero() bool { return d.raw == "" }

// String is the text with its secrets masked.
func (d DSN) String() string {
	if d.raw == "" {
		return ""
	}
	shown, secrets, err := dissectDSN(d.raw)
	if err != nil || containsAny(shown, secrets) {
		return masked
	}
	return shown
}

// Format masks under every verb; without it %d would walk into the struct.
func (d DSN) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, d.String()) }

// MarshalText masks for JSON and for whatever else asks for text.
func (d DSN) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// MarshalYAML masks.
func (d DSN) MarshalYAML() (any, error) { return d.String(), nil }

// Check reads the connection string as the driver will, without connecting. Its
// error never holds a part of a secret.
func (d DSN) Check() error {
	_, secrets, err := dissectDSN(d.raw)
	if err != nil {
		return err
	}
	if _, err = slot.ParseDSN(d.raw); err == nil {
		return nil
	}
	reason := err.Error()
	if e := (*event.Error)(nil); errors.As(err, &e) {
		reason = e.What
	}
	if quotesPartOf(reason, secrets) {
		return errors.New("cannot be read; the reason is withheld because it quotes a part of a secret")
	}
	return errors.New("is refused by the driver: " + reason)
}

func (d *DSN) parse(text string) error {
	d.raw = text
	return nil
}

func (DSN) want() string { return "a connection string" }

// visibleSettings are the settings whose values may be printed. Any other,
// such as a misspelt pasword, is masked together with its name.
var visibleSettings = map[string]bool{
	"host": true, "hostaddr": true, "port": true, "user": true, "dbname": true, "database": true, "sslmode": true,
	"ssl": true, "sslcert": true, "sslkey": true, "sslrootcert": true, "sslcrl": true, "sslnegotiation": true,
	"sslsni": true, "sslcertmode": true, "target_session_attrs": true, "load_balance_hosts": true, "application_name": true,
	"fallback_application_name": true, "connect_timeout": true, "keepalives": true, "keepalives_idle": true,
	"keepalives_interval": true, "keepalives_count": true, "tcp_user_timeout": true, "channel_binding": true,
	"require_auth": true, "service": true, "servicefile": true, "passfile": true, "krbspn": true, "krbsrvname": true,
	"gssencmode": true, "client_encoding": true, "search_path": true, "timezone": true, "datestyle": true,
	"statement_timeout": true, "lock_timeout": true, "min_protocol_version": true, "max_protocol_version": true,
	"password": false, "sslpassword": false,
}

// shownSetting is how a setting prints, and its value if that is a secret.
func shownSetting(key, rawKey, rawValue, value string) (shown, secret string) {
	visible, known := visibleSettings[strings.ToLower(key)]
	switch {
	case visible:
		return rawKey + "=" + rawValue, ""
	case known:
		return rawKey + "=" + masked, value
	default:
		return masked + "=" + masked, value
	}
}
