#!/usr/bin/env bash
# `make check` and `make test` run this, with their name. Both vet, lint, check generated files and
# run tests: check without API servers, test also on real ones. test builds etcd and the Kubernetes
# control plane from Go modules once, or takes them from KUBEBUILDER_ASSETS.
# hack/testselection/tests.txt lists the tests that they skip or sample: hack/test-all.sh runs all.
set -o errexit -o nounset -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
speed="${1:-test}"

# The flags of hack/build.sh: packages are compiled once for the program and the tests, and a second
# checkout finds them in the build cache.
export CGO_ENABLED=0 GOFLAGS=-trimpath

step() { printf '\n== %s\n' "$*"; }

# tests runs the tests of this speed. They link faster without symbols for debuggers; the lint vets.
tests() {
  local left
  left="$(awk -v speed="$speed" '{ sub(/#.*/, "") } !/:/ && ($1 == "test" || $1 == speed) { printf "%s^%s$", sep, $2; sep = "|" }' hack/testselection/tests.txt)"
  ${run:-} go test -short -vet=off -ldflags=-w -skip "$left" "$@" | { grep --line-buffered -v "no test files" || true; }
}

if [ "$speed" = test ]; then
  step "local control plane binaries"
  go -C hack/local build -trimpath -o "$PWD/bin/pergola-local" .
  bin/pergola-local build
  export KUBEBUILDER_ASSETS="${KUBEBUILDER_ASSETS:-$PWD/hack/local/bin}"
else
  unset KUBEBUILDER_ASSETS
fi

step "lint"
hack/lint.sh

step "generated files are current"
before="$(mktemp -d)"
trap 'rm -rf "$before"' EXIT
generated="api schemas/base deploy/charts deploy/kustomize docs/reference"
tar -cf - $generated | tar -xf - -C "$before"
hack/generate/generate.sh
go run ./schemas/generate schemas/base
for path in $generated; do
  if ! diff -rq "$before/$path" "$path"; then
    echo "generated files are not current: commit the result of make generate" >&2
    exit 1
  fi
done
# With old times of files and folders: cached results of tests that read them stay valid.
find $generated | while read -r path; do touch -r "$before/$path" "$path"; done

if [ ! -d "${PERGOLA_CORPUS:-../shared/corpus}" ]; then
  step "left out: conformance with the corpus (it is not part of a clone)"
fi

if [ "$speed" = check ]; then
  step "tests without API servers"
  tests -timeout 20m ./...
  exit
fi

# Before the tests, which build it, too: two of them at once would compile everything twice.
step "the program as the image has it"
hack/build.sh bin/pergola ./cmd/pergola

step "tests on API servers"
# Clusters with controllers and running control planes need the whole machine: last, one by one.
alone='/test/(deletion|landscape|tutorial|variants)$'
go build -o bin/pool ./hack/apiserver/pool
# Tests on API servers wait more than they work: the longest start first, the others beside them.
longest='/(test/faults|controllers/(gardenlet|landscape|operator))$'
run="bin/pool" tests -p 4 -timeout 40m $(go list ./... | grep -E "$longest") $(go list ./... | grep -vE "$alone|$longest")

step "tests on clusters with controllers"
tests -p 1 -timeout 30m $(go list ./... | grep -E "$alone")

step "tests of the local clusters"
go -C hack/local test -timeout 20m ./...
