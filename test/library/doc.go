// Package library tests the Go library for applications (stage/, hlc/) against
// the relay: what is staged comes out of Kafka as a reader of this outbox expects it.
package library
