#!/usr/bin/env bash
# Draws docs/pictures from real runs: `make screens`. It applies landscapes/local to its own local
# clusters and changes a Shoot. It records the output of diff and status, and the diff's HTML.
set -o errexit -o nounset -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

root="$PWD" pictures="$PWD/docs/pictures" work="$(mktemp -d)"
local="$root/bin/pergola-local"
trap '"$local" clean --dir "$work/clusters" > /dev/null; rm -rf "$work"' EXIT
export SOPS_AGE_KEY_FILE="$root/landscapes/local/.sops/age.key" PATH="$root/bin:$PATH"
mkdir -p "$pictures"

# screen records the first lines of a command that runs in a terminal: screen FILE LINES COMMAND.
screen() {
  GOFLAGS='' go run github.com/charmbracelet/freeze@v0.2.2 --execute.timeout 5m --execute "bash -c '$3 || true'" --lines "0,$2" \
    --font.family "ui-monospace, monospace" --padding 20 --output "$pictures/$1"
}

"$local" up --dir "$work/clusters" --pods play > /dev/null
export KUBECONFIG="$work/clusters/kubeconfig"

cp -r landscapes/local "$work/landscape"
rm -rf "$work/landscape/golden"
cd "$work"
git init -q -b main .
git add landscape
git -c user.name=screens -c user.email=screens@example.org commit -qm "The local landscape"
pergola apply landscape > /dev/null
screen status.svg 30 "pergola status landscape --live"

sed -i.bak 's/^    kubelet:$/    kubelet:\n      kubeReserved:\n        memory: 2Gi/' landscape/projects/local/shoot.yaml
rm landscape/projects/local/shoot.yaml.bak
screen diff.svg 22 "pergola diff landscape"

# Forges display pictures, but no pages: an SVG holds the page as XHTML, without its script.
pergola diff landscape -o html > diff.html || [ $? -eq 1 ]
{
  echo '<svg xmlns="http://www.w3.org/2000/svg" width="1100" height="700"><foreignObject width="100%" height="100%">'
  sed -e '/^<!DOCTYPE/d; /^<meta/d; /^<script/,/<\/script>$/d' -e 's/<html /<html xmlns="http:\/\/www.w3.org\/1999\/xhtml" /' \
    -e 's/<\(input\|br\)\([^>]*\)>/<\1\2\/>/g; s/ \(open\|hidden\)>/ \1="">/g' diff.html
  echo '</foreignObject></svg>'
} > "$pictures/diff-html.svg"
