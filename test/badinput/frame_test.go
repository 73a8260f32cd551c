package badinput

import (
	"encoding/binary"
	"io"
	"net"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/walrelay/walrelay/test/kafkaserver"
	"github.com/walrelay/walrelay/test/pgserver"
	"github.com/walrelay/walrelay/test/rig"
)

// TestUndecodableFrameHaltsBeforeAnythingIsPassedOver changes one byte of an insert
// on its way: what nobody understands is neither skipped nor guessed at.
func TestUndecodableFrameHaltsBeforeAnythingIsPassedOver(t *testing.T) {
	t.Parallel()
	// Places in the body of a CopyData frame that carries an insert: after 25 bytes of
	// the header 'w' come 'I', the relation, 'N', the number of columns, the columns.
	for name, at := range map[string]int{"kind of message": 25, "relation": 27, "kind of tuple": 30, "number of columns": 32, "kind of column": 33} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := kafkaserver.Shared(t)
			h := rig.NewHouse(t, pgserver.Shared(t, pgserver.V18), k.Brokers(), k.Topic(t, 1, nil))
			h.Init(t)
			direct := h.PG.URL(h.Database)
			noise := startNoise(t, direct, at)
			h.URL = noise.url
			first := commits(t, h, row("orders", "a", 1))
			r := h.Start(t)
			r.WaitReady(soon)
			confirmedPast(t, h, first)

			noise.armed.Store(true)
			commits(t, h, row("orders", "a", 2))
			last := commits(t, h, row("orders", "b", 3))
			reason := r.WaitNotReady(soon, "halted")
			contains(t, "/readyz", reason, h.Slot, "transaction committed at")
			keeps(t, h, r, 2)
			if n := len(k.Consume(t, h.Topic)); n != 1 {
				t.Errorf("%d records arrived, want only the one before", n)
			}

			h.URL = direct
			h.Start(t)
			confirmedPast(t, h, last)
			var got strings.Builder
			for _, rec := range k.Consume(t, h.Topic) {
				got.Write(rec.Value)
			}
			if got.String() != "123" {
				t.Errorf("arrived %s, want 123: each once and in order", got.String())
			}
		})
	}
}

// noise is a line to Postgres that changes a byte of one insert once it is armed.
type noise struct {
	url   string
	armed atomic.Bool
	at    int
}

func startNoise(t *testing.T, server string, at int) *noise {
	t.Helper()
	u, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	target := u.Host
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() })
	u.Host = ln.Addr().String()
	n := &noise{url: u.String(), at: at}
	go func() {
		for {
			client, err := ln.Accept()
			if err != nil {
				return
			}
			upstream, err := net.Dial("tcp", target)
			if err != nil {
				_ = client.Close()
				continue
			}
			go func() {
				_, _ = io.Copy(upstream, client)
				_ = upstream.Close()
			}()
			go func() {
				n.relay(client, upstream)
				_ = client.Close()
				_ = upstream.Close()
			}()
		}
	}()
	return n
}

// relay passes the server's messages on, one by one.
func (n *noise) relay(client io.Writer, server io.Reader) {
	var head [5]byte
	for {
		if _, err := io.ReadFull(server, head[:]); err != nil {
			return
		}
		body := make([]byte, binary.BigEndian.Uint32(head[1:])-4)
		if _, err := io.ReadFull(server, body); err != nil {
			return
		}
		if head[0] == 'd' && len(body) > 40 && body[0] == 'w' && body[25] == 'I' && n.armed.CompareAndSwap(true, false) {
			body[n.at] ^= 0x55
		}
		if _, err := client.Write(append(head[:], body...)); err != nil {
			return
		}
	}
}
