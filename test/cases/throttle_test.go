package cases

import (
	"context"
	"io"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/walrelay/walrelay/test/kafkaserver"
)

// throttle is a slow line to a broker: what clients send passes at a rate, all
// connections together; answers pass at once.
type throttle struct {
	listener net.Listener
	target   atomic.Pointer[string]
	// rate is bytes per second; 0 means no bound.
	rate   atomic.Int64
	passed atomic.Int64 // bytes sent on

	mu   sync.Mutex
	next time.Time // when the line is free again
}

// slowBroker starts a broker that is reached through a throttle. Only clients
// under test go through it.
func slowBroker(t testing.TB) (*kafkaserver.Server, *throttle) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	th := &throttle{listener: l}
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() { th.serve(ctx, &done) })
	t.Cleanup(func() {
		cancel()
		_ = l.Close()
		done.Wait()
	})
	k := kafkaserver.Start(t, kafkaserver.Options{Advertise: func(port int) string {
		target := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		th.target.Store(&target)
		return th.address()
	}})
	return k, th
}

func (th *throttle) address() string { return th.listener.Addr().String() }

func (th *throttle) serve(ctx context.Context, done *sync.WaitGroup) {
	for {
		client, err := th.listener.Accept()
		if err != nil {
			return
		}
		done.Go(func() {
			defer func() { _ = client.Close() }()
			server, err := net.Dial("tcp", *th.target.Load())
			if err != nil {
				return
			}
			defer func() { _ = server.Close() }()
			stop := context.AfterFunc(ctx, func() {
				_ = client.Close()
				_ = server.Close()
			})
			defer stop()
			var back sync.WaitGroup
			back.Go(func() {
				_, _ = io.Copy(client, server)
				_ = client.Close()
			})
			th.copy(ctx, server, client)
			_ = server.Close()
			back.Wait()
		})
	}
}

func (th *throttle) copy(ctx context.Context, to io.Writer, from io.Reader) {
	buf := make([]byte, 16<<10)
	for {
		n, err := from.Read(buf)
		if !th.wait(ctx, n) {
			return
		}
		th.passed.Add(int64(n))
		if _, werr := to.Write(buf[:n]); err != nil || werr != nil {
			return
		}
	}
}

// wait takes n bytes' worth of the line.
func (th *throttle) wait(ctx context.Context, n int) bool {
	rate := th.rate.Load()
	if rate == 0 {
		return true
	}
	th.mu.Lock()
	now := time.Now()
	if th.next.Before(now) {
		th.next = now
	}
	th.next = th.next.Add(time.Duration(n) * time.Second / time.Duration(rate))
	until := th.next
	th.mu.Unlock()
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
