// SPDX-License-Identifier: Apache-2.0

package render

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestRefusedKustomizationFields: findings replace krusty's output to standard error.
func TestRefusedKustomizationFields(t *testing.T) {
	for text, want := range map[string]string{
		"vars: []\n":                   "components/garden/app/kustomization.yaml:1:1: vars: is deprecated by Kustomize: use replacements",
		"sortOptions: {order: fifo}\n": "components/garden/app/kustomization.yaml:1:1: sortOptions: has no effect here",
	} {
		_, err := renderSmall(t, map[string]string{"garden/app/component.cue": component(`kustomize: "."`, ""), "garden/app/kustomization.yaml": text})
		assert.ErrorContains(t, err, want)
	}
}
