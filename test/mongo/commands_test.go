package mongo

import (
	"bufio"
	"encoding/json"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/walrelay/walrelay/test/mongoserver"
	"github.com/walrelay/walrelay/test/rig"
)

// says runs a command and checks its exit code and what it says.
func (s *scene) says(code int, args []string, words ...string) (output string) {
	s.t.Helper()
	output, got := s.Command(s.t, args...)
	if got != code {
		s.t.Errorf("walrelay %s exits %d, want %d:\n%s", strings.Join(args, " "), got, code, output)
	}
	contains(s.t, "walrelay "+strings.Join(args, " "), output, words...)
	return output
}

func words(text string) []string { return strings.Fields(text) }

func TestCommandsTellOneStory(t *testing.T) {
	t.Parallel()
	s := newScene(t, mongoserver.Shared(t))
	s.says(3, words("check"), "FAIL collection "+s.Database+".outbox: missing", "FAIL bookkeeping walrelay_sources: missing", "run 'walrelay init'")
	s.says(0, words("position show"), "orders: nothing is remembered; the oplog ends at 20")
	s.says(0, words("init --print"), "createCollection", "walrelay_sources", "createRole")
	s.says(0, words("init"), "made   orders: collection "+s.Database+".outbox", "made   orders: position of test/orders")
	s.says(0, words("init"), "there  orders: collection "+s.Database+".outbox", "there  orders: position of test/orders")
	if out := s.says(0, words("check"), "ok   collection "+s.Database+".outbox", "ok   position: 20", "kafka"); strings.Contains(out, "FAIL") {
		t.Errorf("check after init finds faults:\n%s", out)
	}
	s.says(0, words("position show"), "orders: remembered 20", "(created)", "read by nobody", "token 82")
	s.says(2, words("emit --route orders --message"), "MongoDB has no logical messages")
	s.says(0, words("emit --route orders --key k1 --payload {\"n\":1}"), "written to collection "+s.Database+".outbox")
	s.says(5, words("drain --timeout 1s"), "not drained after 1s", "the position stands at 20", "where the oplog ended", "no relay reads the source")

	r := s.Start(t)
	s.streams(r)
	records := s.k.ConsumeN(t, 1, soon, s.Topic)
	if string(records[0].Value) != `{"n":1}` || string(records[0].Key) != "k1" {
		t.Errorf("emit became %s with the key %s", records[0].Value, records[0].Key)
	}
	s.says(0, words("drain --timeout 30s"), "orders: drained, everything that was committed when drain began is confirmed")
	s.says(0, []string{"status", "--url", r.URL()}, "orders", "streaming", "ready")
	s.says(0, words("position show"), "(streaming)", "read by ")
	s.says(3, words("position set --source orders --now"), "stop")
	if code, _ := r.Stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// What an operator accepts, the relay takes: --now passes by, --after-time and --token of an
// earlier place bring it again.
func TestPositionIsTakenAsTheOperatorSetsIt(t *testing.T) {
	t.Parallel()
	s := newScene(t, mongoserver.Shared(t))
	s.Init(t)
	shown := regexp.MustCompile(`remembered (\S+) \(.*\n  token (\w+) `)
	place := shown.FindStringSubmatch(s.says(0, words("position show")))
	if place == nil {
		t.Fatal("position show shows no time and token")
	}
	passed := s.insert("a")
	s.says(2, words("position set --source orders"), "--now, --after-time or --token")
	s.says(2, words("position set --source orders --to-slot"), "has no slots")
	s.says(2, words("position set --source orders --after-time yesterday"), `"yesterday" is no time`)
	s.says(0, words("position set --source orders --now"), "orders: going on at 20")
	second := s.insert("a")
	r := s.Start(t)
	s.delivers(r, second)
	stop := func() {
		t.Helper()
		if code, _ := r.Stop(); code != 0 {
			t.Errorf("exit code %d", code)
		}
	}
	stop()
	s.says(0, words("position show"), "earlier: "+place[1]+", token "+place[2])
	for i, back := range [][]string{{"--after-time", place[1]}, {"--token", place[2]}} {
		s.says(0, append(words("position set --source orders"), back...), "orders: going on at "+place[1][:len("2006-01-02")])
		r = s.Start(t)
		s.holds(r, passed, second)
		r.Eventually("both again", soon, func() error {
			if n := len(s.arrived()); n != 3+2*i {
				return errMissing
			}
			return nil
		})
		stop()
	}
}

func TestTailShowsNewEventsAndMovesNothing(t *testing.T) {
	t.Parallel()
	s := newScene(t, mongoserver.Shared(t))
	s.Init(t)
	s.insert("before")
	before := s.says(0, words("position show"))
	cmd := exec.Command(rig.Binary(t), "tail", "-n", "2", "--config", s.File(t))
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	if line, err := bufio.NewReader(stderr).ReadString('\n'); err != nil || !strings.HasPrefix(line, "reading orders from 20") {
		t.Fatalf("tail says %q %v", line, err)
	}
	s.insert("a")
	s.insert("b")
	lines := bufio.NewScanner(stdout)
	for _, key := range []string{"a", "b"} {
		if !lines.Scan() {
			t.Fatalf("tail ended: %v", lines.Err())
		}
		var line struct{ Topic, Key string }
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil || line.Topic != s.Topic || line.Key != key {
			t.Errorf("tail prints %s, want the event of key %s", lines.Bytes(), key)
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("tail: %v", err)
	}
	after := s.says(0, words("position show"))
	if cut := func(s string) string { _, token, _ := strings.Cut(s, "\n"); return token }; cut(before) != cut(after) {
		t.Errorf("tail moved the position:\n%s%s", before, after)
	}
}
