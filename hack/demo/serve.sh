#!/usr/bin/env bash
# Starts the programs that the demonstration needs beside its clusters, also in `make local-up`; a
# second run does no harm. If pods run: serves the repository to them, as they see no folder of this
# machine. It also forwards the operator's receiver to a loopback port, for the repository's hook.
# Both end with the clusters. If pods are played: starts the operator and gardenlet that local-down
# has stopped.
set -o errexit -o nounset -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. hack/demo/settings.sh
[ -d "$remote" ] && [ -x "$demo" ] || exit 0
if lives; then
  "$local" run -- sh -c 'exec setsid -f "$0" serve-git 169.254.1.1:8080 "$1" > "$2" 2>&1 < /dev/null' "$demo" "$work/git" "$work/git.log"
  "$local" forward runtime garden/pergola-operator-receiver:80 --port "$receiver_port" > /dev/null
elif [ -x "$pergola" ]; then
  . hack/demo/play.sh
  again
fi
