#!/usr/bin/env bash
# Rotates all credentials of the demonstration's Garden while a client writes to the virtual garden
# ten times a second. Operator and gardenlet change over by themselves; the client changes over in
# between, as people's clients do.
set -o errexit -o nounset -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

. hack/demo/settings.sh
say() { printf '\n\033[1m▶ %s\033[0m\n' "$*"; }
run() { printf '$ %s\n' "$*"; "$@"; }
access="$work/access/virtual.kubeconfig"
if ! lives || ! [ -f "$access" ] || ! [ -x "$demo" ] || ! "$demo" runs pergola-runtime garden/pergola-operator; then
  echo "There is no demonstration with running control planes and an operator: run make demo first (Linux)." >&2
  exit 1
fi
hack/build.sh bin/pergola-demo ./hack/demo
export KUBECONFIG="$root/.local/kubeconfig:$access"
reach() { "$demo" reach pergola-runtime garden/gardener-internal https://api.virtual-garden.local.gardener.cloud pergola-virtual "$access"; }
reach
began="$(date '+%F %T')" # in the format of the history

say "A client writes to the virtual garden, ten times a second"
"$demo" namespace pergola-virtual written-while-rotating
"$demo" write "$access" written-while-rotating &
writing=$!
trap 'kill "$writing" 2>/dev/null || true' EXIT

say "Start the rotation of all credentials: new ones are created and distributed beside the old ones"
echo "The encryption key takes three rolling restarts of the API servers; etcd is rewritten; gardenlets renew their credentials. This takes some minutes."
run "$pergola" operate "$landscape" "Garden local" rotate-credentials-start --wait --timeout 20m

say "People switch their clients; then the old credentials are removed"
reach
run "$pergola" operate "$landscape" "Garden local" rotate-credentials-complete --wait --timeout 20m

say "The result of the client"
kill -INT "$writing"
trap - EXIT
wait "$writing"

say "Operator and gardenlet work with the new credentials"
run "$pergola" sync local --context pergola-runtime
run "$pergola" operate "$landscape" "Seed local" reconcile --wait
run "$pergola" status "$landscape" --live

say "The rotation in the history of the landscape"
history="$("$pergola" history local --context pergola-runtime)"
printf '%s\n' "$history"
history="$(awk -v began="$began" '$1" "$2 >= began' <<< "$history" | grep -v '^BEGAN' || true)" # an earlier rotation does not count
for operation in rotate-credentials-start rotate-credentials-complete; do
  case "$history" in
    *"$operation"*) ;;
    *) echo "The history does not name $operation." >&2; exit 1 ;;
  esac
done
