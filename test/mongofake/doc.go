// Package mongofake is a MongoDB server in the test's own process, for the
// faults that a real one cannot be made to show on demand. It speaks OP_MSG with
// the Go driver, presents itself as the primary of a replica set of one, and
// keeps no documents.
//
// What it does by itself: the handshake, ping, sessions, and change streams.
// [Server.Emit] appends events to one log; every change stream reads that log
// from where it was opened, by token or by time, whatever its collection, and
// pipelines are recorded but not applied. The other commands answer what a test
// says:
//
//	fake := mongofake.New(t)
//	fake.Handle("update", func(c mongofake.Command) mongofake.Answer {
//		return mongofake.OK(bson.E{Key: "n", Value: len(c.Documents("updates"))})
//	})
//	fake.Script("getMore", mongofake.Fail(91, "shutting down", "ResumableChangeStreamError"), mongofake.Drop())
//	client := fake.Client(t)
//
// Script takes precedence for as many commands as it has answers.
//
// Connections are pipes in memory and all waiting is on channels and timers, so
// server and driver live in a testing/synctest bubble together: make both inside
// of it. Code that takes no client but a connection string gets one from URL,
// outside of bubbles.
package mongofake
