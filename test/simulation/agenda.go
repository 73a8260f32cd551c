package simulation

import "container/heap"

// agenda is virtual time: what is to happen, in order; at equal times in the order of
// its entry.
type agenda struct {
	now  int64 // true time, microseconds
	list entries
	made int
}

type entry struct {
	at  int64
	seq int
	do  func()
}

func (a *agenda) at(t int64, do func()) {
	a.made++
	heap.Push(&a.list, entry{t, a.made, do})
}

func (a *agenda) in(d int64, do func()) { a.at(a.now+d, do) }

func (a *agenda) run() {
	for len(a.list) > 0 {
		e := heap.Pop(&a.list).(entry)
		a.now = e.at
		e.do()
	}
}

type entries []entry

func (e entries) Len() int { return len(e) }
func (e entries) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].seq < e[j].seq
}
func (e entries) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *entries) Push(x any)   { *e = append(*e, x.(entry)) }
func (e *entries) Pop() any {
	old := *e
	last := old[len(old)-1]
	*e = old[:len(old)-1]
	return last
}
