// Package config turns one YAML file, the environment and the flags into typed
// options, and into the Options of each room.
//
// # Where a value comes from
//
// Later wins: the default in the type's tag, the file, an environment variable
// (WALRELAY_ and the path in capitals, so http.listen is WALRELAY_HTTP_LISTEN), a
// flag. docs/config.md, generated from the types, lists every option.
//
// # What the loader promises
//
//   - Nothing is guessed. An unknown or doubled key, a value of the wrong type, a
//     number out of range, an empty value: each is refused with file, line,
//     column, path and a sentence. All of them are reported at once.
//   - ${NAME}, ${NAME:-default} and ${file:/path} stand inside scalar values and
//     are expanded after the YAML was parsed, so that a value cannot change the
//     structure of the file. $${ is a literal ${.
//   - Secrets do not print: [Secret] and [DSN] mask themselves under every verb
//     and encoder, and a value read by ${file:} is hidden wherever it stands.
//
// # How it is built
//
// The YAML becomes a tree of nodes with positions (yaml.go), values are expanded
// (expand.go), and the tree is laid over the types by reflection (decode.go).
// Struct tags say what an option may be:
//
//	yaml      the key
//	default   the value when nothing is given, as one would write it
//	required  the option must be given
//	enum      the words that are allowed, with | between them
//	zero      zero is a value like others, of a duration or size
//	min, max  the range of a whole number
//	key       for a map: what its keys are called in paths
//
// The comment above a field is its description in docs/config.md.
package config

//go:generate go test -run TestDocsDescribeEveryOption -update .
