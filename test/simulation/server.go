package simulation

import "sort"

// written is the end of a source's log at a time, in commits.
func (w *World) written(source int, at int64) int {
	log := w.Logs[source]
	return sort.Search(len(log), func(i int) bool { return w.Txs[log[i]].Written > at })
}

// oldest is the beginning of the oldest transaction that is open at a time, true time;
// that time where none is.
func (w *World) oldest(source int, at int64) int64 {
	oldest := at
	for i := range w.Txs {
		if t := &w.Txs[i]; t.Source == source && t.Begun <= at && at < t.Ended {
			oldest = min(oldest, t.Begun)
		}
	}
	return oldest
}
