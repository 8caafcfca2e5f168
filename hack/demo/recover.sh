#!/usr/bin/env bash
# Disaster recovery on its own local clusters (.local-recover; `make demo` is not affected).
# landscapes/local is applied, data is written to the virtual garden and the Shoot, all clusters are
# deleted. New ones come from Git, snapshots of etcd and a backup, with the same CAs and data. Pods
# must run: played pods have no data. See docs/howto/back-up-and-restore.md.
set -o errexit -o nounset -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
root="$PWD"
pergola="$root/bin/pergola" local="$root/bin/pergola-local" demo="$root/bin/pergola-demo" snapshot="$root/bin/pergola-snapshot"
state="$root/.local-recover" work="$root/.local-recover-kept"
export KUBECONFIG="$state/kubeconfig"
export SOPS_AGE_KEY_FILE="$root/landscapes/local/.sops/age.key"
unset SOPS_AGE_KEY

say() { printf '\n\033[1m▶ %s\033[0m\n' "$*"; }
run() { printf '$ %s\n' "$*"; "$@"; }
clusters() { "$local" "$@" --dir "$state"; }
throw_away() { clusters clean; rm -rf "$state"; }
# reach writes kubeconfigs for the API servers of control planes.
reach() {
  "$demo" reach pergola-runtime garden/gardener-internal https://api.virtual-garden.local.gardener.cloud pergola-virtual "$work/$1-virtual.kubeconfig"
  "$demo" reach pergola-local shoot--local--local/gardener-internal https://api.local.local.external.local.gardener.cloud pergola-shoot "$work/$1-shoot.kubeconfig"
}
with() { KUBECONFIG="$work/before-$1.kubeconfig" "${@:2}"; }
# etcds are the etcds to restore: context and Etcd. Events may start empty.
etcds=("runtime garden/virtual-garden-etcd-main" "local shoot--local--local/etcd-main")
file_of() { echo "$work/$1.db"; }

hack/build.sh bin/pergola-demo ./hack/demo
hack/slowly.sh "Building pergola-snapshot: a minute or two the first time …" go -C hack/local build -trimpath -o "$snapshot" ./snapshot
[ ! -d "$state" ] || throw_away
rm -rf "$work"
mkdir -p "$work"
printf '*\n' > "$work/.gitignore"

say "A landscape in Git, on clusters of its own"
git init -q --bare -b main "$work/landscape.git"
git init -q -b main "$work/first"
cp -r landscapes/local/. "$work/first"
rm -rf "$work/first/golden"
git -C "$work/first" add -A
git -C "$work/first" -c user.name=demo -c user.email=demo@example.com -c commit.gpgsign=false commit -q -m "The local landscape"
git -C "$work/first" push -q "$work/landscape.git" main
trap 'echo "To remove the remaining clusters: '"$local"' clean --dir '"$state"'"' ERR
run clusters up --pods run
run "$pergola" apply "$work/first"

say "A person works with the virtual garden and the Shoot"
reach before
for server in virtual shoot; do
  with $server "$demo" remember "pergola-$server" "$work/$server.kubeconfig"
done

say "Save the data of etcd, and a backup of everything that is not in Git"
for etcd in "${etcds[@]}"; do
  set -- $etcd
  run "$local" run --dir "$state" -- "$snapshot" save "pergola-$1" "$2" "$(file_of "$1")"
done
run "$pergola" backup "$work/first" --to "$work/landscape.backup"
"$pergola" backup show "$work/landscape.backup" -o json > "$work/before.json"
"$demo" buckets pergola-runtime > "$work/buckets"
echo "The backup has $(grep -c '"sort"' "$work/before.json") objects; pergola backup show lists them."

say "All clusters are lost"
run throw_away
rm -rf "$work/first"

say "New, empty clusters"
run clusters up --pods run
run git clone -q "$work/landscape.git" "$work/second"

say "Restore the backup, then the data, then run pergola apply"
run "$pergola" restore "$work/second" --from "$work/landscape.backup" | tail -n 3
for etcd in "${etcds[@]}"; do
  set -- $etcd
  run "$snapshot" restore "pergola-$1" "$2" "$(file_of "$1")"
done
run "$pergola" apply "$work/second"

say "The same data, for the previous clients"
for server in virtual shoot; do
  "$demo" recall pergola-runtime "$work/$server.kubeconfig"
done

say "The same CAs"
"$pergola" backup "$work/second" --to "$work/again.backup"
"$pergola" backup show "$work/again.backup" -o json > "$work/after.json"
run "$demo" authorities "$work/before.json" "$work/after.json"

say "The same bucket for the backups of etcd, named after the previous Garden"
"$demo" buckets pergola-runtime > "$work/buckets-now"
diff "$work/buckets" "$work/buckets-now"
cat "$work/buckets"

say "Everything is healthy"
"$demo" waiting "for conditions: they are written a little later than what they are about" \
  bash -c 'for _ in $(seq 90); do if "$@" > /dev/null 2>&1; then exit; fi; sleep 2; done' settled "$pergola" status "$work/second" --live
run "$pergola" status "$work/second" --live
trap - ERR
run throw_away
rm -rf "$work"
