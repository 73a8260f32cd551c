package pgserver

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/walrelay/walrelay/test/ground"
)

// StandbyOptions say what is special about a standby. The zero value streams
// from the primary's own port and has no part in its commits.
type StandbyOptions struct {
	// Settings are lines of postgresql.conf that win over the primary's.
	Settings map[string]string
	// Through is the port that the standby streams from, for instance a Forward's;
	// zero means the primary's own.
	Through int
	// Synchronous makes commits on the primary wait until the standby has applied
	// them (synchronous_commit = remote_apply). The log shows such a commit at once,
	// other sessions see it when the wait is over: pause the standby, or give it an
	// ApplyDelay, to have the time between the two as long as a test needs it.
	Synchronous bool
	// ApplyDelay is the standby's recovery_min_apply_delay.
	ApplyDelay time.Duration
}

// standbyName is the standby's name at its primary, and the slot's that it streams from.
func (s *Server) standbyName() string { return "standby_" + strconv.Itoa(s.port) }

// Standby makes a physical standby of the server and waits until it streams: the
// server is stopped, its data folder copied, and started again, so sessions that
// are open end. The archives of programs hold no pg_basebackup.
func (s *Server) Standby(t testing.TB, opts StandbyOptions) *Server {
	t.Helper()
	s.Stop(t, Fast)
	b := &Server{opts: s.opts, as: s.as, programs: s.programs, password: s.password, ca: s.ca, primary: s}
	err := b.copyOf(s)
	s.StartAgain(t)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("end of the standby's log:\n%s", b.logTail())
		}
		// A primary that waits for this standby would not end its sessions.
		b.unfreeze()
		b.close()
	})
	if err == nil {
		// Its slot keeps the log that it needs, whatever becomes of the wire.
		s.Exec(t, "select pg_create_physical_replication_slot($1, true)", b.standbyName())
		err = b.follow(opts)
	}
	if err != nil {
		t.Fatalf("start a standby: %v", err)
	}
	s.awaitStandby(t, b, "state = 'streaming'")
	if opts.Synchronous {
		s.Set(t, "synchronous_commit", "remote_apply")
		s.Set(t, "synchronous_standby_names", b.standbyName())
		s.awaitStandby(t, b, "sync_state = 'sync'")
	}
	return b
}

// copyOf takes a folder, a port, and a copy of a stopped server's data without
// what pg_basebackup leaves out too: its slots and what belongs to the process.
func (s *Server) copyOf(primary *Server) error {
	dir, release, err := ground.RunDir(s.opts.Version.String() + "-standby")
	if err != nil {
		return err
	}
	s.release = append(s.release, release)
	s.dir, s.data = dir, filepath.Join(dir, "data")
	if err := copyTree(primary.data, s.data, s.as); err != nil {
		return fmt.Errorf("copy the primary's data folder: %w", err)
	}
	for _, leftover := range []string{"postmaster.pid", "postmaster.opts", "postgresql.auto.conf"} {
		if err := os.Remove(filepath.Join(s.data, leftover)); err != nil && !os.IsNotExist(err) {
			return err
		}
	}
	slots, err := filepath.Glob(filepath.Join(s.data, "pg_replslot", "*"))
	if err != nil {
		return err
	}
	for _, slot := range slots {
		if err := os.RemoveAll(slot); err != nil {
			return err
		}
	}
	port, release, err := ground.Port()
	if err != nil {
		return err
	}
	s.release = append(s.release, release)
	s.port = port
	return nil
}

// follow writes the standby's configuration and starts it.
func (s *Server) follow(opts StandbyOptions) error {
	through := opts.Through
	if through == 0 {
		through = s.primary.port
	}
	settings := maps.Clone(s.opts.Settings)
	if settings == nil {
		settings = map[string]string{}
	}
	settings["primary_conninfo"] = fmt.Sprintf("host=127.0.0.1 port=%d user=postgres password=%s dbname=postgres application_name=%s",
		through, s.password, s.standbyName())
	settings["primary_slot_name"] = s.standbyName()
	settings["wal_retrieve_retry_interval"] = "200ms"
	// A vacuum on the primary would else cancel the standby's slots and queries.
	settings["hot_standby_feedback"] = "on"
	if opts.ApplyDelay > 0 {
		settings["recovery_min_apply_delay"] = strconv.FormatInt(opts.ApplyDelay.Milliseconds(), 10) + "ms"
	}
	maps.Copy(settings, opts.Settings)
	s.opts.Settings = settings
	if err := s.configure(); err != nil {
		return err
	}
	if err := s.write("data/standby.signal", "", 0o600); err != nil {
		return err
	}
	return s.run()
}

