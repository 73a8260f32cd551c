package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/walrelay/walrelay/test/kafkaserver"
	"github.com/walrelay/walrelay/test/pgserver"
	"github.com/walrelay/walrelay/test/rig"
)

// rowsOf asks the house's database for one text.
func rowsOf(t *testing.T, h *rig.House, sql string) (answer string) {
	t.Helper()
	if err := h.PG.Conn(t, h.Database).QueryRow(t.Context(), sql).Scan(&answer); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return answer
}

// Logical messages have no row to wait in: they are kept whole, and come in order
// when what holds their key is given up.
func TestParkedMessageIsKeptWholeAndDropLetsItsKeyGo(t *testing.T) {
	t.Parallel()
	k := kafkaserver.Shared(t)
	h := rig.NewHouse(t, pgserver.Shared(t, pgserver.V15), k.Brokers(), k.Topic(t, 1, map[string]string{"max.message.bytes": "2000"}))
	h.Postgres, h.Source, h.Kafka = "messages: [outbox]", "after_publish: mark\nsweep_every: 500ms", "on_poison: park"
	h.Init(t)
	r := h.Start(t)
	r.WaitReady(30 * time.Second)
	send := func(key string, n, pad int) {
		h.Exec(t, `select pg_logical_emit_message(true, 'outbox/orders/' || $1::text, $2::text)`, key, fmt.Sprintf(`{"n": %d, "word": %q, "pad": %q}`, n, secretWord, strings.Repeat("x", pad)))
	}
	send("a", 1, 0)
	send("a", 2, 4000)
	send("a", 3, 0)
	send("b", 4, 0)
	send("a", 5, 0)
	if got := numbersOf(k.ConsumeN(t, 2, 30*time.Second, h.Topic)); got["a"] != "1" || got["b"] != "4" {
		t.Fatalf("arrived %v", got)
	}
	var list []parkedEntry
	r.Eventually("the entries", 20*time.Second, func() error {
		if list = listParked(t, h); len(list) != 3 {
			return fmt.Errorf("%d entries", len(list))
		}
		return nil
	})
	if list[0].State != "parked" || list[1].State != "behind" || list[2].State != "behind" || list[0].Kept != "whole" {
		t.Errorf("entries %+v", list)
	}
	id, behind := fmt.Sprint(list[0].ID), fmt.Sprint(list[1].ID)
	out, code := h.Command(t, "parked", "show", id, "--json")
	wants(t, out, code, 0, `"payload_bytes"`, `"position"`)
	if strings.Contains(out, secretWord) {
		t.Errorf("the payload was printed:\n%s", out)
	}
	out, code = h.Command(t, "parked", "show", id, "--payload")
	wants(t, out, code, 0, secretWord)
	out, code = h.Command(t, "parked", "retry", behind)
	wants(t, out, code, 1, "waits behind another event of key a")
	out, code = h.Command(t, "parked", "drop")
	wants(t, out, code, 2, "give ids, or --all")
	out, code = h.Command(t, "parked", "drop", "--all", "--key", "b")
	wants(t, out, code, 0, "0 events were given up")
	out, code = h.Command(t, "parked", "drop", id)
	wants(t, out, code, 0, "1 event was given up")
	if got := numbersOf(k.ConsumeN(t, 4, 60*time.Second, h.Topic)); got["a"] != "1 3 5" {
		t.Errorf("arrived %v", got)
	}
	r.Eventually("the key to be free", 30*time.Second, func() error {
		if left := listParked(t, h); len(left) > 0 {
			return fmt.Errorf("entries %+v", left)
		}
		return nil
	})
	send("a", 6, 0)
	if got := numbersOf(k.ConsumeN(t, 5, 60*time.Second, h.Topic)); got["a"] != "1 3 5 6" {
		t.Errorf("arrived %v", got)
	}
}
