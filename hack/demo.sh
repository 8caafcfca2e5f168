#!/usr/bin/env bash
# The demonstration applies landscapes/local from its own Git repository to the local clusters. Then
# follow a commit that changes a Shoot and the Garden, drift, and operator and gardenlet, which sync
# pushes. Everything stays up. demo/run.sh is for clusters whose pods run, demo/play.sh for played
# pods.
set -o errexit -o nounset -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

. hack/demo/settings.sh
hack/build.sh bin/pergola-demo ./hack/demo

say() { printf '\n\033[1m▶ %s\033[0m\n' "$*"; }
run() { printf '$ %s\n' "$*"; "$@"; }
# differs runs a command that exits with 1 if there are differences.
differs() { printf '$ %s\n' "$*"; "$@" || [ $? -eq 1 ]; }
git_() { git -C "$landscape" "$@"; }
# identify sets the author of commits in the repository, also for the user's own commits.
identify() { git_ config user.name demo; git_ config user.email demo@example.com; git_ config commit.gpgsign false; }
# waiting runs a command that may be silent for a while, and prints the reason.
waiting() { printf '$ %s\n' "${*:2}"; "$demo" waiting "$@"; }
# settled waits until everything is ready: conditions are written with a small delay.
settled() {
  echo "Waiting until everything is ready …"
  "$demo" waiting "for conditions: they are written a little later than what they are about" \
    bash -c 'for _ in $(seq 90); do if "$@" > /dev/null 2>&1; then exit; fi; sleep 2; done' settled "$pergola" status "$landscape" --live
}
# either prints the value that a file does not have yet, which makes the demonstration repeatable.
either() { if grep -q "$2: $3" "$1"; then echo "$4"; else echo "$3"; fi; }
# set_ sets the only field of that name in a file.
set_() { sed -i.bak "s/$2: .*/$2: $3/" "$1" && rm "$1.bak"; }

mkdir -p "$work"
if lives; then
  . hack/demo/run.sh
else
  . hack/demo/play.sh
fi
begin
# source_ is a checksum of landscapes/local, from which the landscape is copied.
source_="$(find landscapes/local -type f -not -path '*/golden/*' | sort | xargs cksum | cksum)"

say "A landscape in Git"
if [ -d "$landscape/.git" ] && [ "$(cat "$work/source" 2>/dev/null)" = "$source_" ]; then
  echo "Using the repository of the last demonstration again."
  identify
else
  if [ -d "$landscape/.git" ]; then
    kept="$work/landscape-before-$(date +%Y%m%d-%H%M%S)"
    mv "$landscape" "$kept"
    echo "landscapes/local has changed since the last demonstration: starting with a new repository. The previous one is in ${kept#"$root"/}."
  fi
  mkdir -p "$landscape"
  cp -r landscapes/local/. "$landscape"
  rm -rf "$landscape/golden"
  git -C "$landscape" init -q -b main
  identify
  git_ add -A
  git_ commit -q -m "The local landscape"
  printf '%s\n' "$source_" > "$work/source"
fi
git_ --no-pager log --oneline

say "Is it valid?"
run "$pergola" validate "$landscape"

say "Apply it: Garden, Seed and Shoot converge in the order of their flows"
echo "Everything is rendered first, which takes about ten seconds."
run "$pergola" apply "$landscape"
control_planes

say "A commit changes one field of the Garden and one of the Shoot"
garden="$landscape/garden/garden.yaml" shoot="$landscape/projects/local/shoot.yaml"
ttl="$(either "$garden" eventTTL 3h 2h)" maximum="$(either "$shoot" maximum 3 4)"
set_ "$garden" eventTTL "$ttl"
set_ "$shoot" maximum "$maximum"
git_ add -A
git_ commit -q -m "Keep events of the garden for $ttl, let the shoot have up to $maximum workers"
git_ --no-pager diff HEAD~1 --stat

say "The effect on every cluster, as a reviewer sees it"
differs "$pergola" diff "$landscape" --from HEAD~1 --to HEAD

say "Apply it: only changed objects are written"
run "$pergola" apply "$landscape" --verbose
event_ttl garden "$ttl" "The API servers of the garden run again, with the value from the commit"

say "Drift: a managed Deployment is deleted and a managed ConfigMap is edited, while Pergola watches"
"$pergola" apply "$landscape" --watch > "$work/watch.log" 2>&1 &
watch=$!
trap 'kill "$watch" 2>/dev/null || true' EXIT
"$demo" drift "$work/watch.log"
kill -INT "$watch"
wait "$watch" || true
trap - EXIT
# A running gardener-resource-manager may repair its objects first, and then has that in its log.
grep '↻' "$work/watch.log" || lives
if lives; then echo "Lines with ↻ come from pergola apply --watch. Repairs by gardener-resource-manager, which runs in the cluster, are in its own log."; fi

say "From Git: the operator, with the identity and the rights that the chart gives it"
"$demo" secret pergola-runtime garden/landscape-age age.agekey="$SOPS_AGE_KEY_FILE"
[ -f "$work/token" ] || head -c 24 /dev/urandom | base64 > "$work/token"
"$demo" secret pergola-runtime garden/landscape-push token="$work/token"
start_operator

say "A bare repository: its hook requests a sync and shows the progress to the pusher"
mkdir -p "${remote%/*}"
[ -d "$remote" ] || git init -q --bare -b main "$remote"
rm -f "$remote/hooks/post-receive" # from the last demonstration: nothing answers it yet
git -C "$landscape" remote remove demo 2>/dev/null || true
git -C "$landscape" remote add demo "$remote"
run git -C "$landscape" push -q --force demo main
cat > "$remote/hooks/post-receive" <<EOT
#!/bin/sh
exec "$pergola" hook post-receive --url http://127.0.0.1:$receiver_port --token-file "$work/token" --landscape garden/local --timeout 5m
EOT
chmod +x "$remote/hooks/post-receive"
serve_repository # sets url
cat > "$work/install.yaml" <<EOT
$(chart_values)
landscapes:
- name: local
  spec:
    source: {url: "$url", interval: 1m}
    decryption: {secretRef: {name: landscape-age}}
    receivers: [{name: push, type: hmac, secretRef: {name: landscape-push}}]
EOT
waiting "until the operator has restarted" "$pergola" install --context pergola-runtime --values "$work/install.yaml"
# With a changed catalogue it publishes for the stopped gardenlet, and reports that as not working.
run "$pergola" sync local --context pergola-runtime || { [ -n "${repeated:-}" ] && echo "The gardenlet starts again now."; }

say "The gardenlet of the seed: its input is published in the virtual garden"
chart_values > "$work/chart.yaml"
run "$pergola" install --role gardenlet-access --context pergola-virtual --values "$work/chart.yaml" --set gardenlet.seed=local
"$demo" identity pergola-virtual "$seed_account" "$work/gardenlet-garden.kubeconfig"
start_gardenlet

say "git push: the operator applies the commit, and the gardenlet its part of it"
ttl="$(either "$shoot" eventTTL 4h 5h)" maximum="$(either "$shoot" maximum 5 6)"
set_ "$shoot" eventTTL "$ttl"
set_ "$shoot" maximum "$maximum"
git_ add -A
git_ commit -q -m "Keep events of the shoot for $ttl, let it have up to $maximum workers"
waiting "for the operator, and for the gardenlet, which restarts the control plane of the Shoot" git -C "$landscape" push demo main
run "$pergola" history local --context pergola-runtime
event_ttl shoot "$ttl" "The API servers of the Shoot run again, with the pushed value"

say "Everything is as declared in Git"
settled
run "$pergola" status "$landscape" --live
go_on
