#!/usr/bin/env bash
# What `make test-faults` runs: all faults that the engine of ManagedResources has to survive, at all points in time. Arguments go to
# go test; PERGOLA_FAULT_SEED repeats what chance has drawn.
set -o errexit -o nounset -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if [ -z "${KUBEBUILDER_ASSETS:-}" ]; then
  go -C hack/local build -trimpath -o "$PWD/bin/pergola-local" .
  bin/pergola-local build
  export KUBEBUILDER_ASSETS="$PWD/hack/local/bin"
fi
go test -count=1 -timeout 40m -parallel 6 ./controllers/faults "$@" -all
