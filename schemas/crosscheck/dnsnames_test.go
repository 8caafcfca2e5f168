// SPDX-License-Identifier: Apache-2.0

package crosscheck

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/schemas"
)

// fieldLengthPositions is a file that has each field in the line of the field name's length.
type fieldLengthPositions string

func (w fieldLengthPositions) Position(field string) schemas.Position {
	return schemas.Position{File: string(w), Line: len(field), Column: 1 + strings.Count(field, ".")}
}

// TestConflictReportsBothPositions checks that the finding names file, line, column and field of
// both names.
func TestConflictReportsBothPositions(t *testing.T) {
	e := ruleTest{Change: []map[string]any{{"kind": "Garden", "spec": map[string]any{"virtualCluster": map[string]any{"gardener": map[string]any{
		"gardenerDiscoveryServer": map[string]any{"domain": map[string]any{"name": "API.one.team.shoots.example.org"}},
		"gardenerDashboard":       map[string]any{"domain": map[string]any{"name": "ingress.north.example.org"}},
	}}}}, {"kind": "Seed", "spec": map[string]any{"ingress": map[string]any{"domain": "garden.example.org"}}}}}
	inputs := e.buildInputs(t)
	for i := range inputs {
		inputs[i].Positions = fieldLengthPositions(strings.ToLower(inputs[i].Object.GetKind()) + ".yaml")
	}
	var found []string
	for _, v := range Check(inputs, Options{Now: testTime}) {
		found = append(found, v.String())
	}
	require.Len(t, found, 2)
	assert.Contains(t, found[0], "seed.yaml:19:3: ")
	assert.Contains(t, found[0], `"garden.example.org" already belongs to Garden garden (garden.yaml:39:5: spec.virtualCluster.dns.domains[0].name)`)
	assert.Contains(t, found[1], "shoot.yaml:15:3: ")
	assert.Contains(t, found[1], `"api.one.team.shoots.example.org" must lead to the API server`)
	assert.Contains(t, found[1], "the discovery server of Garden garden (garden.yaml:64:6: spec.virtualCluster.gardener.gardenerDiscoveryServer.domain.name)")
}
