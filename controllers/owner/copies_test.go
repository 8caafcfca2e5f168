package owner

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/plan"
)

// TestOnlyCopiesNeedNoReview: a name that looks like one with a hash is no leave to go unseen.
func TestOnlyCopiesNeedNoReview(t *testing.T) {
	copied := map[string]string{"resources.gardener.cloud/garbage-collectable-reference": "true"}
	for name, test := range map[string]struct {
		entry apply.Entry
		goes  bool
	}{
		"copy":                    {apply.Entry{Ref: apply.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "garden", Name: "audit-policy-1b2c3d4e"}, Labels: copied}, true},
		"copy of a Secret":        {apply.Entry{Ref: apply.Ref{APIVersion: "v1", Kind: "Secret", Namespace: "garden", Name: "kubeconfigs-1b2c3d4e"}, Labels: copied}, true},
		"a name that looks alike": {apply.Entry{Ref: apply.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "garden", Name: "customer-00112233"}}, false},
		"a label alone":           {apply.Entry{Ref: apply.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "garden", Name: "customer"}, Labels: copied}, false},
		"what has no copies":      {apply.Entry{Ref: apply.Ref{APIVersion: "v1", Kind: "Service", Namespace: "garden", Name: "api-1b2c3d4e"}, Labels: copied}, false},
		"a kind of the same name": {apply.Entry{Ref: apply.Ref{APIVersion: "example.com/v1", Kind: "Secret", Namespace: "garden", Name: "api-1b2c3d4e"}, Labels: copied}, false},
	} {
		t.Run(name, func(t *testing.T) {
			gate := plan.Gate{Reviewed: func(string, plan.Ref) bool { return false }}
			work := &run{owner: &Owner{}, report: &Report{}, Reconciler: &Reconciler{Gate: gate}}
			held := work.judge("local", []apply.Entry{test.entry})
			if test.goes {
				assert.Empty(t, held)
				return
			}
			require.Len(t, held, 1)
			assert.Equal(t, plan.NotReviewed, held[0].Reason)
		})
	}
}
