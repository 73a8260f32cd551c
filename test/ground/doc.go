// Package ground is what the test servers stand on: the folder that keeps
// fetched files, a scratch folder that other users may enter, ports that no
// other test process takes, locks between processes, child processes that end
// with their parent, and certificates.
//
// Linux only: children are tied to the test process by a parent-death signal.
package ground
