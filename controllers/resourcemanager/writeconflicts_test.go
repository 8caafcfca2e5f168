// SPDX-License-Identifier: Apache-2.0

package resourcemanager

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/types"
	testclock "k8s.io/utils/clock/testing"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/change"
)

// TestWriteConflictDetails: a change without details does not hide the known details of a fight.
func TestWriteConflictDetails(t *testing.T) {
	key := types.NamespacedName{Namespace: "garden", Name: "thing"}
	known := apply.DriftEvent{Ref: apply.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "garden", Name: "one"}, Fields: []change.Field{{Path: "data.a", Manager: "rival"}}}
	unknown, deleted := known, known
	unknown.Fields = nil
	deleted.Fields, deleted.Deleted = nil, true
	for name, c := range map[string]struct {
		last apply.DriftEvent
		want string
	}{
		"known":   {known, "rival changes data.a repeatedly"},
		"unknown": {unknown, "rival changes data.a repeatedly"},
		"deleted": {deleted, "somebody deletes it repeatedly"},
	} {
		t.Run(name, func(t *testing.T) {
			clock := testclock.NewFakeClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
			f := &writeConflicts{clock: clock, objects: map[types.NamespacedName]map[apply.Ref]*writeConflict{}}
			for range conflictThreshold - 1 {
				pause, begins := f.recordChange(key, known)
				assert.Zero(t, pause)
				assert.False(t, begins)
			}
			pause, begins := f.recordChange(key, c.last)
			assert.Equal(t, minRepairPause, pause)
			assert.True(t, begins)
			_, message := f.describe("garden", "thing")
			assert.Contains(t, message, c.want)
		})
	}
}
