#!/usr/bin/env bash
# `make test` runs this. Long tests are skipped or sampled (`testing.Short()`): hack/test-all.sh runs them. Integration tests
# use real API servers: etcd and the Kubernetes control plane are built from Go modules once (or taken from KUBEBUILDER_ASSETS).
set -o errexit -o nounset -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# One set of flags for all that is compiled here, that of hack/build.sh: packages are compiled once, for the program and for the
# tests, and a second checkout finds them in the build cache.
export CGO_ENABLED=0 GOFLAGS=-trimpath

step() { printf '\n== %s\n' "$*"; }

step "local control plane binaries"
go -C hack/local build -trimpath -o "$PWD/bin/pergola-local" .
bin/pergola-local build
if [ -z "${KUBEBUILDER_ASSETS:-}" ]; then
  export KUBEBUILDER_ASSETS="$PWD/hack/local/bin"
fi

step "lint"
hack/lint.sh

step "generated files are current"
before="$(mktemp -d)"
trap 'rm -rf "$before"' EXIT
mkdir -p "$before/api" "$before/schemas"
cp -r api/. "$before/api"
cp -r schemas/base "$before/schemas/base"
cp docs/rules.md "$before/rules.md"
hack/generate/generate.sh
go run ./schemas/generate schemas/base
if ! diff -rq "$before/api" api || ! diff -rq "$before/schemas/base" schemas/base || ! diff -q "$before/rules.md" docs/rules.md; then
  echo "generated files are not current: commit the result of make generate" >&2
  exit 1
fi

if [ ! -d "${PERGOLA_CORPUS:-../shared/corpus}" ]; then
  step "left out: conformance with the corpus (it is not part of a clone)"
fi

# Before the tests, which build it themselves: two of them at once would compile everything twice.
step "the program as the image has it"
hack/build.sh bin/pergola ./cmd/pergola

step "unit and integration tests"
# Clusters with controllers and control planes that run for real need the machine for themselves: they come after the others, one by one.
alone='/controllers/(adoption|gardendeletion|itest|variants)$'
go test -short -timeout 40m $(go list ./... | grep -vE "$alone") | { grep --line-buffered -v "no test files" || true; }

step "tests on clusters with controllers"
go test -short -p 1 -timeout 30m $(go list ./... | grep -E "$alone")

step "tests of the local clusters"
go -C hack/local test -timeout 20m ./...
