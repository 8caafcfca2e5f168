#!/usr/bin/env bash
# Builds a program as the image has it: hack/build.sh FILE PACKAGE. deploy/Dockerfile has the same
# line; a test compares the two. All builds with these flags share the build cache: `make build`,
# the demonstration, integration tests, the test of the image.
set -o errexit -o nounset -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

export CGO_ENABLED=0
# For pergola version. Go itself would add the time of the commit, and nothing without a repository.
COMMIT="${COMMIT-$(git -c core.fsmonitor=false describe --always --dirty --abbrev=40 --exclude='*' 2>/dev/null || true)}"
hack/slowly.sh "Building $(basename "$1") from $2: seconds when the build cache has most of it, else some minutes …" \
go build -trimpath -buildvcs=false -ldflags "-s -w -buildid= -X main.commit=${COMMIT}" -o "$1" "$2"
