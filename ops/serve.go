package ops

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"syscall"
	"time"

	"go.uber.org/zap"

	"github.com/walrelay/walrelay/event"
)

// Limits of the server. Answers are small; a client that needs longer is not reading.
const (
	headerTimeout = 5 * time.Second
	readTimeout   = 10 * time.Second
	writeTimeout  = 30 * time.Second
	idleTimeout   = time.Minute
	closeTimeout  = 3 * time.Second
	maxHeader     = 16 << 10
)

// Server is the HTTP server of an Ops; it listens from the moment it is made.
type Server struct {
	ops      *Ops
	listener net.Listener
	http     *http.Server
}

// Listen opens the address of the setting http.listen. An address that cannot be
// had is a Halt error that names the setting.
func (o *Ops) Listen(ctx context.Context, listen string) (*Server, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", listen)
	if err != nil {
		return nil, listenError(listen, err)
	}
	return &Server{ops: o, listener: l, http: &http.Server{
		Handler:           o.Handler(),
		ReadHeaderTimeout: headerTimeout, ReadTimeout: readTimeout,
		WriteTimeout: writeTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader,
		ErrorLog: zap.NewStdLog(o.facts.log.Named("http")),
	}}, nil
}

func listenError(listen string, err error) error {
	e := &event.Error{
		Class: event.Halt, Fault: event.FaultPrecondition, Anchor: AnchorListen, Cause: err,
		What:   fmt.Sprintf("http.listen: cannot listen on %q", listen),
		Remedy: "set http.listen to an address of this machine, such as 127.0.0.1:8372",
	}
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		e.What = fmt.Sprintf("http.listen: %s is in use by another process", listen)
		e.Remedy = "set http.listen to a free port, or stop the other process (another walrelay?)"
	case errors.Is(err, syscall.EACCES):
		e.What = fmt.Sprintf("http.listen: this user may not listen on %s", listen)
		e.Remedy = "set http.listen to a port above 1023"
	}
	return e
}

// Addr is where the server listens.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// Run serves, and takes the steps of [Ops.Run], until ctx ends; then it lets open
// answers finish within three seconds. It returns nil after an end by ctx.
func (s *Server) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	wg.Go(func() { s.ops.Run(ctx) })

	served := make(chan error, 1)
	wg.Go(func() { served <- s.http.Serve(s.listener) })
	select {
	case err := <-served:
		return &event.Error{
			Class: event.Halt, What: "http.listen: the server ended", Cause: err,
			Remedy: "restart the relay; if it happens again, look for limits on open files", Anchor: AnchorListen,
		}
	case <-ctx.Done():
	}
	grace, done := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer done()
	if err := s.http.Shutdown(grace); err != nil {
		return s.http.Close() // a reader that does not read must not keep the process
	}
	return nil
}

// Serve is Listen and Run in one.
func (o *Ops) Serve(ctx context.Context, listen string) error {
	s, err := o.Listen(ctx, listen)
	if err != nil {
		return err
	}
	return s.Run(ctx)
}
