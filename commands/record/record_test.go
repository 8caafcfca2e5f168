// SPDX-License-Identifier: Apache-2.0

package record

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/plan/golden"
)

func TestWithoutDigests(t *testing.T) {
	digest := golden.Difference{File: "a/b/bundle.yaml", Action: golden.Changed, Fields: []change.Field{{Path: "digest.symbolic"}}}
	object, alone := golden.Difference{File: "a/b/configmap-c.yaml", Action: golden.Changed}, digest
	alone.File = "a/c/bundle.yaml"
	assert.Equal(t, []golden.Difference{object, alone}, Report{Differences: []golden.Difference{digest, object, alone}}.WithoutDigests(), "an object is not told of twice")
}

func TestOriginOfFile(t *testing.T) {
	files := map[string][]byte{"a/bundle.yaml": []byte("objects:\n- 'x.yaml  # components/x.cue:4'\n- y.yaml  # components/y.cue:5\n")}
	assert.Equal(t, "components/x.cue:4", originOfFile(files, "a/x.yaml"))
	assert.Equal(t, "components/y.cue:5", originOfFile(files, "a/y.yaml"))
	assert.Empty(t, originOfFile(files, "b/x.yaml"))
}
