package publish

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/walrelay/walrelay/event"
)

// C43: the next handshake uses the renewed pair; a half-written one changes nothing and is reported.
func TestRenewedCertificateIsUsedAtTheNextConnection(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ca := newAuthority(t)
	names := TLS{
		Enable: true, CAFile: filepath.Join(dir, "ca.pem"), CertFile: filepath.Join(dir, "cert.pem"), KeyFile: filepath.Join(dir, "key.pem"),
	}
	write := func(name string, content []byte) {
		if err := os.WriteFile(name, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(names.CAFile, ca.pem)
	first, second := ca.issue(t, 1), ca.issue(t, 2)
	write(names.CertFile, first.cert)
	write(names.KeyFile, first.key)

	address, peers := ca.serve(t)
	var expiries int
	conditions := map[string]event.Condition{}
	obs := Observer{
		CertificateExpiry: func(time.Time) { expiries++ },
		Condition:         func(key string, c event.Condition) { conditions[key] = c },
	}
	o := Options{TLS: names}.withDefaults()
	dial, err := dialer(&o, &obs)
	if err != nil {
		t.Fatal(err)
	}
	serial := func() int64 {
		conn, err := dial(context.Background(), "tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		return <-peers
	}
	if got := serial(); got != 1 {
		t.Errorf("certificate %d is shown, want 1", got)
	}
	write(names.CertFile, second.cert) // the key is still the old one
	if got := serial(); got != 1 || conditions["kafka/tls"].What == "" {
		t.Errorf("half a pair: certificate %d is shown, condition %v", got, conditions)
	}
	write(names.KeyFile, second.key)
	if got := serial(); got != 2 || conditions["kafka/tls"].What != "" {
		t.Errorf("the whole pair: certificate %d is shown, condition %v", got, conditions)
	}
	if expiries != 2 {
		t.Errorf("%d expiries were told, want 2", expiries)
	}
}

func TestBrokerOfAnotherNameOrAuthorityIsRefused(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	address, _ := ca.serve(t)
	file := filepath.Join(t.TempDir(), "ca.pem")
	for name, c := range map[string]struct {
		pem  []byte
		name string
	}{"authority": {newAuthority(t).pem, ""}, "name": {ca.pem, "another.example"}} {
		if err := os.WriteFile(file, c.pem, 0o600); err != nil {
			t.Fatal(err)
		}
		o := Options{TLS: TLS{Enable: true, CAFile: file, ServerName: c.name}}.withDefaults()
		dial, err := dialer(&o, &Observer{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := dial(context.Background(), "tcp", address); err == nil || !fatalAtStart(err) {
			t.Errorf("wrong %s: %v", name, err)
		}
	}
}

type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

type issued struct{ cert, key []byte }

func newAuthority(t *testing.T) *authority {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(99), Subject: pkix.Name{CommonName: "test"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &authority{cert, key, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}
}

func (a *authority) issue(t *testing.T, serial int64) issued {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "peer"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return issued{
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}),
	}
}

// serve accepts connections and tells the serial number of each client's certificate.
func (a *authority) serve(t *testing.T) (address string, peers chan int64) {
	own := a.issue(t, 50)
	pair, err := tls.X509KeyPair(own.cert, own.key)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		Certificates: []tls.Certificate{pair}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS12,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	peers = make(chan int64, 10)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			tc := conn.(*tls.Conn)
			if tc.Handshake() == nil {
				peers <- tc.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
			}
			conn.Close()
		}
	}()
	return l.Addr().String(), peers
}
