#!/usr/bin/env bash
# `make bench` runs this: it builds the bench and its peers, then measures. Arguments go to the
# bench (-o json, -only render). bin/pergola and bin/pergola-local must exist. hack/bench/README.md
# explains the rows.
set -o errexit -o nounset -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# The peer must be of the version we build with: both evaluate the same schema.
ours="$(go list -m -f '{{.Version}}' cuelang.org/go)"
pinned="$(go -C hack/tools list -m -f '{{.Version}}' cuelang.org/go)"
if [ "$ours" != "$pinned" ]; then
  echo "hack/tools/go.mod has cuelang.org/go $pinned, go.mod has $ours: go -C hack/tools get cuelang.org/go@$ours" >&2
  exit 2
fi

hack/build.sh bin/pergola-bench ./hack/bench
hack/build.sh bin/pergola-bench-cases ./hack/bench/cases
hack/build.sh bin/pergola-bench-sync ./hack/bench/sync
go -C hack/tools build -trimpath -o "$PWD/bin/cue" cuelang.org/go/cmd/cue
go -C hack/tools build -trimpath -o "$PWD/bin/kubeconform" github.com/yannh/kubeconform/cmd/kubeconform
bin/pergola-local build >&2

# The build of the commit in BEFORE shows what a change costs, if the clone has the commit.
before="${BEFORE:-cfb824e0}"
earlier=""
if commit="$(git rev-parse --quiet --verify "$before^{commit}")"; then
  earlier="bin/pergola-$commit"
  if [ ! -x "$earlier" ]; then
    source="$(mktemp -d)"
    trap 'rm -rf "$source"' EXIT
    git archive "$commit" | tar -x -C "$source"
    COMMIT="$commit" "$source/hack/build.sh" "$PWD/$earlier" ./cmd/pergola
  fi
fi

bin/pergola-bench -before "$earlier" -sync bin/pergola-bench-sync -cue bin/cue -kubeconform bin/kubeconform -kubectl "$(command -v kubectl || true)" "$@"