// awaitStandby waits until the primary says so of its standby.
func (s *Server) awaitStandby(t testing.TB, standby *Server, condition string) {
	t.Helper()
	conn := s.Conn(t)
	await(t, "a standby with "+condition, func(ctx context.Context) (ok bool, err error) {
		err = conn.QueryRow(ctx, "select exists (select from pg_stat_replication where application_name = $1 and "+condition+")", standby.standbyName()).Scan(&ok)
		return ok, err
	})
}

// AwaitReplay waits until the standby has applied all that its primary has written.
func (s *Server) AwaitReplay(t testing.TB) {
	t.Helper()
	var end string
	if err := s.primary.Conn(t).QueryRow(context.Background(), "select pg_current_wal_lsn()::text").Scan(&end); err != nil {
		t.Fatalf("ask the primary for the end of its log: %v", err)
	}
	s.AwaitReplayOf(t, end)
}

// AwaitReplayOf waits until the standby has applied the log up to a position.
func (s *Server) AwaitReplayOf(t testing.TB, lsn string) {
	t.Helper()
	conn := s.Conn(t)
	await(t, "the replay of "+lsn, func(ctx context.Context) (ok bool, err error) {
		err = conn.QueryRow(ctx, "select pg_last_wal_replay_lsn() >= $1::text::pg_lsn", lsn).Scan(&ok)
		return ok, err
	})
}

// SyncSlot has the standby copy the primary's failover slots and waits until the
// one named is there and would outlive a promotion; Postgres 17 and later. Its
// consumer has to move it meanwhile: a copy is good from where the standby can
// decode, which is later than where a slot begins that was never confirmed.
func (s *Server) SyncSlot(t testing.TB, slot string) {
	t.Helper()
	s.AwaitReplay(t)
	// Only now: a worker that finds nothing to do looks ever more rarely.
	s.Set(t, "sync_replication_slots", "on")
	primary, conn := s.primary.Conn(t), s.Conn(t)
	await(t, "the synced slot "+slot, func(ctx context.Context) (ok bool, err error) {
		// It lets the slot's consumer move its restart_lsn and catalog_xmin; an idle one
		// follows the log in strides of a megabyte.
		if _, err := primary.Exec(ctx, "select pg_logical_emit_message(false, 'filler', repeat('x', 2000000)), pg_log_standby_snapshot()"); err != nil {
			return false, err
		}
		err = conn.QueryRow(ctx, "select exists (select from pg_replication_slots where slot_name = $1 and synced and not temporary and invalidation_reason is null)", slot).Scan(&ok)
		return ok, err
	})
}

// Promote makes the standby a primary on a timeline of its own and waits until it
// takes writes. Its former primary is left as it is: stop it first, or cut it off,
// where two primaries would confuse the test.
func (s *Server) Promote(t testing.TB) {
	t.Helper()
	conn := s.Conn(t)
	var done bool
	if err := conn.QueryRow(context.Background(), "select pg_promote(true, 60)").Scan(&done); err != nil || !done {
		t.Fatalf("promote the standby: %t, %v\n%s", done, err, s.logTail())
	}
	await(t, "the end of recovery", func(ctx context.Context) (ok bool, err error) {
		err = conn.QueryRow(ctx, "select not pg_is_in_recovery()").Scan(&ok)
		return ok, err
	})
}

// Timeline is the timeline that a promoted or never promoted server writes.
func (s *Server) Timeline(t testing.TB) int {
	t.Helper()
	var file string
	if err := s.Conn(t).QueryRow(context.Background(), "select pg_walfile_name(pg_current_wal_lsn())").Scan(&file); err != nil {
		t.Fatalf("ask for the timeline: %v", err)
	}
	timeline, err := strconv.ParseInt(file[:8], 16, 32)
	if err != nil {
		t.Fatalf("the log file %q names no timeline: %v", file, err)
	}
	return int(timeline)
}

// await asks again until the answer is yes; for a minute, since the machine may be busy.
func await(t testing.TB, what string, ask func(context.Context) (bool, error)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), readyWithin)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		ok, err := ask(ctx)
		if ok {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s was not there within %s: %v", what, readyWithin, err)
		case <-tick.C:
		}
	}
}
