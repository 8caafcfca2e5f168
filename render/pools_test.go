// SPDX-License-Identifier: Apache-2.0

package render

import (
	"os"
	"testing"

	"cuelang.org/go/cue"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/pergola-dev/pergola/components"
)

// TestNamesOfWorkerPools: the Secret of the node agent has upstream's name. Another name would
// replace all machines of an adopted Shoot.
func TestNamesOfWorkerPools(t *testing.T) {
	raw, err := os.ReadFile("testdata/pools.yaml")
	require.NoError(t, err)
	var cases []struct {
		Case  string         `json:"case"`
		Shoot map[string]any `json:"shoot"`
		Names []string       `json:"names"`
	}
	require.NoError(t, yaml.UnmarshalStrict(raw, &cases))
	require.NotEmpty(t, cases)

	catalogue := newEvaluator(components.FS)
	context, err := catalogue.build("shoot/extensions", "extensions")
	require.NoError(t, err)
	for _, test := range cases {
		t.Run(test.Case, func(t *testing.T) {
			filled := context.LookupPath(cue.ParsePath("#Context")).FillPath(cue.ParsePath("shoot"), test.Shoot)
			require.NoError(t, filled.Err())
			pools, err := filled.LookupPath(cue.ParsePath("pools")).List()
			require.NoError(t, err)
			var names []string
			for pools.Next() {
				name, err := pools.Value().LookupPath(cue.ParsePath("secretName")).String()
				require.NoError(t, err)
				names = append(names, name)
			}
			assert.Equal(t, test.Names, names)
		})
	}
}
