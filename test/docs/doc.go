// Package docs holds the tests of what is written for people: that the runbook
// has a section for every anchor that errors point at and for nothing else, that
// links lead somewhere, that the README names tests that exist, and that the
// documents speak of options and commands of this version.
package docs
