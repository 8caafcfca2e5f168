#!/usr/bin/env bash
# `make test-all` runs this: all tests, also tests that `make test` skips or samples
# (hack/testselection/tests.txt). Arguments name the parts to run; without any, all run, one after
# the other.
set -o errexit -o nounset -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

export CGO_ENABLED=0 GOFLAGS=-trimpath

parts="faults commands landscapes operator renders variants local rest"

# packages prints the packages of a part; rest has the packages that no other part names.
packages() {
  case "$1" in
  faults) echo ./test/faults ;;
  commands) echo ./cmd/... ./commands/adoption ./controllers/webhook/admission ;;
  landscapes) echo ./test/landscape ./test/deletion ./test/tutorial ;;
  operator) echo ./controllers/operator ./commands/recovery ./controllers/gardenlet ;;
  renders) echo ./render/... ./schemas/... ./components/... ./deploy/... ;;
  variants) echo ./test/variants ;;
  rest)
    local named
    named="$(for part in $parts; do [ "$part" = rest ] || [ "$part" = local ] || packages "$part"; done | xargs go list)"
    go list ./... | grep -vxF "$named"
    ;;
  esac
}

for part in "$@"; do
  case " $parts " in
  *" $part "*) ;;
  *)
    echo "no part \"$part\": use one of $parts" >&2
    exit 2
    ;;
  esac
done

go -C hack/local build -trimpath -o "$PWD/bin/pergola-local" .
bin/pergola-local build
if [ -z "${KUBEBUILDER_ASSETS:-}" ]; then
  export KUBEBUILDER_ASSETS="$PWD/hack/local/bin"
fi
go build -o bin/pool ./hack/apiserver/pool

for part in ${@:-$parts}; do
  printf '\n== %s\n' "$part"
  started=$SECONDS
  case "$part" in
  local) go -C hack/local test -timeout 20m ./... ;;
  # Points in time are tried in parallel: they wait more than they work.
  faults) go test -ldflags=-w -timeout 60m -parallel 6 $(packages faults) ;;
  *) bin/pool go test -ldflags=-w -timeout 60m $(packages "$part") | { grep --line-buffered -v "no test files" || true; } ;;
  esac
  echo "$part: $((SECONDS - started)) s"
done
