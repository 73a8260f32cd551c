// Package document makes events of outbox documents, from the bytes of BSON and
// without a value per field.
//
// # What a field becomes
//
// Events carry text, so that a document gives the same record as the same row of a
// Postgres table would.
//
//	string                  its bytes as they are, also where they are no UTF-8
//	binary UUID             the usual text; of subtype 3 by Options.Format.LegacyUUID, else refused
//	ObjectId                24 hex digits
//	date                    as Postgres prints a timestamptz in UTC: 2026-08-21 10:15:00.123+00
//	int32, int64            decimal digits
//	double                  decimal digits where it is whole: JavaScript has no other numbers
//	null, undefined         nil, as a field that is missing
//	anything else           its plain JSON, without quotes
//
// Stamp and version must be whole numbers or text, available_at a date. The payload
// is not text: a document or array is written in Options.Format, a string or binary is left as
// it is. Of two fields of one name the first counts, as it does for the server's queries.
//
// # The id of a document
//
// [event.RowID] is the text of _id and of nothing else, whatever the schema's row id is
// called: a field of the writer's own has no index. [EncodeID] writes it, [DecodeID] gives
// the BSON value back. The event id may come from a field of that name, or from _id where there is none.
//
// # Who owns bytes, and until when
//
// The event's slices alias the document and what was appended; both must stay as they are as
// long as the event is used.
//
// # What it never does
//
// No panic on any input, no heap allocation unless the buffer must grow or the event is
// refused, no clock, no log. What cannot be read makes a refused event, which is complete
// enough to be put aside: all fields that could be read are there.
package document
