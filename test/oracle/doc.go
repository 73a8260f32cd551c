// Package oracle judges an end-to-end test: it holds what was committed in the
// source against what arrived in Kafka, and counts what was lost, doubled, out of
// order, altered, or never committed at all.
package oracle
