#!/usr/bin/env bash
# Stops the operator and the gardenlet that `make demo` has started.
set -o errexit -o nounset -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
for file in .local/demo/operator.pid .local/demo/gardenlet.pid; do
  [ -f "$file" ] || continue
  pid="$(cat "$file")"
  # Only if it is still that program: process IDs are reused.
  if [ -r "/proc/$pid/cmdline" ] && tr '\0' ' ' < "/proc/$pid/cmdline" | grep -q 'bin/pergola '; then
    kill "$pid" 2>/dev/null || true
    for _ in $(seq 50); do [ -d "/proc/$pid" ] || break; sleep 0.1; done
  elif [ ! -d /proc/self ] && kill -0 "$pid" 2>/dev/null; then
    kill "$pid" 2>/dev/null || true # no /proc here
  fi
  rm -f "$file"
done
