// SPDX-License-Identifier: Apache-2.0

package change

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestRefString(t *testing.T) {
	for want, ref := range map[string]Ref{
		"Deployment garden/vpa": {Kind: "Deployment", Namespace: "garden", Name: "vpa"},
		"Namespace garden":      {Kind: "Namespace", Name: "garden"},
		"Seed":                  {Kind: "Seed"}, // the kind as such: no name, no gap
	} {
		assert.Equal(t, want, ref.String())
	}
}
