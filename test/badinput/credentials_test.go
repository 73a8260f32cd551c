package badinput

import (
	"strings"
	"testing"

	"github.com/walrelay/walrelay/test/kafkaserver"
	"github.com/walrelay/walrelay/test/pgserver"
	"github.com/walrelay/walrelay/test/rig"
)

const wrongPassword = "Wrong%2FPassw0rd"

func TestWrongPostgresCredentialsAreNamedWithoutThePassword(t *testing.T) {
	t.Parallel()
	k := kafkaserver.Shared(t)
	h := rig.NewHouse(t, pgserver.Shared(t, pgserver.V18), k.Brokers(), k.Topic(t, 1, nil))
	h.Init(t)
	floor := commits(t, h, row("orders", "a", 1))
	before := h.ReadSlot(t).Confirmed
	h.URL = h.PG.URLAs("postgres", wrongPassword, h.Database)
	out, code := h.Command(t, "check")
	if code != exitPrecondition {
		t.Errorf("check exited %d, want %d", code, exitPrecondition)
	}
	contains(t, "check", out, "postgres", "password")
	leaksNothing(t, out)
	r := h.Start(t)
	reason := r.WaitNotReady(soon, "password")
	contains(t, "/readyz", reason, "postgres", "remedy")
	leaksNothing(t, reason+r.Log())
	if at := h.ReadSlot(t).Confirmed; at != before {
		t.Errorf("the slot moved from %s to %s", before, at)
	}
	r.Stop()
	h.URL = ""
	h.Start(t)
	confirmedPast(t, h, floor)
	if n := len(k.Consume(t, h.Topic)); n != 1 {
		t.Errorf("%d records, want 1", n)
	}
}

func TestWrongKafkaCredentialsAreNamedWithoutThePassword(t *testing.T) {
	t.Parallel()
	k := kafkaserver.Start(t, kafkaserver.Options{Users: map[string]string{"relay": "right"}})
	h := rig.NewHouse(t, pgserver.Shared(t, pgserver.V18), k.Brokers(), k.Topic(t, 1, nil))
	for _, mechanism := range []string{"PLAIN", "SCRAM-SHA-256"} {
		h.Kafka = "sasl: {mechanism: " + mechanism + ", user: relay, password: \"" + wrongPassword + "\", allow_plaintext: true}"
		if mechanism == "PLAIN" {
			h.Init(t)
		}
		before := h.ReadSlot(t).Confirmed
		commits(t, h, row("orders", "a", 1))
		out, code := h.Command(t, "check")
		if code != exitPrecondition {
			t.Errorf("check exited %d, want %d", code, exitPrecondition)
		}
		contains(t, "check", out, "relay", "kafka.sasl")
		leaksNothing(t, out)
		out, code = h.Command(t, "run", "--exit-on-halt")
		if code != exitPrecondition {
			t.Errorf("run exited %d, want %d", code, exitPrecondition)
		}
		contains(t, "run", out, "relay", "kafka.sasl")
		leaksNothing(t, out)
		if at := h.ReadSlot(t).Confirmed; at != before {
			t.Errorf("the slot moved from %s to %s", before, at)
		}
	}
	h.Kafka = "sasl: {mechanism: PLAIN, user: relay, password: right, allow_plaintext: true}"
	h.Start(t)
	if n := len(k.ConsumeN(t, 2, soon, h.Topic)); n != 2 {
		t.Errorf("%d records, want 2", n)
	}
}

func leaksNothing(t *testing.T, out string) {
	t.Helper()
	for _, form := range []string{wrongPassword, "Wrong/Passw0rd", "Wrong%252FPassw0rd"} {
		if strings.Contains(out, form) {
			t.Errorf("the password is in the output:\n%s", out)
		}
	}
}
