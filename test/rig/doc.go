// Package rig runs the real walrelay binary, with a real configuration file,
// against the servers of a test, and looks at it as an operator would: through
// its exit code, its log, its HTTP faces and its size in memory.
package rig
