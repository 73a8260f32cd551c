// Package mongotable runs the real relay on the outbox collection: marks, polling, catch-up,
// the sweep, parking, and the field cases that are about them. The same promises on
// Postgres are in packages table, tablecases and tablechaos.
package mongotable
