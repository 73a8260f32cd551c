package slot

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestReadingPausesOnlyInABusySpell(t *testing.T) {
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
				cur := &slab{buf: make([]byte, slabSize), n: c.size}
				paused := 0
				for range 200 {
					time.Sleep(c.every) // of the bubble
					s.took(c.size, time.Now())
					if s.pause(cur, 0, time.Now()) {
						paused++
					}
				}
				if (paused > 100) != c.want || !c.want && paused > 0 {
					t.Errorf("paused %d times of 200, want a busy spell: %v", paused, c.want)
				}
			})
		})
	}
}

func TestReadingNeverPausesWithoutRoomOrWithEnoughInHand(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := spell{busy: true, since: time.Now()}
		for name, c := range map[string]struct {
			cur    *slab
			parsed int
		}{
			"no slab":        {nil, 0},
			"nothing new":    {&slab{buf: make([]byte, slabSize), n: 10}, 10},
			"enough in hand": {&slab{buf: make([]byte, slabSize), n: spellEnough}, 0},
			"no room":        {&slab{buf: make([]byte, minRead), n: 10}, 0},
		} {
			if s.pause(c.cur, c.parsed, time.Now()) {
				t.Errorf("%s: paused", name)
			}
		}
		if !s.pause(&slab{buf: make([]byte, slabSize), n: 10}, 0, time.Now()) {
			t.Error("no pause with little in hand")
		}
	})
}
