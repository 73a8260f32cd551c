package main

import "fmt"

// marks drains the log while published rows are kept, marked or deleted. A
// drained table cannot be drained again, so each drain has a backlog of its own, written
// in the same way.
func (s *site) marks(t *crew) (results []result) {
	within(t, func(t *crew) {
		s.durable(t)
		few := *s
		few.rows = s.pollRows
		ways := []struct{ name, after string }{{"log", ""}, {"log + mark", "mark"}, {"log + delete", "delete"}}
		runs := make([][]drained, len(ways))
		within(t, func(t *crew) { few.marked(t, ways[0].name, ways[0].after, "warm-up") })
		for round := range s.rounds {
			for i, w := range ways {
				within(t, func(t *crew) {
					runs[i] = append(runs[i], few.marked(t, w.name, w.after, fmt.Sprintf("round %d", round+1)))
				})
			}
		}
		for i, w := range ways {
			results = append(results, sum(w.name, runs[i], runs[0]))
		}
	})
	return results
}

func (s *site) marked(t *crew, name, after, what string) drained {
	w := workloads["jsonb"]
	w.after = after
	b := s.preload(t, w)
	tidy(t, s.pg.Conn(t, b.house.Database))
	d := s.walrelay(t, b, b.house.Slot, "")
	t.report(b.name, what, name, d)
	return d
}
