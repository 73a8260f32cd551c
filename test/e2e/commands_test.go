package e2e

import (
	"bufio"
	"encoding/json"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/walrelay/walrelay/ops"
	"github.com/walrelay/walrelay/test/kafkaserver"
	"github.com/walrelay/walrelay/test/pgserver"
	"github.com/walrelay/walrelay/test/rig"
)

// wants fails unless a command exited with a code and printed all the texts.
func wants(t *testing.T, output string, code, wantCode int, texts ...string) {
	t.Helper()
	if code != wantCode {
		t.Errorf("exit code %d, want %d:\n%s", code, wantCode, output)
	}
	for _, text := range texts {
		if !strings.Contains(strings.ToLower(output), strings.ToLower(text)) {
			t.Errorf("%q is missing in:\n%s", text, output)
		}
	}
}

func TestCommandsTellOneStory(t *testing.T) {
	t.Parallel()
	k := kafkaserver.Shared(t)
	h := rig.NewHouse(t, pgserver.Shared(t, pgserver.V18), k.Brokers(), k.Topic(t, 3, nil))
	h.Postgres = "messages: [outbox]"

	out, code := h.Command(t, "check")
	wants(t, out, code, 3, "FAIL table public.outbox", "FAIL publication", "walrelay init")

	out, code = h.Command(t, "init", "--print")
	wants(t, out, code, 0, "create table", "create publication", "pg_create_logical_replication_slot")
	out, code = h.Command(t, "init")
	wants(t, out, code, 0, "made   orders: table public.outbox", "made   orders: slot "+h.Slot)
	out, code = h.Command(t, "init")
	wants(t, out, code, 0, "there  orders: table public.outbox", "there  orders: slot "+h.Slot)

	out, code = h.Command(t, "check")
	wants(t, out, code, 0, "ok   table public.outbox", "source orders", "kafka")
	if strings.Contains(out, "FAIL") {
		t.Errorf("check after init finds faults:\n%s", out)
	}

	out, code = h.Command(t, "status", "--url", "http://127.0.0.1:1")
	wants(t, out, code, 1, "no relay answers at http://127.0.0.1:1", "walrelay run")

	r := h.Start(t)
	r.WaitReady(30 * time.Second)
	out, code = h.Command(t, "emit", "--route", "orders", "--key", "k1", "--payload", `{"n": 1}`)
	wants(t, out, code, 0, "written to table public.outbox")
	out, code = h.Command(t, "emit", "--route", "orders", "--key", "k1", "--payload", `{"n": 2}`, "--message")
	wants(t, out, code, 0, "written to the log, prefix outbox")
	records := k.ConsumeN(t, 2, 30*time.Second, h.Topic)
	for i, want := range []string{`{"n": 1}`, `{"n":2}`} {
		if got := strings.ReplaceAll(string(records[i].Value), " ", ""); got != strings.ReplaceAll(want, " ", "") || string(records[i].Key) != "k1" {
			t.Errorf("record %d is %s with key %s, want %s with k1", i, records[i].Value, records[i].Key, want)
		}
	}

	out, code = h.Command(t, "status", "--url", r.URL())
	wants(t, out, code, 0, "orders", "streaming", "confirmed", "ready")
	out, code = h.Command(t, "status", "--json", "--url", r.URL())
	wants(t, out, code, 0)
	var st ops.Status
	if err := json.Unmarshal([]byte(out), &st); err != nil || !st.Ready || st.Sources[0].Name != "orders" {
		t.Errorf("status --json: %v, %+v", err, st)
	}
	out, code = h.Command(t, "position", "show")
	wants(t, out, code, 0, "orders: slot "+h.Slot, "remembered: ")
	out, code = h.Command(t, "position", "set", "--source", "orders", "--to-slot")
	wants(t, out, code, 3, "is in use by PID", "stop that relay first")
	out, code = h.Command(t, "init", "--new-slot")
	wants(t, out, code, 1, "active for PID")
	if code, _ := r.Stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	out, code = h.Command(t, "config")
	wants(t, out, code, 0, "name: test", "***")
	out, code = h.Command(t, "version")
	wants(t, out, code, 0, "walrelay ", "go1.")
	out, code = h.Command(t, "rnu")
	wants(t, out, code, 2, "unknown command", "did you mean run")
	out, code = h.Command(t, "run", "--exit-on-hlat")
	wants(t, out, code, 2, "unknown flag: --exit-on-hlat")
}

func TestTailShowsNewEventsAndMovesNothing(t *testing.T) {
	t.Parallel()
	k := kafkaserver.Shared(t)
	h := rig.NewHouse(t, pgserver.Shared(t, pgserver.V18), k.Brokers(), k.Topic(t, 3, nil))
	h.Init(t)
	h.Insert(t, "orders", "before")
	position := h.ReadSlot(t).Confirmed

	cmd := exec.Command(rig.Binary(t), "tail", "-n", "2", "--config", h.File(t))
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
	if line, err := bufio.NewReader(stderr).ReadString('\n'); err != nil || !strings.HasPrefix(line, "reading orders from ") {
		t.Fatalf("tail says %q %v", line, err)
	}
	h.Insert(t, "orders", "a", "b", "c")
	lines := bufio.NewScanner(stdout)
	for _, want := range []string{"a", "b"} {
		if !lines.Scan() {
			t.Fatalf("no line for %s: %v", want, lines.Err())
		}
		var rec struct {
			Topic, Key string
			Headers    map[string]string
			Value      struct{ Key string }
		}
		if err := json.Unmarshal(lines.Bytes(), &rec); err != nil {
			t.Fatal(err)
		}
		if rec.Topic != h.Topic || rec.Key != want || rec.Value.Key != want || rec.Headers["forze_type"] != "Tested" {
			t.Errorf("line %s, want topic %s and key %s", lines.Text(), h.Topic, want)
		}
	}
	if lines.Scan() {
		t.Errorf("a third line after -n 2: %s", lines.Text())
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("tail ended with %v", err)
	}
	if now := h.ReadSlot(t).Confirmed; now != position {
		t.Errorf("the relay's slot moved from %s to %s", position, now)
	}
	if got := k.Consume(t, h.Topic); len(got) != 0 {
		t.Errorf("%d records in Kafka", len(got))
	}
}
