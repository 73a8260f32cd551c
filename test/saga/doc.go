// Package saga writes to a Postgres and a MongoDB outbox in turn, as flows of work do
// that run through two services: each step is a transaction in one of the databases,
// begins after the one before it was committed, and says something about the same keys.
// So the events of a key have one order, over both databases, that no log alone shows
// and stamps do. Afterwards it knows what was committed, and in which order for each key.
package saga
