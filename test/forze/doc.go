// Package forze plays the test batteries A to E of the forze outbox against this
// relay, on real Postgres, and holds whole rows against what they must be at the end:
// every column that a transition does not touch must be as it was inserted.
//
// The application is played by the tests: rows are written by forze's own INSERT, failed
// ones requeued by its own UPDATE, and a forze poller is its claim and its marks as plain
// SQL. Most tests run the outbox.Poller, the corridor and the router against a broker that
// follows a script; where the whole way matters the real binary stands before a real Kafka.
//
// Each test names its item (A1, B10, C8, …) in its comment. These have none:
//
//   - A4 is B2 here: a writer's uncommitted row, which nobody sees.
//   - B3, B5, B15 are about forze's writer; what matters to a relay, that the row's columns stay as
//     written and come out as written, every test here asserts, E1 and E2 by name.
//   - B18: MongoDB's three commands of a claim. A claim is one statement here.
//   - B20, and E3's other transports: Redis, RabbitMQ, SQS; the relay writes to Kafka only.
//   - C9's shared due time and its "(+1 more)": forze writes several retries with one
//     statement, one due time and one text. Each row has its own here.
//   - C11's chunks of 32, C8's 32, 32, 32, 4: the size of a batch is whatever came together; C8
//     is that there are batches.
//   - D2: a cap on batches per tick. There are no ticks: a claim follows a claim as
//     long as there are rows.
//   - D6: passes bound to one tenant each. One relay reads the rows of all tenants;
//     E1 has a tenant's row.
//   - D10: a drain that is armed once, and D11: the refusal to drain to a destination that forgets. A
//     stop is the relay's own orderly end, always on, and Kafka does not forget.
//   - E5's decoder is the consumer's. What it is given, E1, E2 and E5 here assert.
//
// Two things differ from forze on purpose. A reclaim counts an attempt (forze leaves
// attempts alone), so that a row that kills its relay is given up one day. A key is
// held back behind its failing row unless its route says otherwise; with hold_back: false
// rows of a key pass each other as with forze.
package forze
