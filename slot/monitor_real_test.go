package slot_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/slot"
	"github.com/walrelay/walrelay/test/pgserver"
)

// begin starts replication by hand.
func begin(t *testing.T, o slot.Options, at event.LSN) (*pgconn.PgConn, error) {
	t.Helper()
	conn, err := slot.ConnectReplication(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn, pglogrepl.StartReplication(t.Context(), conn, o.Slot, pglogrepl.LSN(at), pglogrepl.StartReplicationOptions{
		PluginArgs: []string{"proto_version '1'", "publication_names '" + slot.QuotePublicationName(o.Publication) + "'"},
	})
}

func TestMarkerNeverGoesBackUnlessItIsOfAnotherLog(t *testing.T) {
	t.Parallel()
	o := fresh(t, pgserver.Shared(t, pgserver.V15), event.Forze)
	conn := connect(t, o)
	apply(t, conn, o)
	stored := func() slot.Marker {
		m, err := slot.ReadMarker(t.Context(), conn, o)
		if err != nil || m == nil {
			t.Fatalf("marker %v, %v", m, err)
		}
		return *m
	}
	write := func(m slot.Marker) {
		if err := slot.WriteMarker(t.Context(), conn, o, m); err != nil {
			t.Fatal(err)
		}
	}
	m := slot.Marker{SystemID: "7", Timeline: 1, Slot: "a", Confirmed: 0x1_0000_1000, Phase: event.PhaseStreaming, Publication: "p1"}
	write(m)
	late := m
	late.Confirmed, late.Phase = 0x1_0000_0fff, event.PhaseCreated
	write(late)
	if got := stored(); got != m {
		t.Fatalf("an older position took it back: %+v", got)
	}
	m.Publication = "p2"
	write(m)
	m.Confirmed++
	write(m)
	if got := stored(); got != m {
		t.Fatalf("want %+v, got %+v", m, got)
	}
	for _, other := range []slot.Marker{
		{SystemID: "8", Timeline: 1, Slot: "a", Confirmed: 100, Phase: event.PhaseCreated},
		{SystemID: "8", Timeline: 2, Slot: "a", Confirmed: 99, Phase: event.PhaseCreated},
		{SystemID: "8", Timeline: 2, Slot: "b", Confirmed: 98, Phase: event.PhaseCreated},
	} {
		write(other)
		if got := stored(); got != other {
			t.Fatalf("want %+v, got %+v", other, got)
		}
	}
	back := slot.Marker{SystemID: "8", Timeline: 2, Slot: "b", Confirmed: 5, Phase: event.PhaseCreated}
	if err := slot.ReplaceMarker(t.Context(), conn, o, back); err != nil || stored() != back {
		t.Fatalf("replaced: %+v, %v", stored(), err)
	}
	o.Bookkeeping = slot.NoBookkeeping
	if none, err := slot.ReadMarker(t.Context(), conn, o); none != nil || err != nil {
		t.Fatalf("without bookkeeping: %v, %v", none, err)
	}
	if err := slot.WriteMarker(t.Context(), conn, o, m); err != nil {
		t.Fatal(err)
	}
}

// TestHolderOfTheSlotIsNamed is case C05.
func TestHolderOfTheSlotIsNamed(t *testing.T) {
	t.Parallel()
	everyVersion(t, func(t *testing.T, srv *pgserver.Server) {
		o := fresh(t, srv, event.Forze)
		conn := connect(t, o)
		apply(t, conn, o)
		if pid, _, err := slot.Holder(t.Context(), conn, o.Slot); pid != 0 || err != nil {
			t.Fatalf("a free slot is held by %d, %v", pid, err)
		}
		first, err := begin(t, o, 0)
		if err != nil {
			t.Fatal(err)
		}
		_, err = begin(t, o, 0)
		err = slot.Classify(err)
		var active *slot.ErrSlotActive
		if !errors.As(err, &active) || active.PID != int(first.PID()) || active.Slot != o.Slot || event.ClassOf(err) != event.Retry {
			t.Fatalf("got %v", err)
		}
		pid, application, err := slot.Holder(t.Context(), conn, o.Slot)
		if err != nil || pid != active.PID || application != "walrelay/orders" {
			t.Fatalf("held by %d (%s), %v", pid, application, err)
		}
		// The walsender says where it is once it has sent its first keepalive.
		report, err := slot.ReadSlot(t.Context(), conn, o.Slot)
		for range 100 {
			if err != nil || report.SentLSN != 0 {
				break
			}
			run(t, conn, "select pg_sleep(0.05)")
			report, err = slot.ReadSlot(t.Context(), conn, o.Slot)
		}
		if err != nil || !report.Active || report.SentLSN == 0 || report.ServerHead < report.ConfirmedLSN || report.ConfirmedLSN < report.RestartLSN ||
			report.WALStatus != "reserved" || report.RetainedBytes <= 0 || report.SafeBytes != -1 || report.At.IsZero() {
			t.Fatalf("report %+v, %v", report, err)
		}
		facts, err := slot.VerifyForStream(t.Context(), conn, o)
		if err != nil || facts.Slot.ActivePID != pid || facts.Slot.ActiveApp != application {
			t.Fatalf("facts %+v, %v", facts.Slot, err)
		}
		_, err = slot.ReadSlot(t.Context(), conn, "no_such_slot")
		halted(t, err, slot.AnchorSlotLost, "no_such_slot")
	})
}

// TestInvalidatedSlotIsAGapThatNamesTheLastPosition is case C02.
func TestInvalidatedSlotIsAGapThatNamesTheLastPosition(t *testing.T) {
	t.Parallel()
	for _, v := range pgserver.Versions {
		t.Run(v.String(), func(t *testing.T) {
			t.Parallel()
			srv := pgserver.Start(t, pgserver.Options{Version: v, SegmentMB: 1, Settings: map[string]string{
				"max_slot_wal_keep_size": "2MB", "min_wal_size": "2MB", "max_wal_size": "4MB",
			}})
			o := fresh(t, srv, event.Forze)
			conn := connect(t, o)
			apply(t, conn, o)
			run(t, conn, "create table noise (x text)")
			for range 3 {
				run(t, conn, "insert into noise select repeat('x', 1000) from generate_series(1, 8000)")
				run(t, conn, "checkpoint")
			}
			report, err := slot.ReadSlot(t.Context(), conn, o.Slot)
			if err != nil || report.WALStatus != "lost" || report.Invalidation == "" {
				t.Fatalf("report %+v, %v", report, err)
			}
			marker, err := slot.ReadMarker(t.Context(), conn, o)
			if err != nil {
				t.Fatal(err)
			}
			facts, err := slot.VerifyForStream(t.Context(), conn, o)
			if err != nil {
				t.Fatal(err)
			}
			_, err = slot.Judge(marker, facts)
			halted(t, err, slot.AnchorSlotInvalid, o.Slot, "lost", marker.Confirmed.String(), "walrelay init --new-slot")
			refused(t, o, "position", "lost", slot.AnchorSlotInvalid)
			// Without looking first, the server's own error says the same.
			refusedStream, err := begin(t, o, marker.Confirmed)
			halted(t, slot.Classify(err, slot.Scene{Slot: o.Slot}), slot.AnchorSlotInvalid, o.Slot)
			_ = refusedStream.Close(t.Context())
			for { // the refused walsender holds the slot until it has noticed
				_, err := slot.ReplaceSlot(t.Context(), conn, o)
				if err == nil {
					break
				}
				if event.ClassOf(err) != event.Retry {
					t.Fatal(err)
				}
				run(t, conn, "select pg_sleep(0.02)")
			}
			if facts, err = slot.VerifyForStream(t.Context(), conn, o); err != nil || facts.Slot.Invalidation != "" {
				t.Fatalf("after replacing it: %+v, %v", facts.Slot, err)
			}
		})
	}
}

// TestPublicationYoungerThanTheSlotIsExplained is case C08. Since Postgres 18 the
// server passes such rows over in silence; the fingerprint in the marker is for that.
func TestPublicationYoungerThanTheSlotIsExplained(t *testing.T) {
	t.Parallel()
	for _, v := range []pgserver.Version{pgserver.V15, pgserver.V16, pgserver.V17} {
		o := fresh(t, pgserver.Shared(t, v), event.Basic)
		conn := connect(t, o)
		apply(t, conn, o)
		run(t, conn, "drop publication "+o.Publication)
		run(t, conn, `insert into outbox (aggregate_type, aggregate_id, event_type, payload) values ('order', '1', 'created', '{}')`)
		run(t, conn, "create publication "+o.Publication+" for table outbox")
		_, err := conn.Exec(t.Context(), `select * from pg_logical_slot_peek_binary_changes($1, null, null, 'proto_version', '1', 'publication_names', $2)`,
			o.Slot, slot.QuoteIdent(o.Publication))
		halted(t, slot.Classify(err, slot.Scene{Doing: "streaming", Slot: o.Slot, Publication: o.Publication}),
			slot.AnchorPublicationOld, o.Publication, "the row at 0/", o.Slot)
	}
}

func TestSlotThatSomebodyAdvancedIsAGap(t *testing.T) {
	t.Parallel()
	everyVersion(t, func(t *testing.T, srv *pgserver.Server) {
		o := fresh(t, srv, event.Basic)
		conn := connect(t, o)
		apply(t, conn, o)
		for range 100 {
			run(t, conn, `insert into outbox (aggregate_type, aggregate_id, event_type, payload) values ('order', '1', 'created', '{}')`)
		}
		run(t, conn, "select pg_replication_slot_advance($1, pg_current_wal_lsn())", o.Slot)
		marker, err := slot.ReadMarker(t.Context(), conn, o)
		if err != nil {
			t.Fatal(err)
		}
		facts, err := slot.VerifyForStream(t.Context(), conn, o)
		if err != nil {
			t.Fatal(err)
		}
		_, err = slot.Judge(marker, facts)
		halted(t, err, slot.AnchorSlotAdvanced, marker.Confirmed.String(), facts.Slot.Confirmed.String())
	})
}

// TestEndOfLogConfirmedAtShutdownIsNoGap: the last status of a client may reach a
// server that takes no writes any more, so no marker precedes it.
func TestEndOfLogConfirmedAtShutdownIsNoGap(t *testing.T) {
	t.Parallel()
	for _, v := range pgserver.Versions {
		for _, archive := range []string{"off", "on"} {
			t.Run(v.String()+" archiving "+archive, func(t *testing.T) {
				t.Parallel()
				srv := pgserver.Start(t, pgserver.Options{Version: v, Settings: map[string]string{"archive_mode": archive, "archive_command": "true"}})
				o := fresh(t, srv, event.Basic)
				conn := connect(t, o)
				apply(t, conn, o)
				for range 5 {
					run(t, conn, `insert into outbox (aggregate_type, aggregate_id, event_type, payload) values ('order', '1', 'created', '{}')`)
				}
				// On a busy machine the server may be gone before the client has answered.
				for range 3 {
					if shutdownMovesTheSlot(t, srv, v, o) {
						return
					}
				}
				t.Error("nothing was tested: the slot never passed the marker")
			})
		}
	}
}

// shutdownMovesTheSlot stops the server beside a client that confirms all, starts
// it again and judges; it reports whether the slot passed the marker thereby.
func shutdownMovesTheSlot(t *testing.T, srv *pgserver.Server, v pgserver.Version, o slot.Options) bool {
	conn := connect(t, o)
	// All five are published and the marker says so.
	end, err := event.ParseLSN(ask[string](t, conn, "select pg_current_wal_insert_lsn()::text"))
	if err != nil {
		t.Fatal(err)
	}
	before, err := slot.VerifyForStream(t.Context(), conn, o)
	if err != nil {
		t.Fatal(err)
	}
	marker := slot.Marker{SystemID: before.SystemID, Timeline: before.Timeline, Slot: o.Slot, Confirmed: end, Phase: event.PhaseStreaming}
	if err := slot.WriteMarker(t.Context(), conn, o, marker); err != nil {
		t.Fatal(err)
	}
	stream, err := begin(t, o, end)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan event.LSN)
	go func() { ended <- confirmAll(stream, end) }()
	if took := srv.Stop(t, pgserver.Fast); took > 10*time.Second {
		t.Fatalf("the shutdown took %v", took)
	}
	last := <-ended
	srv.StartAgain(t)
	conn = connect(t, o)
	after, err := slot.VerifyForStream(t.Context(), conn, o)
	if err != nil {
		t.Fatal(err)
	}
	start, err := slot.Judge(&marker, after)
	if err != nil {
		t.Fatalf("the client confirmed %s; after the restart: %v (checkpoint %s)", last, err, after.ShutdownCheckpoint)
	}
	if v < pgserver.V17 {
		return true // there the slot goes back at a restart
	}
	if after.Slot.Confirmed <= end {
		return false
	}
	if !strings.Contains(start.Note, "shutdown") {
		t.Errorf("slot at %s, marker at %s, %s", after.Slot.Confirmed, end, start.Note)
	}
	return true
}

// confirmAll confirms the end of the log whenever the server mentions it, until
// the server ends the connection.
func confirmAll(stream *pgconn.PgConn, at event.LSN) event.LSN {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for {
		msg, err := stream.ReceiveMessage(ctx)
		if err != nil {
			return at
		}
		data, ok := msg.(*pgproto3.CopyData)
		if !ok || data.Data[0] != pglogrepl.PrimaryKeepaliveMessageByteID {
			continue
		}
		alive, err := pglogrepl.ParsePrimaryKeepaliveMessage(data.Data[1:])
		if err != nil {
			return at
		}
		at = max(at, event.LSN(alive.ServerWALEnd))
		if err := pglogrepl.SendStandbyStatusUpdate(ctx, stream, pglogrepl.StandbyStatusUpdate{
			WALWritePosition: pglogrepl.LSN(at), WALFlushPosition: pglogrepl.LSN(at), WALApplyPosition: pglogrepl.LSN(at),
		}); err != nil {
			return at
		}
	}
}
