// Package bsonjson writes BSON as JSON: straight from the bytes of a document to
// the end of a buffer, without maps, reflection or a value per field.
//
// # The forms
//
// [Plain] is what a reader of JSON expects, and what a jsonb column would show:
// numbers are numbers, an ObjectId is 24 hex digits, a date is RFC 3339 text in
// UTC with milliseconds, a UUID is its usual text, other binary is base64. What has
// no plain form (Timestamp, Regex, Code, MinKey, MaxKey, DBPointer) is written as
// in relaxed Extended JSON. [Relaxed] and [Canonical] are the two forms of
// MongoDB's Extended JSON v2. [BSON] leaves the bytes as they are, and checks them.
//
// In every form the order of members is kept, members of one name are kept, names
// with dots or a leading dollar are written as they are, and an int64 has all its
// digits: consumers that read numbers as doubles lose some beyond 2^53, for them
// there is [Options.Int64Text].
//
// # Who owns bytes, and until when
//
// Input is only read. What the Append functions return is dst, grown.
// [Encoder.Payload] may return a part of its input instead.
//
// # What it never does
//
// No panic on any input, no heap allocation unless dst must grow or an error is
// returned, no clock, no log, no lock. Bytes that are no BSON are an [*Error],
// which is Poison and names the byte; dst then comes back as it was given.
package bsonjson
