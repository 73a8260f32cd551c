// Command examples runs the services of examples/ on a machine that has nothing
// but Go, as make examples. It starts Postgres 18 with a database for each service
// and a Kafka-protocol broker inside itself, builds the real walrelay and both
// services, and has orders placed and paid:
//
//	orders ─► outbox ─► walrelay ─► shop.orders ─► payments ─► outbox ─► walrelay ─► shop.payments
//
// The clock of the order service is two seconds ahead of the payment service's. In
// between the payment service is killed and gets all orders once more, and the
// relay is killed and started again. The last line is the account of it:
//
//	examples: orders=… paid=… missing=… doubled=… before_their_order=… redelivered=… skipped=…
//
// It ends after EXAMPLES_ORDERS orders (default 30) and exits 0 only if each of
// them was paid once, by an event that names the order's as its cause and has a
// greater stamp. With EXAMPLES_STAY=1, as make examples-servers, it starts servers
// and relay alone, prints how to start the services by hand, and waits for ctrl-C.
package main
