#!/usr/bin/env bash
# Runs a command; after two seconds prints TEXT to stderr: hack/slowly.sh TEXT COMMAND
# [ARGUMENT...].
set -o nounset
# No sleep program, which would outlive this one: bash reads from a pipe without writers.
pipe="$(mktemp -u "${TMPDIR:-/tmp}/pergola-slowly.XXXXXX")"
mkfifo -m 600 "$pipe" || exec "${@:2}"
exec 9<> "$pipe"
rm -f "$pipe"
{ read -rt 2 -u 9 || echo "$1" >&2; } &
hint=$!
trap 'kill "$hint" 2> /dev/null' EXIT
"${@:2}" 9>&-
