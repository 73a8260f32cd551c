// Package event holds the nouns that every room of walrelay shares: what an
// event is, where it stands in its source's log, which bytes it owns and for
// how long, what a Kafka record made of it looks like, and how an error says
// what has to happen next.
//
// The package knows no database, no broker, no clock and no goroutine.
package event
