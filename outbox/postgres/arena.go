package postgres

import "unsafe"

// arenaChunk is the memory that small values are copied into together; a larger
// value has its own.
const arenaChunk = 64 << 10

// arena copies values out of the connection's buffer, so that they live as long as
// somebody points at them. One arena serves one claim: its values die together as a rule.
type arena struct {
	chunk []byte
	names []byte // never written twice: strings point into it
	route string // of the last row; the next one's is the same as a rule
}

// namesChunk is the memory that names share. A name may live long, in the ledger of
// what is held, and keeps its chunk alive.
const namesChunk = 4 << 10

// name copies a value that is to be a string: three allocations less for each row.
func (a *arena) name(v []byte) string {
	n := len(v)
	if n == 0 || n > namesChunk/4 {
		return string(v)
	}
	if cap(a.names)-len(a.names) < n {
		a.names = make([]byte, 0, namesChunk)
	}
	at := len(a.names)
	a.names = append(a.names, v...)
	return unsafe.String(&a.names[at], n)
}

// keep copies a value. Nil stays nil, empty stays empty.
func (a *arena) keep(v []byte) []byte {
	if v == nil {
		return nil
	}
	n := len(v)
	if n == 0 {
		return []byte{}
	}
	if n > arenaChunk/4 {
		return append(make([]byte, 0, n), v...)
	}
	if cap(a.chunk)-len(a.chunk) < n {
		a.chunk = make([]byte, 0, arenaChunk)
	}
	at := len(a.chunk)
	a.chunk = append(a.chunk, v...)
	return a.chunk[at : at+n : at+n]
}
