#!/usr/bin/env bash
# Formats, license headers, go vet, staticcheck and hack/lint/prose. hack/tools/go.mod pins
# staticcheck.
set -o errexit -o nounset -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

bin="$(mktemp -d)"
trap 'rm -rf "$bin"' EXIT

unformatted="$(git ls-files -co --exclude-standard '*.go' | xargs gofmt -l)"
if [ -n "$unformatted" ]; then
  echo "not gofmt-ed:" >&2
  echo "$unformatted" >&2
  exit 1
fi
unlicensed="$(git ls-files -co --exclude-standard '*.go' | grep -v '/zz_generated[^/]*$' |
  xargs awk 'FNR == 1 && $0 != "// SPDX-License-Identifier: Apache-2.0" { print FILENAME }')"
if [ -n "$unlicensed" ]; then
  echo "the first line is not // SPDX-License-Identifier: Apache-2.0:" >&2
  echo "$unlicensed" >&2
  exit 1
fi
go -C hack/tools build -o "$bin/staticcheck" honnef.co/go/tools/cmd/staticcheck
for module in . hack/local; do
  go -C "$module" vet ./...
  (cd "$module" && "$bin/staticcheck" ./...)
done
go run ./hack/lint/prose

# docs/explanation/dependencies.md must say why each direct dependency exists.
go mod edit -json |
  awk '/"Path":/ {gsub(/[",]/, "", $2); path=$2} /"Indirect": true/ {indirect[path]=1} /"Version":/ {seen[path]=1}
       END {for (p in seen) if (!indirect[p]) print p}' |
  while read -r path; do
    if ! grep -qF "| $path |" docs/explanation/dependencies.md; then
      echo "docs/explanation/dependencies.md gives no reason for $path" >&2
      exit 1
    fi
  done
