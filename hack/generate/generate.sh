#!/usr/bin/env bash
# Regenerates what is derived from the Go types of api/: deep copies (zz_generated.deepcopy.go beside the types) and
# CustomResourceDefinitions (api/crds/*.yaml). The result depends on the sources and on the versions pinned in
# hack/tools/go.mod only, so that `git diff --exit-code` after it tells whether generated files are current.
# Needs no network once the modules are in the cache.
set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."

bin="$(mktemp -d)"
trap 'rm -rf "$bin"' EXIT
go -C hack/tools build -o "$bin/controller-gen" sigs.k8s.io/controller-tools/cmd/controller-gen

"$bin/controller-gen" object paths=./api/...

# Into an empty folder first: a definition whose type is gone must not stay behind.
mkdir "$bin/crds"
"$bin/controller-gen" \
  crd:crdVersions=v1,allowDangerousTypes=true,generateEmbeddedObjectMeta=true \
  paths=./api/... output:crd:dir="$bin/crds"
go run ./hack/generate/templates "$bin/crds"
rm -f api/crds/*.yaml
cp "$bin"/crds/*.yaml api/crds/

# The chart and its Kustomize bases hold the definition of Landscapes, too.
go test ./deploy -run 'Versions|Kustomize' -update > /dev/null
go test ./deploy -run 'Versions|Kustomize' -update > /dev/null # the first run wrote what the second one embeds
