package main

import "context"

// database is what the events are written to and read from.
type database interface {
	// title names it, for people.
	title() string
	// fetches says what the first run fetches.
	fetches() string
	// start starts a server and answers what it is like.
	start() (what string, err error)
	close()
	// config is the section of the source, indented as in the file; the address stands in
	// the variable that env sets.
	config() string
	env() string
	connect(ctx context.Context) (session, error)
	// undoes says that a part of a transaction can be taken back.
	undoes() bool
}

// session is one writer's connection.
type session interface {
	begin(ctx context.Context) (transaction, error)
	close(ctx context.Context)
}

// transaction is one transaction, or a part of one.
type transaction interface {
	emit(ctx context.Context, e written, kind, note string) error
	// part begins a part that can be rolled back by itself.
	part(ctx context.Context) (transaction, error)
	commit(ctx context.Context) error
	rollBack(ctx context.Context) error
}
