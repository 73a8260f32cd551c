package decoder

import "testing"

func TestDecodingAllocatesNothing(t *testing.T) {
	for _, s := range samples() {
		if Kind(s.bytes[0]) == KindStreamStart || Kind(s.bytes[0]) == KindStreamStop {
			continue // they change the state that they need
		}
		d := s.ready()
		mustDecode(d, s.bytes)
		if n := testing.AllocsPerRun(100, func() { _, _ = d.Decode(s.bytes, sampleLSN) }); n != 0 {
			t.Errorf("%s: %v allocations", s.name, n)
		}
	}
}
