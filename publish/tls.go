package publish

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"github.com/walrelay/walrelay/event"
)

// TLS are the settings of encrypted connections. Verification of the broker's
// certificate and name cannot be turned off.
type TLS struct {
	Enable bool
	// CAFile holds the authorities to trust, PEM; empty: the system's.
	CAFile string
	// CertFile and KeyFile are the client's certificate for mTLS, PEM; both or none.
	CertFile, KeyFile string
	// ServerName replaces the broker's host name in the verification.
	ServerName string
}

func (t TLS) validate() error {
	switch {
	case (t.CertFile == "") != (t.KeyFile == ""):
		return usage("only one of tls.cert_file and tls.key_file is set", "set both or none")
	case !t.Enable && (t.CAFile != "" || t.CertFile != "" || t.ServerName != ""):
		return usage("tls settings are given but tls is not enabled", "set kafka.tls.enable: true")
	}
	return nil
}

// dialer dials as the options say, with TLS on top if asked for. Files that
// cannot be used at the beginning are an error.
func dialer(o *Options, obs *Observer) (func(context.Context, string, string) (net.Conn, error), error) {
	if !o.TLS.Enable {
		return o.Dial, nil
	}
	files := &tlsFiles{TLS: o.TLS, obs: obs}
	if _, err := files.config(); err != nil {
		return nil, &event.Error{
			Class: event.Halt, Fault: event.FaultPrecondition, What: "kafka: the TLS files cannot be used",
			Remedy: "check kafka.tls.ca_file, cert_file and key_file", Anchor: AnchorTLS, Cause: err,
		}
	}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		cfg, err := files.config()
		if cfg == nil {
			return nil, err
		}
		if cfg.ServerName == "" {
			host, _, err := net.SplitHostPort(address)
			if err != nil {
				return nil, err
			}
			cfg = cfg.Clone()
			cfg.ServerName = host
		}
		raw, err := o.Dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		conn := tls.Client(raw, cfg)
		if err := conn.HandshakeContext(ctx); err != nil {
			return nil, errors.Join(err, raw.Close())
		}
		return conn, nil
	}, nil
}

// tlsFiles reads the files again, before a connection is made, when one of them
// has changed. Files that do not make a whole leave the last good ones in force.
type tlsFiles struct {
	TLS
	obs *Observer

	mu    sync.Mutex
	seen  [3]fileState
	good  *tls.Config
	amiss bool
}

type fileState struct {
	size  int64
	mtime time.Time
}

// config is the configuration to use now. The error says what is wrong with the
// files; the configuration is nil only if none was ever good.
func (f *tlsFiles) config() (*tls.Config, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := [3]fileState{stat(f.CAFile), stat(f.CertFile), stat(f.KeyFile)}
	if f.good != nil && now == f.seen {
		return f.good, nil
	}
	cfg, notAfter, err := f.load()
	if err != nil {
		if f.good != nil {
			f.amiss = true
			f.obs.condition("kafka/tls", event.Condition{
				What:   fmt.Sprintf("kafka: the TLS files changed and cannot be used; the former ones stay in force: %v", err),
				Remedy: "write certificate, key and authorities anew", Anchor: AnchorTLS,
			})
		}
		return f.good, err // looked at again at the next connection
	}
	f.good, f.seen = cfg, now
	if f.amiss {
		f.amiss = false
		f.obs.condition("kafka/tls", event.Condition{})
	}
	if !notAfter.IsZero() {
		f.obs.certificateExpiry(notAfter)
	}
	return cfg, nil
}

func (f *tlsFiles) load() (*tls.Config, time.Time, error) {
	cfg := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: f.ServerName}
	if f.CAFile != "" {
		pem, err := os.ReadFile(f.CAFile)
		if err != nil {
			return nil, time.Time{}, err
		}
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM(pem) {
			return nil, time.Time{}, fmt.Errorf("%s holds no certificate in PEM form", f.CAFile)
		}
	}
	if f.CertFile == "" {
		return cfg, time.Time{}, nil
	}
	pair, err := tls.LoadX509KeyPair(f.CertFile, f.KeyFile)
	if err != nil {
		return nil, time.Time{}, err
	}
	cfg.Certificates = []tls.Certificate{pair}
	leaf := pair.Leaf
	if leaf == nil {
		if leaf, err = x509.ParseCertificate(pair.Certificate[0]); err != nil {
			return nil, time.Time{}, err
		}
	}
	return cfg, leaf.NotAfter, nil
}

func stat(name string) fileState {
	if name == "" {
		return fileState{}
	}
	info, err := os.Stat(name)
	if err != nil {
		return fileState{size: -1}
	}
	return fileState{info.Size(), info.ModTime()}
}
