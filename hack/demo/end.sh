#!/usr/bin/env bash
# The life of a Garden on its own cluster (.local-end; `make demo` is not affected). The Garden of
# landscapes/local is applied, its virtual garden runs, a commit and a confirmation delete it. Then
# all objects of the runtime cluster are compared with the objects before. Pods must run: played
# pods have no volumes to release and answer no webhooks.
set -o errexit -o nounset -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
root="$PWD"
pergola="$root/bin/pergola" local="$root/bin/pergola-local" demo="$root/bin/pergola-demo"
state="$root/.local-end" work="$root/.local-end-kept"
export KUBECONFIG="$state/kubeconfig"
export SOPS_AGE_KEY_FILE="$root/landscapes/local/.sops/age.key"
unset SOPS_AGE_KEY

say() { printf '\n\033[1m▶ %s\033[0m\n' "$*"; }
run() { printf '$ %s\n' "$*"; "$@"; }
throw_away() { "$local" clean --dir "$state"; rm -rf "$state"; }
commit() {
  git -C "$work/landscape" add -A
  git -C "$work/landscape" -c user.name=demo -c user.email=demo@example.com -c commit.gpgsign=false commit -q -m "$1"
}

hack/build.sh bin/pergola-demo ./hack/demo
[ ! -d "$state" ] || throw_away
rm -rf "$work"
mkdir -p "$work"
printf '*\n' > "$work/.gitignore"

say "A landscape in Git with a Garden, on a cluster of its own"
git init -q -b main "$work/landscape"
cp -r landscapes/local/landscape.yaml landscapes/local/garden landscapes/local/gardenconfig "$work/landscape"
# No seeds: a Garden is deleted after its seeds.
sed -i.bak '/^    seeds:$/,$ { /^    seeds:$/d; /^      /d; }' "$work/landscape/landscape.yaml"
rm "$work/landscape/landscape.yaml.bak"
commit "The Garden of the local landscape"
trap 'echo "To remove the remaining cluster: '"$local"' clean --dir '"$state"'"' ERR
run "$local" up --dir "$state" --clusters runtime --pods run
run "$demo" world pergola-runtime "$work/before.json"
run "$pergola" apply "$work/landscape"

say "A commit removes it: the commit alone deletes nothing"
git -C "$work/landscape" rm -q -r garden gardenconfig
commit "No Garden any more"
run "$pergola" apply "$work/landscape" && exit 1 || [ $? -eq 1 ]

say "The confirmation deletes it, with its workloads, in upstream's order"
run "$demo" confirm-deletion pergola-runtime local
run "$pergola" apply "$work/landscape" --timeout 8m

say "The runtime cluster is unchanged"
run "$demo" world-as pergola-runtime "$work/before.json"
trap - ERR
run throw_away
rm -rf "$work"
