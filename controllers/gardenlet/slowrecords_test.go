// SPDX-License-Identifier: Apache-2.0

package gardenlet

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/controllers/permit"
)

// TestSlowRecordWriteBlocksNothing: a slow write to the seed blocks neither reads of the
// records nor assessments.
func TestSlowRecordWriteBlocksNothing(t *testing.T) {
	p := newTestSeed(t)
	p.publish("main@1")
	slow := &slowWrites{path: "/configmaps/" + recordsConfigMap, blocked: make(chan struct{}, 100), release: make(chan struct{})}
	g := p.runGardenlet(func(o *Options) { o.Local = slow.wrap(o.Local) })
	p.eventually("it is reconciled", p.isReconciled("Seed", "", p.name))
	at := g.site("seed " + p.name)
	from := renderSources{kind: at.kind, digest: at.key, object: at.object}
	before, _ := g.convergenceRecordOf(from)
	slow.isOn.Store(true)
	written := make(chan struct{})
	go func() {
		defer close(written)
		g.updateConvergenceRecord(p.ctx, from, func(permit.ConvergenceRecord, bool) permit.ConvergenceRecord {
			return permit.ConvergenceRecord{GitDigest: "another", CompletedChange: 7}
		})
	}()
	select {
	case <-slow.blocked:
	case <-p.ctx.Done():
		t.Fatal("the record is not written")
	}
	asked := make(chan struct{})
	go func() {
		defer close(asked)
		now, _ := g.convergenceRecordOf(from)
		assert.Equal(t, before, now, "what allows more counts when it is written")
		g.deleteStaleRecords(p.ctx)
		g.resetOtherSeedShoots()
	}()
	select {
	case <-asked:
	case <-time.After(20 * time.Second):
		t.Error("who asks has to wait")
	}
	close(slow.release)
	<-written
	<-asked
	now, _ := g.convergenceRecordOf(from)
	assert.Equal(t, permit.ConvergenceRecord{GitDigest: "another", CompletedChange: 7}, now)
	require.NoError(t, g.stop())
}
