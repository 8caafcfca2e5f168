#!/usr/bin/env bash
# The demonstration: landscapes/local in a Git repository of its own, applied to the local clusters; a commit that
# changes a Shoot and the Garden; drift that is repaired; then operator and gardenlet, which sync what is pushed. All stays up.
set -o errexit -o nounset -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

root="$PWD"
pergola="$root/bin/pergola"
hack/build.sh bin/pergola-demo ./hack/demo
work="$root/.local/demo"
landscape="$work/landscape"
export KUBECONFIG="$root/.local/kubeconfig"
export SOPS_AGE_KEY_FILE="${SOPS_AGE_KEY_FILE:-$root/landscapes/local/.sops/age.key}"

demo="$root/bin/pergola-demo"
# Ports of the operator and the gardenlet of the demonstration.
operator_port="${DEMO_OPERATOR_PORT:-18081}" receiver_port="${DEMO_RECEIVER_PORT:-19292}" gardenlet_port="${DEMO_GARDENLET_PORT:-18082}"
seed_account="garden/gardenlet-local" # of the chart, role gardenlet-access

say() { printf '\n\033[1m▶ %s\033[0m\n' "$*"; }
run() { printf '$ %s\n' "$*"; "$@"; }
# differs runs a command whose exit code 1 says that there are differences.
differs() { printf '$ %s\n' "$*"; "$@" || [ $? -eq 1 ]; }
git_() { git -C "$landscape" -c user.name=demo -c user.email=demo@example.com -c commit.gpgsign=false "$@"; }
# settled waits until everything is ready: the operator writes what it thinks of the seeds a little later than they do.
settled() { for _ in $(seq 60); do if "$pergola" status "$landscape" --live > /dev/null 2>&1; then return; fi; sleep 2; done; }

# either prints the one of two values that a file does not have yet, so that the demonstration can be repeated.
"$root/hack/stop-demo.sh"
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
"$root/bin/pergola-demo" drift "$work/watch.log"
kill -INT "$watch"
wait "$watch" || true
trap - EXIT
grep '↻' "$work/watch.log"

say "From Git: the operator, with the identity and the rights that the chart gives it"
# Images cannot run here: the chart is installed without pods, and the programs run as processes with tokens of its accounts.
chart=(--set image.repository=pergola.example.org/pergola --set replicas=0)
run "$pergola" install --context pergola-runtime "${chart[@]}"
"$demo" identity pergola-runtime garden/pergola-operator "$work/operator.kubeconfig"
"$demo" access pergola-virtual "$work/virtual.kubeconfig"
"$demo" secret pergola-runtime garden/gardener-internal kubeconfig="$work/virtual.kubeconfig"
"$demo" secret pergola-runtime garden/landscape-age age.agekey="$SOPS_AGE_KEY_FILE"
[ -f "$work/token" ] || head -c 24 /dev/urandom | base64 > "$work/token"
"$demo" secret pergola-runtime garden/landscape-push token="$work/token"

say "A bare repository, whose hook asks for a sync and shows its progress to whoever pushes"
remote="$work/landscape.git"
[ -d "$remote" ] || git init -q --bare -b main "$remote"
cat > "$remote/hooks/post-receive" <<EOT
#!/bin/sh
exec "$pergola" hook post-receive --url http://127.0.0.1:$receiver_port --token-file "$work/token" --landscape garden/local --timeout 5m
EOT
chmod +x "$remote/hooks/post-receive"
git -C "$landscape" remote remove demo 2>/dev/null || true
git -C "$landscape" remote add demo "$remote"
git_ push -q --force --no-verify demo main 2>/dev/null || true

operator=("$pergola" operator --kubeconfig "$work/operator.kubeconfig" --cache-dir "$work/cache" --allow-file-sources --log-format text
  --bind-address 127.0.0.1 --health-port $operator_port --metrics-port -1 --receiver-port $receiver_port)
"${operator[@]}" > "$work/operator.log" 2>&1 &
echo $! > "$work/operator.pid"
"$demo" ready http://127.0.0.1:$operator_port/readyz
cat > "$work/install.yaml" <<EOT
image: {repository: pergola.example.org/pergola}
replicas: 0
landscapes:
- name: local
  spec:
    source: {url: "file://$remote", interval: 1m}
    decryption: {secretRef: {name: landscape-age}}
    receivers: [{name: push, type: hmac, secretRef: {name: landscape-push}}]
EOT
run "$pergola" install --context pergola-runtime --values "$work/install.yaml"
run "$pergola" sync local --context pergola-runtime

say "The gardenlet of the seed: what it needs is published in the virtual garden by now"
run "$pergola" install --role gardenlet-access --context pergola-virtual "${chart[@]}" --set gardenlet.seed=local
run "$pergola" install --role gardenlet --context pergola-local "${chart[@]}" --set gardenlet.seed=local
"$demo" identity pergola-local garden/pergola-gardenlet "$work/gardenlet.kubeconfig"
"$demo" identity pergola-virtual "$seed_account" "$work/gardenlet-garden.kubeconfig"
gardenlet=("$pergola" gardenlet --seed local --kubeconfig "$work/gardenlet.kubeconfig" --garden-kubeconfig "$work/gardenlet-garden.kubeconfig" --log-format text
  --bind-address 127.0.0.1 --health-port $gardenlet_port --metrics-port -1)
"${gardenlet[@]}" > "$work/gardenlet.log" 2>&1 &
echo $! > "$work/gardenlet.pid"
"$demo" ready http://127.0.0.1:$gardenlet_port/readyz

say "git push: the operator applies the commit, the gardenlet takes what is its own"
ttl="$(either "$garden" eventTTL 4h 5h)" maximum="$(either "$shoot" maximum 5 6)"
sed -i.bak "s/eventTTL: .*/eventTTL: $ttl/" "$garden"
sed -i.bak "s/maximum: .*/maximum: $maximum/" "$shoot"
find "$landscape" -name '*.bak' -delete
git_ add -A
git_ commit -q -m "Keep events of the garden for $ttl, let the shoot have up to $maximum workers"
run git -C "$landscape" push demo main
run "$pergola" history local --context pergola-runtime

say "Everything is as Git says"
settled
run "$pergola" status "$landscape" --live

cat <<EOT

The clusters, the operator and the gardenlet stay up (logs: .local/demo/operator.log, gardenlet.log). Go on with:

  export KUBECONFIG=$KUBECONFIG SOPS_AGE_KEY_FILE=$SOPS_AGE_KEY_FILE
  $pergola status $landscape --live --components
  $pergola diff $landscape --live
  $pergola history local --context pergola-runtime   # also: sync, suspend, resume, rollback, tree
  git -C $landscape push demo main                   # after a change and a commit in that folder
  kubectl --context pergola-runtime get landscapes,managedresources -A      # any kubectl works, none is needed
  make -C $root local-status                         # also: local-down, local-clean
  $root/hack/stop-demo.sh                            # stops operator and gardenlet; each of these starts one again, in a terminal of its own:
  ${operator[*]}
  ${gardenlet[*]}
EOT
