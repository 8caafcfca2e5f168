// SPDX-License-Identifier: Apache-2.0

package owner

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/controllers/permit"
)

// TestPlanHasApprovalID checks that a dry run shows the same approval id for held objects as a
// diff of revisions.
func TestPlanHasApprovalID(t *testing.T) {
	for name, direct := range map[string]bool{"direct": true, "managed": false} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			s.mustApply(s.bundle(direct, s.configMap("goes"), s.configMap("stays")))
			s.run.reconciler.Gate = permit.Gate{MaxDeletions: permit.Limit(0)}
			items, _, err := s.run.reconciler.planBundle(s.ctx, s.run.owner, s.bundle(direct, s.configMap("stays")), &servingCache{})
			require.NoError(t, err)
			require.Len(t, items, 1)
			assert.Equal(t, change.Hold, items[0].Action)
			assert.Equal(t, permit.ApprovalID("local", items[0].Object), items[0].Approval)
			assert.Contains(t, items[0].Reason, "every deletion on cluster local needs approval")
		})
	}
}
