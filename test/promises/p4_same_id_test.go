package promises

// P4 Few duplicates, honestly bounded: what is repeated after a crash can be
// told by its event id, also where the application gave none.

import (
	"fmt"
	"io"
	"net"
	"net/url"
	"strconv"
	"sync"
	"testing"
)

func TestP4RedeliveredMessageHasTheSameEventID(t *testing.T) {
	t.Parallel()
	h, k := messageHouse(t, "")
	direct := h.PG.URL(h.Database)
	line := newOneWay(t, h.PG.Port())
	h.URL = line.through(t, direct)
	r := h.Start(t)
	drained(t, h, emit(t, h, true, "outbox/orders/k", []byte("before")))
	// From here on Postgres hears nothing from the relay, and the relay everything
	// from Postgres: Kafka has what the slot does not know of.
	line.hold()
	s := newSession(t, h)
	s.do("begin", row("between"), `select pg_logical_emit_message(true, 'outbox/orders/k', 'first')`,
		`select pg_logical_emit_message(true, 'outbox', '{"route":"orders","key":"k","payload":"second"}')`, "commit",
		"begin", `select pg_logical_emit_message(true, 'outbox/orders/k', 'third')`, "commit")
	first := ids(k.ConsumeN(t, 5, soon, h.Topic))
	r.Kill()
	h.URL = direct
	h.Start(t).WaitReady(soon)
	drained(t, h, s.floor)
	all := ids(k.Consume(t, h.Topic))
	for _, value := range []string{"first", `"second"`, "third"} {
		if got := all[value]; len(got) != 2 || got[0] != got[1] || got[0] != first[value][0] || got[0] == "" {
			t.Errorf("message %s arrived with the event ids %q, want the same one twice", value, got)
		}
	}
	if len(all["before"]) != 1 {
		t.Errorf("a confirmed message arrived %d times", len(all["before"]))
	}
	if distinct := fmt.Sprint(all["first"][0], all[`"second"`][0], all["third"][0], all["before"][0]); len(map[string]bool{
		all["first"][0]: true, all[`"second"`][0]: true, all["third"][0]: true, all["before"][0]: true,
	}) != 4 {
		t.Errorf("four messages have the event ids %s", distinct)
	}
}

// oneWay is a proxy to Postgres that can hold back what the client says.
type oneWay struct {
	listener net.Listener
	target   string

	mu    sync.Mutex
	held  bool
	freed chan struct{}
	conns []net.Conn
}

func newOneWay(t *testing.T, port int) *oneWay {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &oneWay{listener: l, target: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), freed: make(chan struct{})}
	var done sync.WaitGroup
	done.Go(func() { w.serve(&done) })
	t.Cleanup(func() {
		_ = l.Close()
		close(w.freed)
		w.mu.Lock()
		for _, c := range w.conns {
			_ = c.Close()
		}
		w.mu.Unlock()
		done.Wait()
	})
	return w
}

// through is the connection string by way of the proxy.
func (w *oneWay) through(t *testing.T, dsn string) string {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	u.Host = w.listener.Addr().String()
	return u.String()
}

// hold keeps back all that clients say from now on, for good.
func (w *oneWay) hold() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.held = true
}

func (w *oneWay) holding() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.held
}

func (w *oneWay) serve(done *sync.WaitGroup) {
	for {
		client, err := w.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", w.target)
		if err != nil {
			_ = client.Close()
			return
		}
		w.mu.Lock()
		w.conns = append(w.conns, client, server)
		w.mu.Unlock()
		done.Go(func() {
			_, _ = io.Copy(client, server)
			_ = client.Close()
		})
		done.Go(func() {
			defer func() { _ = server.Close() }()
			buf := make([]byte, 16<<10)
			for {
				n, err := client.Read(buf)
				if w.holding() && n > 0 {
					<-w.freed
					return
				}
				if _, werr := server.Write(buf[:n]); err != nil || werr != nil {
					return
				}
			}
		})
	}
}
