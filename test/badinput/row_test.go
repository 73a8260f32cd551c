package badinput

import (
	"strings"
	"testing"

	"github.com/walrelay/walrelay/test/kafkaserver"
	"github.com/walrelay/walrelay/test/pgserver"
	"github.com/walrelay/walrelay/test/rig"
)

// TestRowThatCannotBePublishedIsNamedHeldAndThenLeftAsALetter tries each twice: the
// default policy stops at the row, and the other puts it aside.
func TestRowThatCannotBePublishedIsNamedHeldAndThenLeftAsALetter(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		values string   // event id, route, payload, key
		words  []string // what has to be named
	}{
		"NULL payload":           {`'00000000-0000-7000-8000-000000000001', 'orders', null, 'a'`, []string{"00000000-0000-7000-8000-000000000001", "payload", "NULL"}},
		"NULL event id":          {`null, 'orders', '2', 'a'`, []string{"event_id", "NULL"}},
		"NULL route":             {`gen_random_uuid(), null, '2', 'a'`, []string{"route", "NULL"}},
		"empty route":            {`gen_random_uuid(), '', '2', 'a'`, []string{"route", "empty"}},
		"route without an entry": {`gen_random_uuid(), 'nobody', '2', 'a'`, []string{"nobody", "matches none"}},
		"route for no topic":     {`gen_random_uuid(), 'free.or ders', '2', 'a'`, []string{"free.or ders", "letters, digits"}},
		"route of a path":        {`gen_random_uuid(), 'free.../../etc', '2', 'a'`, []string{"free.../../etc", "letters, digits"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := kafkaserver.Shared(t)
			h := rig.NewHouse(t, pgserver.Shared(t, pgserver.V18), k.Brokers(), k.Topic(t, 1, nil))
			letters := k.Topic(t, 1, nil)
			h.Routes = "orders: {topic: " + h.Topic + "}\n\"free.*\": {topic: \"{route}\"} # and no \"*\""
			looseTable(t, h)
			h.Init(t)
			r := h.Start(t)
			first := commits(t, h, row("orders", "a", 1))
			confirmedPast(t, h, first)
			commits(t, h, values(c.values))
			reason := r.WaitNotReady(soon, "halted")
			// Only now: the order of a key is that of its partition, and what goes to another topic
			// may be on its way already when the source is stopped.
			last := commits(t, h, row("orders", "a", 3))
			contains(t, "/readyz", reason, append(c.words, "public.outbox", "remedy")...)
			keeps(t, h, r, 2)
			if n := len(k.Consume(t, h.Topic)); n != 1 {
				t.Errorf("%d records arrived, want only the one before", n)
			}

			h.Kafka = "on_poison: dlq\ndlq_topic: " + letters
			r = h.Start(t)
			confirmedPast(t, h, last)
			r.WaitReady(soon)
			letter := k.ConsumeN(t, 1, soon, letters)
			if len(letter) != 1 || string(letter[0].Key) != "a" {
				t.Fatalf("%d letters, the first with key %q; want one with key a", len(letter), letter[0].Key)
			}
			var told strings.Builder
			for _, h := range letter[0].Headers {
				told.WriteString(h.Key + "=" + string(h.Value) + "\n")
			}
			contains(t, "the letter", told.String(), append(c.words, "walrelay_dlq_relation=public.outbox", "walrelay_dlq_position=")...)
			if got := k.Consume(t, h.Topic); len(got) != 2 || string(got[1].Value) != "3" {
				t.Errorf("%d records arrived, want the first and the third", len(got))
			}
		})
	}
}
