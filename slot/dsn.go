package slot

import (
	"crypto/tls"
	"errors"
	"net"
	"regexp"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/walrelay/walrelay/event"
)

// Both patterns only ever loosen what is safer without them, and pgx has parsed
// the string already: a spelling that they miss ends on the safe side.
var (
	asksForPrefer = regexp.MustCompile(`(?i)\bsslmode\s*=\s*'?prefer\b`)
	// parameterName is what a run-time parameter may be called, extensions' ones included.
	parameterName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.$]*$`)
	asksForAny    = regexp.MustCompile(`(?i)\btarget_session_attrs\s*=\s*'?any\b`)
)

// ParseDSN reads a connection URL or a keyword string as libpq does (several
// hosts, environment, password file, service file), with two defaults of its own:
//
//   - target_session_attrs is read-write, so that among several hosts the primary is found;
//   - sslmode, where nothing says otherwise, is disable for a loopback address
//     and a Unix socket, and verify-full for every other host. A mode that is
//     written down is honoured, also require, prefer and allow, which do not
//     verify the server; [Check] warns of them.
//
// Errors say nothing of the string itself: it holds a password.
func ParseDSN(dsn string) (*pgx.ConnConfig, error) {
	cfg, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, &event.Error{
			Class: event.Halt, Fault: event.FaultUsage, Anchor: AnchorOptions,
			What:   "the connection string cannot be read: " + withoutString(err),
			Remedy: "write postgres://user:password@host:5432/database with %-escapes for special characters, or host=… user=… password='…' dbname=…",
		}
	}
	for name := range cfg.RuntimeParams {
		// A URL without its two slashes reads as one long keyword, and would lead to
		// whatever server is the default.
		if !parameterName.MatchString(name) {
			return nil, &event.Error{
				Class: event.Halt, Fault: event.FaultUsage, Anchor: AnchorOptions,
				What:   "the connection string cannot be read: it has a keyword that cannot be one",
				Remedy: "write postgres://user:password@host:5432/database with both slashes, or host=… user=… password='…' dbname=…",
			}
		}
	}
	if cfg.ValidateConnect == nil && !asksForAny.MatchString(dsn) {
		cfg.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	if !asksForPrefer.MatchString(dsn) {
		hardenTLS(cfg)
	}
	return cfg, nil
}

// withoutString is the part of a parse error that cannot hold a piece of the
// password. pgx masks what it recognises, which is not all that people mistype.
func withoutString(err error) string {
	text := err.Error()
	for _, safe := range []string{
		"failed to parse as URL", "failed to parse as keyword/value", "invalid port", "could not match", "invalid connect_timeout",
		"unknown target_session_attrs value", "invalid min_protocol_version", "invalid max_protocol_version", "invalid sslcertmode",
		"unknown channel_binding value", "invalid require_auth",
	} {
		if strings.Contains(text, "`: "+safe) {
			return safe
		}
	}
	// These are about files, and name them.
	for _, safe := range []string{"failed to configure TLS", "failed to read service"} {
		if inner := errors.Unwrap(err); inner != nil && strings.Contains(text, "`: "+safe) {
			return safe + ": " + inner.Error()
		}
	}
	return "it is neither a URL nor a list of keywords"
}

// hardenTLS replaces libpq's default. "prefer" is recognised by its two attempts
// at one host: encrypted without verification, then plain. The TLS
// configurations are changed in place, which is allowed as long as nobody has
// used them, and keeps the client certificate that pgx has tied to each.
func hardenTLS(cfg *pgx.ConnConfig) {
	attempts := append([]*pgconn.FallbackConfig{{Host: cfg.Host, Port: cfg.Port, TLSConfig: cfg.TLSConfig}}, cfg.Fallbacks...)
	var kept []*pgconn.FallbackConfig
	for i := 0; i < len(attempts); i++ {
		a := attempts[i]
		prefer := i+1 < len(attempts) && a.TLSConfig != nil && attempts[i+1].TLSConfig == nil &&
			a.Host == attempts[i+1].Host && a.Port == attempts[i+1].Port
		if prefer {
			i++
			if isLocal(a.Host) {
				a.TLSConfig = nil
			} else {
				a.TLSConfig.InsecureSkipVerify = false
				a.TLSConfig.ServerName = a.Host
			}
		}
		kept = append(kept, a)
	}
	cfg.Host, cfg.Port, cfg.TLSConfig = kept[0].Host, kept[0].Port, kept[0].TLSConfig
	cfg.Fallbacks = kept[1:]
}

func isLocal(host string) bool {
	if network, _ := pgconn.NetworkAddress(host, 0); network == "unix" {
		return true
	}
	if ip := net.ParseIP(host); ip != nil {
		return ip.IsLoopback()
	}
	return host == "localhost"
}

// unverified names the first remote host that is reached without proof of who
// it is, and what is missing.
func unverified(cfg *pgconn.Config) (host, why string) {
	check := func(h string, t *tls.Config) (string, string) {
		switch {
		case isLocal(h):
			return "", ""
		case t == nil:
			return h, "may be reached without encryption"
		case t.InsecureSkipVerify && t.VerifyPeerCertificate == nil:
			return h, "is encrypted, but the server's certificate is not verified"
		case t.InsecureSkipVerify:
			return h, "has its certificate verified, but not its name"
		}
		return "", ""
	}
	host, why = check(cfg.Host, cfg.TLSConfig)
	for _, f := range cfg.Fallbacks {
		if host != "" {
			break
		}
		host, why = check(f.Host, f.TLSConfig)
	}
	return host, why
}
