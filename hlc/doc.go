// Package hlc holds Hybrid Logical Clock stamps: a physical time in
// milliseconds and a logical counter, packed into 64 bits so that comparing
// integers compares stamps.
//
//	63            16 15        0
//	+---------------+-----------+
//	| physical (ms) |  logical  |    48 + 16 bits
//	+---------------+-----------+
//
// The text form is fifteen decimal digits, a dot and five decimal digits, so
// that comparing strings compares stamps too. Both forms are those of the forze
// outbox, which applications of walrelay share.
package hlc
