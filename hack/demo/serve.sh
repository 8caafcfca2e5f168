#!/usr/bin/env bash
# What the demonstration needs beside its clusters where pods run: its repository served for them, as they see no folder of this machine, and the receiver of
# the operator at a loopback port, for the hook of the repository. Both end with the clusters; `make local-up` calls it, too. It does no harm twice.
set -o errexit -o nounset -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
local=bin/pergola-local work="$PWD/.local/demo"
[ -d "$work/git/landscape.git" ] && [ -x bin/pergola-demo ] || exit 0
{ "$local" status -o json || true; } | grep -q '"living": true' || exit 0
"$local" run -- sh -c 'exec setsid -f "$0" serve-git 169.254.1.1:8080 "$1" > "$2" 2>&1 < /dev/null' "$PWD/bin/pergola-demo" "$work/git" "$work/git.log"
"$local" forward runtime garden/pergola-operator-receiver:80 --port "${DEMO_RECEIVER_PORT:-19292}" > /dev/null
