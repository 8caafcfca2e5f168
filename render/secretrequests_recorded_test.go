// SPDX-License-Identifier: Apache-2.0

package render

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/components"
)

var update = flag.Bool("update", false, "record anew what is recorded of the catalogue")

// TestRecordedRequests: the recorded requests match the owners of the demonstration landscape, for
// each component the one with most requests. Otherwise every process evaluates a component once too
// often.
func TestRecordedRequests(t *testing.T) {
	inputs, err := Owners(localLandscape(t))
	require.NoError(t, err)
	results, errs := renderOwners(inputs, Options{Catalogue: components.FS})
	requests := map[string][]string{}
	for i, result := range results {
		require.NoError(t, errs[i])
		for _, c := range result.Components {
			if names := c.SecretRequests(); requests[c.Path] == nil || len(names) > len(requests[c.Path]) {
				requests[c.Path] = names
			}
		}
	}
	require.Greater(t, len(requests), 20)
	var list strings.Builder
	for _, dir := range sortedKeys(requests) {
		list.WriteString(strings.Join(append([]string{dir}, requests[dir]...), " ") + "\n")
	}
	if *update {
		require.NoError(t, os.WriteFile("requested.txt", []byte(list.String()), 0o644))
		return
	}
	assert.Equal(t, list.String(), recordedRequests, "go test ./render -run TestRecordedRequests -update records it anew")
}
