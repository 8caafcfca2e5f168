#!/usr/bin/env bash
# `make bench-living` runs this: it measures the time until all control planes of a virtual garden,
# seeds and Shoots run, and their CPU time and memory. It checks that nothing remains. bin/pergola
# and bin/pergola-local must exist.
set -o errexit -o nounset -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

seeds="${1:-3}" shoots="${2:-2}"
work="$(mktemp -d)"
pergola="$PWD/bin/pergola" from="$PWD/landscapes/local"
export SOPS_AGE_KEY_FILE="$from/.sops/age.key"
local() { bin/pergola-local --dir "$work/clusters" "$@"; }
trap 'local clean > /dev/null 2>&1 || true; rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

# The landscape of the demonstration with more seeds and Shoots, of other names and networks.
landscape="$work/landscape"
mkdir -p "$landscape/seeds" "$landscape/projects/local"
cp -r "$from/garden" "$from/gardenconfig" "$from/.sops.yaml" "$landscape" 2> /dev/null || cp -r "$from/garden" "$from/gardenconfig" "$landscape"
cp "$from/seeds/secrets.yaml" "$landscape/seeds"
cp "$from"/projects/local/{project,credentials}.yaml "$landscape/projects/local"
clusters=runtime contexts=""
for s in $(seq "$seeds"); do
  clusters="$clusters,seed-$s"
  contexts="$contexts      seed-$s:\n        context: pergola-seed-$s\n"
  sed -e "s/^  name: local$/  name: seed-$s/" -e "s/10\.3\.0\.0/10.$((2 * s + 1)).0.0/" -e "s/10\.4\.0\.0/10.$((2 * s + 2)).0.0/" -e "s/172\.18\.1\.0/172.18.$s.0/" \
    -e "s/ingress\.local\./ingress.seed-$s./" "$from/seeds/local.yaml" > "$landscape/seeds/seed-$s.yaml"
  for n in $(seq "$shoots"); do
    name="s$s-$n"
    sed -e "s/^  name: local$/  name: $name/" -e "s/seedName: local/seedName: seed-$s/" -e "s/domain: local\.local\./domain: $name.local./" \
      "$from/projects/local/shoot.yaml" > "$landscape/projects/local/$name.yaml"
  done
done
sed -e '/^    seeds:/,/context: pergola-local/d' "$from/landscape.yaml" | sed -e "s/^      context: pergola-runtime$/&\n    seeds:\n$contexts/" > "$landscape/landscape.yaml"
"$pergola" validate "$landscape"

seconds() { date +%s; }
began="$(seconds)"
local up --clusters "$clusters" --pods run > /dev/null
export KUBECONFIG="$work/clusters/kubeconfig"
up="$(seconds)"
"$pergola" apply "$landscape" > "$work/apply.log" 2>&1 || { tail -n 40 "$work/apply.log"; echo "(waiting until everything is ready)"; }
until "$pergola" status "$landscape" --live > "$work/status"; do
  if [ $(($(seconds) - began)) -gt 1200 ]; then
    cat "$work/status"
    echo "not ready after 20 minutes" >&2
    exit 1
  fi
  sleep 1
done
ready="$(seconds)"
cat "$work/status"

# Only the clusters' processes run inside. Memory that several share counts once (Pss).
inside="$(local run -- sh -c '
  kb=0 ticks=0 n=0
  for p in /proc/[0-9]*; do
    [ -r $p/smaps_rollup ] || continue
    pss=$(sed -n "s/^Pss: *\([0-9]*\) kB/\1/p" $p/smaps_rollup 2> /dev/null) || continue
    [ -n "$pss" ] || continue
    set -- $(sed "s/.*) //" $p/stat)
    kb=$((kb + pss)) ticks=$((ticks + ${12} + ${13})) n=$((n + 1))
  done
  echo $kb $ticks $n')"
read -r kb ticks n <<< "$inside"
cpu=$((ticks / $(getconf CLK_TCK))) cores="$(nproc)"
servers="$(local run -- sh -c 'cat /proc/[0-9]*/comm' | grep -c '^kube-apiserver')"
printf '%s\n' "" "A virtual garden, $seeds seeds and $((seeds * shoots)) Shoots on $cores cores: $servers API servers, $n processes" \
  "  clusters are up after          $((up - began)) s" \
  "  everything is ready after      $((ready - began)) s; their processes needed $cpu s of CPU, for which $cores cores take $((cpu / cores)) s" \
  "  memory                         $((kb / 1024)) MiB"

local clean
# The state folder is in the arguments of all processes, and in all mounts.
left="$(for p in /proc/[0-9]*; do
  command="$(tr '\0' ' ' 2> /dev/null < "$p/cmdline" || true)"
  case "$command" in *"$work/clusters"*) echo "${p#/proc/}: $command" ;; esac
done)"
mounts="$(grep -F "$work/clusters" /proc/self/mountinfo || true)"
if [ -n "$left" ] || [ -n "$mounts" ] || [ -e "$work/clusters" ]; then
  printf 'these processes or mounts remain:\n%s\n%s\n' "$left" "$mounts" >&2
  exit 1
fi
echo "  left after local clean         no process, no mount, no file"
