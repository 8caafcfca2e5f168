#!/usr/bin/env bash
# Generates files from the Go types of api/: deep copies (zz_generated.deepcopy.go beside the types)
# and CustomResourceDefinitions (api/crds/*.yaml). The result depends only on the sources and the
# versions in hack/tools/go.mod: `git diff --exit-code` tells whether generated files are current.
# Needs no network once the modules are in the cache.
set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."

bin="$(mktemp -d)"
trap 'rm -rf "$bin"' EXIT
go -C hack/tools build -o "$bin/controller-gen" sigs.k8s.io/controller-tools/cmd/controller-gen

"$bin/controller-gen" object paths=./api/...

# Into an empty folder first: definitions of deleted types must not remain.
mkdir "$bin/crds"
"$bin/controller-gen" \
  crd:crdVersions=v1,allowDangerousTypes=true,generateEmbeddedObjectMeta=true \
  paths=./api/... output:crd:dir="$bin/crds"
go run ./hack/generate/templates "$bin/crds"
rm -f api/crds/*.yaml
cp "$bin"/crds/*.yaml api/crds/

# The chart and its Kustomize bases have the definition of Landscapes, too.
go test ./deploy -run 'Versions|Kustomize' -update > /dev/null
go test ./deploy -run 'Versions|Kustomize' -update > /dev/null # the second run embeds what the first one wrote

# Pages of docs/reference that say what the program says.
go test ./cmd/pergola -run '^TestReference' -update > /dev/null
