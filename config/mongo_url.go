package config

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/mongostream"
)

// MongoURL is a MongoDB connection string. It keeps the text as given and prints
// it with everything masked that is, or could be, a secret.
type MongoURL struct{ raw string }

// Reveal is the text itself, for the one place that connects.
func (u MongoURL) Reveal() string { return u.raw }

// IsZero reports whether there is no text.
func (u MongoURL) IsZero() bool { return u.raw == "" }

// String is the text with its secrets masked.
func (u MongoURL) String() string {
	if u.raw == "" {
		return ""
	}
	shown, secrets, ok := dissectMongoURL(u.raw)
	if !ok || containsAny(shown, secrets) {
		return masked
	}
	return shown
}

// Format masks under every verb; without it %d would walk into the struct.
func (u MongoURL) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, u.String()) }

// MarshalText masks for JSON and for whatever else asks for text.
func (u MongoURL) MarshalText() ([]byte, error) { return []byte(u.String()), nil }

// MarshalYAML masks.
func (u MongoURL) MarshalYAML() (any, error) { return u.String(), nil }

// Check reads the connection string as the driver will, without connecting. Its
// error never holds a part of a secret.
func (u MongoURL) Check() error {
	_, secrets, ok := dissectMongoURL(u.raw)
	if !ok {
		return errors.New("has to begin with mongodb:// or mongodb+srv://")
	}
	err := (&mongostream.Options{URL: u.raw}).ValidateURL()
	if err == nil {
		return nil
	}
	reason := err.Error()
	if e := (*event.Error)(nil); errors.As(err, &e) {
		reason = e.What
	}
	if quotesPartOf(reason, secrets) {
		return errors.New("is refused by the driver; the reason is withheld because it quotes a part of a secret")
	}
	return errors.New("is refused: " + reason)
}

func (u *MongoURL) parse(text string) error {
	u.raw = text
	return nil
}

func (MongoURL) want() string { return "a connection string" }

// visibleMongoOptions may be printed. Any other option, such as a misspelt one, is
// masked together with its name.
var visibleMongoOptions = map[string]bool{
	"replicaset": true, "directconnection": true, "tls": true, "ssl": true, "authsource": true, "authmechanism": true,
	"readpreference": true, "readconcernlevel": true, "w": true, "journal": true, "retrywrites": true, "retryreads": true,
	"appname": true, "connecttimeoutms": true, "heartbeatfrequencyms": true, "serverselectiontimeoutms": true,
	"sockettimeoutms": true, "timeoutms": true, "maxpoolsize": true, "minpoolsize": true, "compressors": true,
	"loadbalanced": true, "srvservicename": true, "tlscafile": true, "tlscertificatekeyfile": true, "localthresholdms": true,
}

// dissectMongoURL is the text to show and what must not be shown of it: user and password
// before the last @ of the authority, and options that are not known to be harmless.
func dissectMongoURL(raw string) (shown string, secrets []string, ok bool) {
	scheme := "mongodb://"
	rest, found := strings.CutPrefix(raw, scheme)
	if !found {
		scheme = "mongodb+srv://"
		if rest, found = strings.CutPrefix(raw, scheme); !found {
			return "", nil, false
		}
	}
	authority, options, _ := strings.Cut(rest, "?")
	hosts := authority
	if at := strings.LastIndexByte(authority, '@'); at >= 0 {
		user, password, _ := strings.Cut(authority[:at], ":")
		secrets = append(secrets, password)
		hosts = authority[at+1:]
		shown = user + ":" + masked + "@"
		if password == "" {
			shown = user + "@"
		}
	}
	shown = scheme + shown + hosts
	for i, o := range strings.Split(options, "&") {
		if o == "" {
			continue
		}
		sep := "&"
		if i == 0 {
			sep = "?"
		}
		key, value, _ := strings.Cut(o, "=")
		if visibleMongoOptions[strings.ToLower(key)] {
			shown += sep + o
			continue
		}
		secrets = append(secrets, value)
		shown += sep + masked + "=" + masked
	}
	return shown, secrets, true
}
