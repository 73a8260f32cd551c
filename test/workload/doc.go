// Package workload writes an outbox as a busy application does: several writers,
// transactions of random length, savepoints and transactions that are rolled
// back, single and multi-row inserts and COPY, and it lives through restarts of
// the database. Afterwards it knows exactly what was committed, and in which
// order for each key.
package workload
