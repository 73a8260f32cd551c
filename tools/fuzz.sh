#!/bin/bash
# Runs every fuzz target for the time given, one after another.
set -euo pipefail
time=$1
go test -list '^Fuzz' ./... | awk '
	/^Fuzz/ { targets[n++] = $1 }
	/^ok/ { for (i = 0; i < n; i++) print $2, targets[i]; n = 0 }' |
	while read -r package target; do
		echo "== $package $target"
		go test -run '^$' -fuzz "^$target\$" -fuzztime "$time" "$package" </dev/null
	done
