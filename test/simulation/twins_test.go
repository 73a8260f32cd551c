package simulation

import (
	"testing"
	"time"
)

// Each broken twin must be caught by the Check that passes the right ones.
func TestBrokenTwinsAreCaught(t *testing.T) {
	t.Parallel()
	for _, twin := range []struct {
		name  string
		world func(*Options)
		plan  func(*Plan)
		modes []Mode
		rules []string
	}{
		{
			name:  "a consumer that does not merge",
			world: func(o *Options) { o.NoMerge = true },
			modes: []Mode{Stamps, Heads},
			rules: []string{Effect, Cause},
		},
		{
			name:  "stamps of the raw wall clock",
			world: func(o *Options) { o.RawWall = true },
			modes: []Mode{Stamps, Heads},
			rules: []string{Actor, Effect, Cause},
		},
		{
			name: "a watermark from the relay's clock",
			plan: func(p *Plan) {
				p.OwnClock = true
				p.Stalls[0] = []Span{{100 * time.Millisecond, 6 * time.Second}}
			},
			modes: []Mode{Stamps, Heads},
			rules: []string{Late},
		},
		{
			name:  "a reading that takes the end of the log before the open transactions",
			plan:  func(p *Plan) { p.PositionFirst = true },
			modes: []Mode{Stamps, Heads},
			rules: []string{Late},
		},
		{
			name: "what was read is confirmed",
			plan: func(p *Plan) {
				p.ConfirmRead = true
				p.Crashes = []time.Duration{300 * time.Millisecond, 900 * time.Millisecond}
			},
			modes: []Mode{Stamps, Heads},
			rules: []string{Lost},
		},
	} {
		t.Run(twin.name, func(t *testing.T) {
			t.Parallel()
			for _, mode := range twin.modes {
				caught := map[string]int{}
				for seed := range uint64(seeds) {
					o, p := day(seed, 50*time.Millisecond), perturbed(seed, mode)
					if twin.world != nil {
						twin.world(&o)
					}
					if twin.plan != nil {
						twin.plan(&p)
					}
					w := NewWorld(o)
					rules := map[string]bool{}
					for _, f := range Check(w, Publish(w, p)) {
						rules[f.Rule] = true
					}
					for rule := range rules {
						caught[rule]++
					}
				}
				t.Logf("%s: seeds of %d in which it was caught: %v", mode, seeds, caught)
				for _, rule := range twin.rules {
					if caught[rule] == 0 {
						t.Errorf("%s: not caught by %q", mode, rule)
					}
				}
			}
		})
	}
}

// The output of one mode does not pass for that of another, and no rule is idle.
func TestEveryRuleOfTheCheckCatchesSomething(t *testing.T) {
	t.Parallel()
	caught := map[string]int{}
	for seed := range uint64(seeds) {
		w := NewWorld(day(seed, 50*time.Millisecond))
		for _, c := range []struct {
			is, says Mode
			spoil    func(*Output)
		}{
			{is: Commit, says: Stamps},
			{is: Stamps, says: Heads},
			{is: Stamps, says: Commit},
			{is: Commit, says: Heads},
			{is: Commit, says: Commit, spoil: func(o *Output) { o.Out = append(o.Out, o.Out[0]) }},
			{is: Commit, says: Commit, spoil: func(o *Output) { o.Out = o.Out[1:] }},
		} {
			o := Publish(w, perturbed(seed, c.is))
			if o.Plan.Mode = c.says; c.spoil != nil {
				c.spoil(&o)
			}
			for _, f := range Check(w, o) {
				caught[f.Rule]++
			}
		}
	}
	for _, rule := range []string{Lost, Doubled, Cause, Sorted, InKey, Counted} {
		if caught[rule] == 0 {
			t.Errorf("nothing was caught by %q", rule)
		}
	}
}
