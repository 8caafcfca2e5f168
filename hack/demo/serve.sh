#!/usr/bin/env bash
# What the demonstration needs beside its clusters; `make local-up` calls it, too. It does no harm twice.
# Where pods run: its repository served for them, as they see no folder of this machine, and the receiver of the operator at a loopback port, for the hook of
# the repository. Both end with the clusters. Where pods are played: the operator and the gardenlet, which local-down has stopped.
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
