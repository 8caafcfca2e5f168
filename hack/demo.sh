#!/usr/bin/env bash
# The demonstration: landscapes/local in a Git repository of its own, applied to the local clusters; a commit that
# changes a Shoot and the Garden; drift that is repaired. The clusters stay up.
set -o errexit -o nounset -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

root="$PWD"
pergola="$root/bin/pergola"
go build -trimpath -o bin/pergola-demo ./hack/demo
work="$root/.local/demo"
landscape="$work/landscape"
export KUBECONFIG="$root/.local/kubeconfig"
export SOPS_AGE_KEY_FILE="${SOPS_AGE_KEY_FILE:-$root/landscapes/local/.sops/age.key}"

say() { printf '\n\033[1m▶ %s\033[0m\n' "$*"; }
run() { printf '$ %s\n' "$*"; "$@"; }
# differs runs a command whose exit code 1 says that there are differences.
differs() { printf '$ %s\n' "$*"; "$@" || [ $? -eq 1 ]; }
git_() { git -C "$landscape" -c user.name=demo -c user.email=demo@example.com -c commit.gpgsign=false "$@"; }

# either prints the one of two values that a file does not have yet, so that the demonstration can be repeated.
either() { if grep -q "$2: $3" "$1"; then echo "$4"; else echo "$3"; fi; }
# source identifies the landscape this one is a copy of.
source_="$(find landscapes/local -type f -not -path '*/golden/*' | sort | xargs cksum | cksum)"

say "A landscape in Git"
if [ -d "$landscape/.git" ] && [ "$(cat "$work/source" 2>/dev/null)" = "$source_" ]; then
  echo "The repository of the last demonstration is used again."
else
  if [ -d "$landscape/.git" ]; then
    kept="$work/landscape-before-$(date +%Y%m%d-%H%M%S)"
    mv "$landscape" "$kept"
    echo "landscapes/local has changed since the last demonstration: it begins anew. The former repository is kept in ${kept#"$root"/}."
  fi
  mkdir -p "$landscape"
  cp -r landscapes/local/. "$landscape"
  rm -rf "$landscape/golden"
  git -C "$landscape" init -q -b main
  git_ add -A
  git_ commit -q -m "The local landscape"
  printf '%s\n' "$source_" > "$work/source"
fi
git_ --no-pager log --oneline

say "Is it valid?"
run "$pergola" validate "$landscape"

say "Apply it: Garden, Seed and Shoot converge in the order of their flows"
run "$pergola" apply "$landscape"

say "A commit changes one field of the Shoot and one of the Garden"
garden="$landscape/garden/garden.yaml" shoot="$landscape/projects/local/shoot.yaml"
ttl="$(either "$garden" eventTTL 3h 2h)" maximum="$(either "$shoot" maximum 3 4)"
sed -i.bak "s/eventTTL: .*/eventTTL: $ttl/" "$garden"
sed -i.bak "s/maximum: .*/maximum: $maximum/" "$shoot"
find "$landscape" -name '*.bak' -delete
git_ add -A
git_ commit -q -m "Keep events of the garden for $ttl, let the shoot have up to $maximum workers"
git_ --no-pager diff HEAD~1 --stat

say "What it does to every cluster (this is what a reviewer sees)"
differs "$pergola" diff "$landscape" --from HEAD~1 --to HEAD

say "Apply it: only what changed is touched"
run "$pergola" apply "$landscape" --verbose

say "Drift: a managed Deployment is deleted and a managed ConfigMap is edited, while Pergola watches"
"$pergola" apply "$landscape" --watch > "$work/watch.log" 2>&1 &
watch=$!
trap 'kill "$watch" 2>/dev/null || true' EXIT
"$root/bin/pergola-demo" "$work/watch.log"
kill -INT "$watch"
wait "$watch" || true
trap - EXIT
grep '↻' "$work/watch.log"

say "Everything is as Git says"
run "$pergola" status "$landscape" --live

cat <<EOT

The clusters stay up. Go on with:

  export KUBECONFIG=$KUBECONFIG SOPS_AGE_KEY_FILE=$SOPS_AGE_KEY_FILE
  bin/pergola status $landscape --live --components
  bin/pergola apply $landscape --watch       # then edit a file below it: it is applied as soon as it is valid
  bin/pergola diff $landscape --live
  kubectl --context pergola-runtime get managedresources -A      # any kubectl works, none is needed
  make local-status | make local-down | make local-clean
EOT
