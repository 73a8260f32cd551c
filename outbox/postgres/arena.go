package postgres

// arenaChunk is the memory that small values are copied into together; a larger
// value has its own.
const arenaChunk = 64 << 10

// arena copies values out of the connection's buffer, so that they live as long as
// somebody points at them. One arena serves one claim: its values die together as a rule.
type arena struct{ chunk []byte }

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
