package slot

import (
	"encoding/binary"
	"testing"

	"github.com/jackc/pglogrepl"

	"github.com/walrelay/walrelay/event"
)

func TestStatusIsWhatTheServerExpects(t *testing.T) {
	t.Parallel()
	b := appendStatus(nil, 0x1122, 0x1111, 946_684_800_000_001, true)
	if size, err := frameSize(b); err != nil || size != len(b) {
		t.Fatalf("frame says %d bytes (%v), has %d", size, err, len(b))
	}
	body := b[frameHeader:]
	for i, want := range []uint64{0x1122, 0x1111, 0x1111, 1} {
		if got := binary.BigEndian.Uint64(body[1+8*i:]); got != want {
			t.Errorf("number %d is %x, want %x", i, got, want)
		}
	}
	if body[0] != 'r' || body[33] != 1 {
		t.Errorf("kind %q, reply %d", body[0], body[33])
	}
}

func TestKeepaliveReadsAsThePeerLibraryReadsIt(t *testing.T) {
	t.Parallel()
	b := append([]byte{'k'}, make([]byte, 17)...)
	binary.BigEndian.PutUint64(b[1:], 0x16_B374D848)
	b[17] = 1
	want, err := pglogrepl.ParsePrimaryKeepaliveMessage(b[1:])
	if err != nil {
		t.Fatal(err)
	}
	got, err := parseKeepalive(b)
	if err != nil || uint64(got.end) != uint64(want.ServerWALEnd) || got.reply != want.ReplyRequested {
		t.Errorf("got %+v %v, want %+v", got, err, want)
	}
	for n := range len(b) {
		if _, err := parseKeepalive(b[:n]); err == nil {
			t.Errorf("a keepalive of %d bytes was accepted", n)
		}
	}
}

func commit(record, end event.LSN) []byte {
	b := binary.BigEndian.AppendUint64([]byte{'C', 0}, uint64(record))
	b = binary.BigEndian.AppendUint64(b, uint64(end))
	return append(b, make([]byte, 8)...)
}

func TestOnlyCommitEndsAndKeepalivesOutsideCountAsReceived(t *testing.T) {
	t.Parallel()
	var e edge
	for _, step := range []struct {
		what string
		do   func()
		want event.LSN
	}{
		{"begin", func() { e.message([]byte{'B'}) }, 0},
		{"row", func() { e.message([]byte{'I'}) }, 0},
		{"keepalive inside a transaction", func() { e.keepalive(90) }, 0},
		{"commit", func() { e.message(commit(100, 120)) }, 120},
		{"keepalive", func() { e.keepalive(150) }, 150},
		{"late keepalive", func() { e.keepalive(140) }, 150},
		{"message outside", func() { e.message(append([]byte{'M', 0}, 0, 0, 0, 0, 0, 0, 0, 160)) }, 160},
		{"begin again", func() { e.message([]byte{'B'}) }, 160},
		{"message of the transaction", func() { e.message(append([]byte{'M', 1}, 0, 0, 0, 0, 0, 0, 0, 170)) }, 160},
		{"truncated commit", func() { e.message([]byte{'C', 0, 0}) }, 160},
		{"empty", func() { e.message(nil) }, 160},
	} {
		if step.do(); e.received != step.want {
			t.Fatalf("after %s the received position is %d, want %d", step.what, e.received, step.want)
		}
	}
}

func TestFrameThatIsNoMessageIsRefused(t *testing.T) {
	t.Parallel()
	for _, b := range [][]byte{{'d', 0, 0, 0, 3}, {'d', 0xff, 0xff, 0xff, 0xff}, {0, 0, 0, 0, 0}} {
		if _, err := frameSize(b); err == nil {
			t.Errorf("length of % x was accepted", b)
		}
	}
	if n, err := frameSize([]byte{'d', 0, 0}); n != 0 || err != nil {
		t.Errorf("a header that is not whole gave %d %v, want 0 and no error", n, err)
	}
}
