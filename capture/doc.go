// Package capture decides how a source is read: from the log, from the table, or
// first the one and then the other.
//
// A source has gears, one at a time:
//
//	deciding   ask the server what a stream would find
//	catch_up   claim what is pending in the table, alone, before the log is followed
//	log        follow the log; a sweep beside it brings what the log does not
//	poll       claim rows, sharing them with other relays
//
//	              ┌────────── gap, and catching up is allowed ◄──┐
//	              ▼                                              │
//	deciding ─► catch_up ─► deciding ─► log ─────────────────────┤
//	   │  ▲                                                      │
//	   ▼  └── the log can be read again ── poll ◄────────────────┘
//	  poll                                        the log cannot be read (auto)
//
// The relay knows nothing of gears: a source that is complete gives way to its
// successor (event.ErrTurn), and the relay opens that one once everything is settled.
package capture
