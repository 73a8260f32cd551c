// Package arch holds the test that keeps the layers of DESIGN.md: which package
// may import which, and what a pure package must not touch.
package arch
