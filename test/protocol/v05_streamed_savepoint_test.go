package protocol

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/jackc/pglogrepl"

	"github.com/walrelay/walrelay/test/pgserver"
)

// V5. A large transaction that is streamed before its commit (protocol 2) brings
// rows that a savepoint takes back later: the stream abort names transaction and
// subtransaction, and only the latter's rows are void. Protocol 1 brings what
// stays, and nothing of the rest.

const savepoint = `begin;
	insert into outbox select 'first-' || i, repeat('x', 200) from generate_series(1, 500) i;
	savepoint s;
	insert into outbox select 'void-' || i, repeat('x', 200) from generate_series(1, 500) i;
	rollback to savepoint s;
	insert into outbox select 'last-' || i, repeat('x', 200) from generate_series(1, 5) i;
	commit`

func fewMemory(p *place) { p.settings = []string{"logical_decoding_work_mem", "64kB"} }

func TestStreamedTransactionTakesBackASavepoint(t *testing.T) {
	everyVersion(t, func(t *testing.T, srv *pgserver.Server) {
		p := newPlace(t, srv)
		fewMemory(p)
		w := p.begin(t, 0, plugin("p", proto2, "streaming 'on'")...)
		p.exec(t, savepoint)
		rows := map[uint32]int{} // by subtransaction
		wire, segments := 0, 0
		var top, sub uint32
		for done := false; !done; {
			f := w.message()
			body := f.data[1:]
			switch f.kind() {
			case 'S':
				segments++
				top = binary.BigEndian.Uint32(body)
			case 'I': // with the subtransaction in front, inside of a segment
				wire++
				rows[binary.BigEndian.Uint32(body)]++
			case 'A':
				sub = binary.BigEndian.Uint32(body[4:])
				if got := binary.BigEndian.Uint32(body); got != top || sub == top {
					t.Errorf("abort of %d in %d, want a subtransaction of %d", sub, got, top)
				}
				delete(rows, sub)
			case 'c':
				done = true
			}
		}
		valid := 0
		for _, n := range rows {
			valid += n
		}
		t.Logf("%d segments, %d rows on the wire, %d valid", segments, wire, valid)
		if segments < 2 || wire <= 505 || sub == 0 || valid != 505 {
			t.Errorf("%d segments, %d rows on the wire, abort of %d, %d rows valid; want several, more than 505, one, 505", segments, wire, sub, valid)
		}
	})
}

func TestProtocolOneBringsNothingOfWhatWasTakenBack(t *testing.T) {
	everyVersion(t, func(t *testing.T, srv *pgserver.Server) {
		p := newPlace(t, srv)
		fewMemory(p)
		// Once read as it is written, once when the outcome is known already: Postgres 18
		// looks it up before it spills, and early releases of it were seen to send a
		// stream abort to clients of protocol 1 (estuary/connectors#5228); 18.6 does not.
		live := p.begin(t, 0)
		afterwards := p.with(p.newSlot(t, "afterwards"))
		p.exec(t, `begin; insert into outbox select 'void-' || i, repeat('x', 200) from generate_series(1, 2000) i; rollback`)
		p.exec(t, savepoint)
		for name, w := range map[string]*wire{"live": live, "afterwards": afterwards.begin(t, 0)} {
			rows, aborts := 0, 0
			for f := w.message(); f.kind() != 'C'; f = w.message() {
				switch f.kind() {
				case 'A':
					aborts++
				case 'I':
					rows++
					var m pglogrepl.InsertMessage
					decode(t, f, &m)
					if key := string(m.Tuple.Columns[0].Data); key[:4] == "void" {
						t.Fatalf("%s: row %s came", name, key)
					}
				}
			}
			if rows != 505 || aborts > 0 {
				t.Errorf("%s: %d rows and %d stream aborts, want 505 and none", name, rows, aborts)
			}
		}
	})
}

func TestStreamDeliversWhatASavepointLeft(t *testing.T) {
	everyVersion(t, func(t *testing.T, srv *pgserver.Server) {
		p := newPlace(t, srv)
		p.exec(t, `alter database `+p.db+` set logical_decoding_work_mem = '64kB'`)
		s := p.open(t)
		p.exec(t, savepoint)
		var want []string
		for i := range 500 {
			want = append(want, fmt.Sprintf("first-%d", i+1))
		}
		for i := range 5 {
			want = append(want, fmt.Sprintf("last-%d", i+1))
		}
		r := s.until("last-5")
		wantKeys(t, r.keys, want...)
		if len(r.ends) != 1 {
			t.Errorf("%d ends, want one", len(r.ends))
		}
	})
}
