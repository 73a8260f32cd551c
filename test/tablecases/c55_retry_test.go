package tablecases

// C55 Retry lets the next row pass.
// Source: ow00us/sb11-mopl-team1#266.
// Ideal: later rows of the key wait for the one that fails, other keys do not;
// what happens once it is given up (park and hold the key, or pass on) is
// explicit and visible.

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/walrelay/walrelay/test/kafkaserver"
	"github.com/walrelay/walrelay/test/pgserver"
	"github.com/walrelay/walrelay/test/rig"
)

// missingTopic is a house where route "late" leads to a topic that is not there.
func missingTopic(t *testing.T, v pgserver.Version, poll, route string) (tb *table, topic string) {
	t.Helper()
	tb = newTable(t, pgserver.Shared(t, v), kafkaserver.Shared(t), 1)
	topic = tb.Topic + "-late"
	tb.poll(poll)
	tb.Routes = fmt.Sprintf("\"late\": {topic: %s%s}\n", topic, route)
	tb.Init(t)
	return tb, topic
}

func TestC55LaterRowsOfAKeyWaitForTheOneThatFails(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, v pgserver.Version) {
		tb, topic := missingTopic(t, v, "interval: 200ms, backoff_min: 500ms, backoff_max: 1s, attempts: 1000", "")
		r := tb.Start(t) // not ready: a topic is missing
		a := tb.row(t, "late", "k")
		tb.row(t, "orders", "k") // 2
		tb.row(t, "orders", "k") // 3
		for range 5 {
			tb.row(t, "orders", "other") // 4 to 8
		}
		tb.becomes(t, "true", soon, `select (attempts >= 2 and last_error is not null)::text from public.outbox where id = $1::uuid`, a)
		tb.row(t, "orders", "other") // 9: the key that does not fail goes on
		got := numbers(tb.k.ConsumeN(t, 6, soon, tb.Topic))
		if want := []string{"4", "5", "6", "7", "8", "9"}; !slices.Equal(got, want) {
			t.Fatalf("while the key waits the topic has %v, want %v", got, want)
		}
		tb.k.CreateTopic(t, topic, 1, nil)
		tb.published(t, 2*soon)
		if got := numbers(tb.k.Consume(t, tb.Topic))[6:]; !slices.Equal(got, []string{"2", "3"}) {
			t.Errorf("then came %v, want 2 and 3", got)
		}
		late := tb.k.Consume(t, topic)
		if got := numbers(late); !slices.Equal(got, []string{"1"}) {
			t.Errorf("the topic that was missing has %v, want 1", got)
		}
		contains(t, "the row that was tried again", tb.ask(t, `select status || ' ' || coalesce(last_error, 'without an error') from public.outbox where id = $1::uuid`, a),
			"published without an error")
		stopAll(t, r)
	})
}

func TestC55RowThatIsGivenUpHoldsItsKeyUntilSomebodySaysSo(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, v pgserver.Version) {
		tb, topic := missingTopic(t, v, "interval: 200ms, backoff_min: 200ms, backoff_max: 200ms, attempts: 2", "")
		r := tb.Start(t) // not ready: a topic is missing
		a := tb.row(t, "late", "k")
		tb.row(t, "orders", "k")
		tb.becomes(t, "failed", soon, `select status from public.outbox where id = $1::uuid`, a)
		list, code := tb.Command(t, "parked", "list")
		if code != 0 {
			t.Errorf("walrelay parked list exited %d", code)
		}
		contains(t, "the list of what is parked", list, "attempts", "k", "late")
		tb.row(t, "orders", "other")
		if got := numbers(tb.k.ConsumeN(t, 1, soon, tb.Topic)); !slices.Equal(got, []string{"3"}) {
			t.Errorf("behind a row that was given up the topic has %v, want 3 alone", got)
		}
		tb.k.CreateTopic(t, topic, 1, nil)
		if out, code := tb.Command(t, "parked", "retry", "--all"); code != 0 {
			t.Fatalf("walrelay parked retry exited %d:\n%s", code, out)
		}
		tb.published(t, 2*soon)
		if got := strings.Join(numbers(tb.k.Consume(t, topic)), " "); got != "1" {
			t.Errorf("the topic that was missing has %v, want 1", got)
		}
		if got := strings.Join(numbers(tb.k.Consume(t, tb.Topic)), " "); got != "3 2" {
			t.Errorf("the topic has %v, want 3 2", got)
		}
		stopAll(t, r)
	})
}

func TestC55RouteThatDoesNotHoldBackPassesOn(t *testing.T) {
	t.Parallel()
	tb, _ := missingTopic(t, pgserver.V18, "interval: 200ms, backoff_min: 200ms, backoff_max: 200ms, attempts: 2", ", hold_back: false")
	tb.Routes += fmt.Sprintf("\"*\": {topic: %s, hold_back: false}\n", tb.Topic)
	r := tb.Start(t) // not ready: a topic is missing
	a := tb.row(t, "late", "k")
	tb.row(t, "orders", "k")
	rig.Eventually(t, "the later row", soon, func() error {
		if got := numbers(tb.k.Consume(t, tb.Topic)); !slices.Equal(got, []string{"2"}) {
			return fmt.Errorf("the topic has %v", got)
		}
		return nil
	})
	tb.becomes(t, "failed", soon, `select status from public.outbox where id = $1::uuid`, a)
	stopAll(t, r)
}
