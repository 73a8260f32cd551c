package promises

// P2 Nothing uncommitted is published.
//
// Each way in which a database takes back what was written, beside commits that
// show that the relay reads on.

import (
	"slices"
	"strings"
	"testing"

	"github.com/walrelay/walrelay/test/kafkaserver"
	"github.com/walrelay/walrelay/test/pgserver"
	"github.com/walrelay/walrelay/test/rig"
)

func message(text string) string {
	return `select pg_logical_emit_message(true, 'outbox/orders/k', '"` + text + `"')`
}

func TestP2WhatWasRolledBackNeverReachesKafka(t *testing.T) {
	t.Parallel()
	k := kafkaserver.Shared(t)
	pg := pgserver.Start(t, pgserver.Options{Settings: map[string]string{"max_prepared_transactions": "5", "logical_decoding_work_mem": "64kB"}})
	h := rig.NewHouse(t, pg, k.Brokers(), k.Topic(t, 1, nil))
	h.Postgres = "messages: [outbox]"
	h.Init(t)
	r := h.Start(t)
	s := newSession(t, h)

	s.do("begin", row("no: rolled back"), message("no: rolled back"), "rollback")
	s.do("begin", row("1"), "savepoint a", row("no: savepoint"), message("no: savepoint"), "rollback to a", row("2"), message("3"), "commit")
	s.do("begin", "savepoint a", row("no: outer"), "savepoint b", row("no: inner, released"), "release b", "rollback to a", row("4"), "release a", "commit")
	s.do("begin", row("5"), "savepoint a", row("6"), "savepoint b", row("no: inner"), "rollback to b", "release a", "commit")
	// A function's exception block is a savepoint too.
	s.do(`do $$ begin ` + row("7") + `; begin ` + row("no: exception") + `; raise exception 'oops'; exception when others then null; end; end $$`)
	s.do("begin", row("no: failed statement"))
	s.fails("select 1/0")
	s.do("commit") // which rolls back
	s.do("create table checked (id int primary key deferrable initially deferred)", "insert into checked values (1)")
	s.do("begin", row("no: refused at its commit"), "insert into checked values (1)")
	s.fails("commit")
	s.do("begin", row("no: prepared"), message("no: prepared"), "prepare transaction 'p'", "rollback prepared 'p'")
	s.do("begin", row("8"), message("9"), "prepare transaction 'q'", "commit prepared 'q'")
	// More than the server holds in memory; it is written to disk before it is known how it ends.
	s.do("begin", "do $$ begin for i in 1..20000 loop "+row("no: large")+"; end loop; end $$", "rollback")
	s.do("begin", row("10"), "savepoint a", "do $$ begin for i in 1..20000 loop "+row("no: large savepoint")+"; end loop; end $$", "rollback to a", row("11"), "commit")
	killed := newSession(t, h)
	killed.do("begin", row("no: session killed"))
	s.do("select pg_terminate_backend(pid) from pg_stat_activity where state = 'idle in transaction'")
	s.do(row("12"))
	crashed := newSession(t, h)
	crashed.do("begin", "do $$ begin for i in 1..2000 loop "+row("no: crash")+"; end loop; end $$")
	pg.Restart(t, pgserver.Immediate)
	s = newSession(t, h)
	s.do("begin", row("13"), "commit")
	drained(t, h, s.floor)

	var got []string
	for _, rec := range k.Consume(t, h.Topic) {
		got = append(got, strings.Trim(string(rec.Value), `"`))
	}
	want := []string{"1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13"}
	if !slices.Equal(got, want) {
		t.Errorf("arrived %q, want %q", got, want)
	}
	if code, took := r.Stop(); code != 0 {
		t.Errorf("the stop took %s and exited %d", took, code)
	}
}
