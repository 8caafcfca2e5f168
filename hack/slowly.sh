#!/usr/bin/env bash
# Runs a command, and says what it is if that takes more than two seconds: hack/slowly.sh TEXT COMMAND [ARGUMENT...]. The text goes to standard error.
set -o nounset
# No program waits for the time to pass, as that would outlive this one: bash reads from a pipe into which nobody writes.
pipe="$(mktemp -u "${TMPDIR:-/tmp}/pergola-slowly.XXXXXX")"
mkfifo -m 600 "$pipe" || exec "${@:2}"
exec 9<> "$pipe"
rm -f "$pipe"
{ read -rt 2 -u 9 || echo "$1" >&2; } &
hint=$!
trap 'kill "$hint" 2> /dev/null' EXIT
"${@:2}" 9>&-
