package slot

import (
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

func TestOnlyABusySpellIsReadInGulps(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		size  int           // of a read
		every time.Duration // between two
		want  bool
	}{
		"backlog":                      {8 << 10, 200 * time.Microsecond, true},
		"1 000 small events a second":  {600, time.Millisecond, false},
		"one large event now and then": {200 << 10, time.Second, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var s spell
				for range 200 {
					time.Sleep(c.every) // of the bubble
					s.took(c.size, time.Now())
				}
				if s.busy != c.want {
					t.Errorf("busy: %v, want %v", s.busy, c.want)
				}
				for range 20 { // then nothing comes any more
					time.Sleep(gulpWait)
					s.took(0, time.Now())
				}
				if s.busy {
					t.Error("still busy although nothing comes")
				}
			})
		})
	}
}

func TestGatheredBytesAreReadWhenTheirTimeIsUp(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	client, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	server, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = server.Close() }()
	w := &wire{s: &Stream{}, sess: &session{conn: client, read: client}, now: time.Now(), lastStatus: time.Now(), every: time.Hour, lastRead: time.Now()}
	w.s.opt.WireTimeout = time.Hour
	w.spell = spell{since: w.now, busy: true}
	if _, err := io.WriteString(server, "a few bytes"); err != nil {
		t.Fatal(err)
	}
	var got []byte
	buf := make([]byte, 100)
	for range 1000 {
		n, err := w.read(buf)
		if err != nil {
			t.Fatal(err)
		}
		if got = append(got, buf[:n]...); len(got) > 0 {
			break
		}
	}
	if string(got) != "a few bytes" {
		t.Fatalf("read %q", got)
	}
	for range 1000 {
		if _, err := w.read(buf); err != nil {
			t.Fatal(err)
		}
		if !w.gulping {
			return
		}
	}
	t.Error("the quiet wire is still read in gulps")
}
