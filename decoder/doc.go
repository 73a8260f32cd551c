// Package decoder turns the bytes that Postgres' pgoutput plugin sends into
// messages, and the rows and logical messages among them into events.
//
// It has two halves that do not need each other. [Decoder] reads the wire: one
// file per message kind, its format drawn above the code that reads it, after
// the chapter "Logical Replication Message Formats" of the Postgres manual.
// [Mapper] reads meaning: which column carries which field of an outbox row
// (row.go, plan.go), and which member of a logical message (logical.go,
// object.go).
//
// # Who owns bytes, and until when
//
// A message returned by [Decoder.Decode] is a struct that the decoder reuses: it
// is valid until the next call of Decode. Values inside it alias the input, and
// so do the fields of an event that the mapper fills; they live as long as the
// input does. What cannot alias the input (a uuid sent in binary form, a string
// with escapes) is appended to the caller's scratch memory. Only bytea in text
// form is written in place, since raw bytes are shorter than their text.
//
// # What it never does
//
// No panic on any input, no message accepted with bytes left over, no clock, no
// log, no lock, no goroutine, and no heap allocation on the way of a row. A kind
// it does not know is a Halt: going on after something nobody understood is how
// events get lost.
package decoder
