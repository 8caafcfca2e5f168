// SPDX-License-Identifier: Apache-2.0

package changecounts

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pergola-dev/pergola/apply"
)

func TestChangeCounts(t *testing.T) {
	object := apply.Ref{APIVersion: "v1", Kind: "Secret", Namespace: "garden", Name: "a"}
	managed := apply.Ref{APIVersion: "resources.gardener.cloud/v1alpha1", Kind: "ManagedResource", Namespace: "garden", Name: "a"}
	data := apply.Ref{APIVersion: "v1", Kind: "Secret", Namespace: "garden", Name: "managedresource-a-1234"}
	results := func(pairs ...any) []apply.ObjectResult {
		var out []apply.ObjectResult
		for i := 0; i < len(pairs); i += 2 {
			out = append(out, apply.ObjectResult{Ref: pairs[i].(apply.Ref), Action: pairs[i+1].(apply.Action)})
		}
		return out
	}
	for name, c := range map[string]struct {
		results []apply.ObjectResult
		want    string
		total   int
	}{
		"nothing":                      {nil, "nothing", 0},
		"what was not written":         {results(object, apply.Unchanged, object, apply.AlreadyDeleted, object, apply.HeldBack, object, apply.Failed), "nothing", 0},
		"what goes":                    {results(object, apply.Deleting, managed, apply.Deleting), "1 object is being deleted", 0},
		"what goes, too":               {results(object, apply.Deleted, object, apply.Deleting, object, apply.Deleting), "1 object deleted; 2 objects are being deleted", 1},
		"one":                          {results(object, apply.Configured), "1 object changed", 1},
		"of one sort":                  {results(object, apply.Created, object, apply.Created), "2 objects created", 2},
		"of several sorts":             {results(object, apply.Created, object, apply.Adopted, object, apply.Deleted, object, apply.Recreated), "4 objects (1 created, 1 changed, 1 recreated, 1 deleted)", 4},
		"with what carries them":       {results(object, apply.Created, managed, apply.Created, data, apply.Deleted), "1 object created, and 2 ManagedResources and data Secrets that carry them", 3},
		"only what carries the others": {results(managed, apply.Configured), "1 ManagedResources and data Secrets", 1},
	} {
		t.Run(name, func(t *testing.T) {
			var written, sum ChangeCounts
			written.Add(c.results...)
			sum.AddCounts(written)
			assert.Equal(t, c.want, sum.String())
			assert.Equal(t, c.total, sum.Total())
		})
	}
}
