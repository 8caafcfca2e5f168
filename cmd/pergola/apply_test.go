// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/plan"
)

func TestDryRunSaysFirstThatItIsIncomplete(t *testing.T) {
	changes := change.Plan{Unchanged: 167, Items: []change.Item{{Action: change.Create, Cluster: "runtime", Bundle: "b"}}}
	changes.SortAndCount()
	problem := errors.Join(errors.New("seed local: no access to cluster local"))
	const head = "Incomplete: some parts could not be compared, so their changes are not shown.\n  seed local: no access to cluster local\n\n"
	for name, c := range map[string]struct {
		plan  change.Plan
		err   error
		start string
	}{
		"complete, nothing":   {change.Plan{Unchanged: 167}, nil, "No changes (167 "},
		"incomplete, nothing": {change.Plan{Unchanged: 167}, problem, head + "No changes in the rest (167 objects unchanged).\n"},
		"incomplete, changes": {changes, problem, head + "1 to create, 167 unchanged "},
	} {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			require.NoError(t, printDryRun(&b, c.plan, c.err, plan.FormatText, false))
			require.GreaterOrEqual(t, b.Len(), len(c.start), b.String())
			assert.Equal(t, c.start, b.String()[:len(c.start)])
		})
	}
}
