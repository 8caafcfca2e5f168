#!/usr/bin/env bash
# `make bench-engine` runs this: it builds Flux's kustomize-controller (minutes, the first time) and
# the benchmark of the engine, then measures. Arguments go to the bench: -bundles 100 for a quick
# look, -o json. bin/pergola and bin/pergola-local must exist.
set -o errexit -o nounset -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

peer=github.com/fluxcd/kustomize-controller
hack/build.sh bin/pergola-bench ./hack/bench
hack/build.sh bin/pergola-bench-engine ./hack/bench/engine
go -C hack/bench/flux build -trimpath -o "$PWD/bin/kustomize-controller" "$peer"
# The module has the definition of Kustomization. The definitions of sources are in a module that
# would bring much more: generate them from the types that kustomize-controller is built with.
go -C hack/tools build -trimpath -o "$PWD/bin/controller-gen" sigs.k8s.io/controller-tools/cmd/controller-gen
sources="$PWD/bin/flux-sources"
(cd hack/bench/flux && "$OLDPWD/bin/controller-gen" crd paths=github.com/fluxcd/source-controller/api/v1 output:crd:dir="$sources")
bin/pergola-local build >&2

exec bin/pergola-bench -only engine -cases '' -engine bin/pergola-bench-engine -flux bin/kustomize-controller \
  -flux-definitions "$(go -C hack/bench/flux list -m -f '{{.Dir}}' "$peer")/config/crd/bases,$sources" "$@"
