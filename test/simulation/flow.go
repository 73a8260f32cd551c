package simulation

// flow is one execution: it stages, begins its transaction a little later (as a client does
// that begins lazily), reads, stages more, and commits. A saga goes on in the other database.
func (w *World) flow(replica, source, key int, causes []Edge) {
	tx := len(w.Txs)
	w.Txs = append(w.Txs, Tx{Source: source})
	w.stage(tx, replica, key, causes)
	w.agenda.in(w.between(0, w.Staged.Microseconds()), func() {
		w.Txs[tx].Begun = w.agenda.now
		lasts := w.duration()
		w.agenda.in(w.between(0, lasts/2), func() {
			// What it reads is the latest that is committed; what it stages from now on may depend on it.
			var read []Edge
			for range 2 {
				if e := w.latest[source][w.rng.IntN(keys)]; e >= 0 {
					read = append(read, Edge{Kind: Data, Cause: e})
				}
			}
			for range 1 + w.rng.IntN(2) {
				k := key
				if w.chance(0.3) {
					k = w.rng.IntN(keys)
				}
				w.agenda.in(w.between(0, lasts/2), func() { w.stage(tx, replica, k, read) })
			}
		})
		w.agenda.in(lasts, func() { w.commit(tx, replica, key) })
	})
}

// stage fixes an event and its stamp. It is an effect of what its transaction staged before.
func (w *World) stage(tx, replica, key int, causes []Edge) {
	id := len(w.Events)
	w.Events = append(w.Events, Event{
		Replica: replica, Source: w.Txs[tx].Source, Key: key, Tx: tx, Stamp: w.stamp(replica), Staged: w.agenda.now,
	})
	for _, c := range causes {
		w.Edges = append(w.Edges, Edge{c.Kind, c.Cause, id})
	}
	if before := w.Txs[tx].Events; len(before) > 0 {
		w.Edges = append(w.Edges, Edge{Flow, before[len(before)-1], id})
	}
	w.Txs[tx].Events = append(w.Txs[tx].Events, id)
}

func (w *World) commit(tx, replica, key int) {
	t := &w.Txs[tx]
	t.Ended = w.agenda.now
	if w.chance(0.05) {
		return // rolled back
	}
	// The time is taken before the record is written, rarely long before.
	held := w.between(0, 50)
	if w.chance(0.02) {
		held = w.between(0, 900*millis)
	}
	t.Written = w.agenda.now
	t.Committed = max(t.Begun, t.Written-held) + w.server[t.Source]
	w.Logs[t.Source] = append(w.Logs[t.Source], tx)
	t.Position = len(w.Logs[t.Source])
	w.End = t.Written
	// The log runs ahead of visibility.
	w.agenda.in(w.between(0, 2*millis), func() {
		t := &w.Txs[tx]
		for _, e := range t.Events {
			w.latest[t.Source][w.Events[e].Key] = e
		}
		if w.chance(0.3) {
			last := t.Events[len(t.Events)-1]
			w.agenda.in(w.between(0, 20*millis), func() {
				w.flow(replica, 1-t.Source, key, []Edge{{Kind: Flow, Cause: last}})
			})
		}
	})
	for _, e := range t.Events {
		if w.chance(0.2) {
			w.agenda.in(w.between(1*millis, 15*millis), func() { w.handle(e) })
		}
	}
}

// handle is a consumer, on any replica: it merges the stamp of what it read and reacts.
func (w *World) handle(e int) {
	replica, cause := w.rng.IntN(replicas), w.Events[e]
	if !w.NoMerge && !w.RawWall {
		ahead := cause.Stamp > w.clock[replica].Last() && cause.Stamp.PhysicalMillis() > w.wall[replica]()/millis
		if _, err := w.clock[replica].Observe(cause.Stamp); err == nil && ahead {
			w.Ahead++
		}
	}
	key := cause.Key
	if w.chance(0.5) {
		key = w.rng.IntN(keys)
	}
	w.flow(replica, w.rng.IntN(sources), key, []Edge{{Kind: Message, Cause: e}})
}
