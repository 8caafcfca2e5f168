// SPDX-License-Identifier: Apache-2.0

package gardenlet

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/controllers/permit"
	"github.com/pergola-dev/pergola/controllers/seedpublication"
)

// readReport returns the report in the annotation of the Seed.
func (p *testSeed) readReport() seedpublication.SeedReport {
	p.Helper()
	o, err := p.resourceClient("Seed", "").Get(p.ctx, p.name, metav1.GetOptions{})
	require.NoError(p, err)
	if r := seedpublication.ReadSeedReport(o); r != nil {
		return *r
	}
	return seedpublication.SeedReport{}
}

// TestReport: the Seed lists the digest of the publication, the owners that are not reconciled with
// it, and the held deletions with their approval ids. That also holds while a new process is still
// assessing. An approved deletion is no longer listed.
func TestReport(t *testing.T) {
	p := newTestSeed(t)
	p.review = landscapev1alpha1.ReviewRequired
	b := "b-" + p.name
	ref := change.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "garden", Name: b}
	published := p.publish("main@1")
	g := p.runGardenlet()
	done := func(digest string) func() bool {
		return func() bool { r := p.readReport(); return r.Digest == digest && len(r.Converging) == 0 }
	}
	p.eventually("the first publication is done", done(published.Digest))
	assert.NotNil(t, p.seedConfigMap("garden", b))
	p.eventually("its basis is noted", func() bool { return p.seedConfigMap("garden", recordsConfigMap) != nil })

	p.spec = ", components: {seed: {b: {enabled: false}}}"
	published = p.publish("main@2")
	p.eventually("the second one, too", done(published.Digest))
	want := []seedpublication.HeldObject{{Owner: "Seed " + p.name, Cluster: p.name, Object: "ConfigMap garden/" + b, Reason: change.Reason{Code: landscapev1alpha1.HeldNotReviewed}, Approval: permit.ApprovalID(p.name, ref)}}
	assert.Equal(t, want, p.readReport().Held, "it is held by then")
	require.NoError(t, g.stop())

	g = p.runGardenlet()
	for g.site("seed "+p.name) == nil || !g.site("seed "+p.name).hasKnownHolds() {
		assert.Equal(t, want, p.readReport().Held)
	}
	assert.Equal(t, want, p.readReport().Held)
	p.approvals = []string{permit.ApprovalID(p.name, ref)}
	published = p.publish("main@2")
	p.eventually("it passes", func() bool { return p.seedConfigMap("garden", b) == nil && done(published.Digest)() })
	assert.Empty(t, p.readReport().Held)
	require.NoError(t, g.stop())
}

// TestGateHoldAfterReview: a review counts once. The reported reason stays the gate's
// limit, also when other deletions are approved.
func TestGateHoldAfterReview(t *testing.T) {
	const gate = ", deletionGate: {maxDeletions: 0}"
	p := newTestSeed(t)
	p.review = landscapev1alpha1.ReviewRequired
	b := "b-" + p.name
	reason := func() string {
		held := p.readReport().Held
		require.Len(t, held, 1)
		return held[0].Reason.String()
	}
	done := func(spec, revision string, approved ...string) {
		t.Helper()
		p.spec, p.approvals = spec, approved
		published := p.publish(revision)
		p.eventually(revision+" is done", func() bool { r := p.readReport(); return r.Digest == published.Digest && len(r.Converging) == 0 })
	}
	g := p.runGardenlet()
	done(gate, "main@1")
	p.eventually("its basis is noted", func() bool { return p.seedConfigMap("garden", recordsConfigMap) != nil })
	p.publishReview("1", map[string][]string{permit.NormalizedObject("", change.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "garden", Name: b}): {"seed " + p.name}})
	p.eventually("the review is known", func() bool { return p.hasReview(g) })
	const without = gate + ", components: {seed: {b: {enabled: false}}}"
	done(without, "main@2")
	const needed = "needs approval"
	assert.True(t, strings.HasPrefix(reason(), "every deletion ") && strings.HasSuffix(reason(), needed), reason())
	require.NoError(t, p.publisher.CompleteReview(p.ctx, p.virtualCluster, p.name))
	done(without, "main@3", "0123456789ab")
	done(without, "main@4", "0123456789ab", "0123456789ac")
	assert.True(t, strings.HasPrefix(reason(), "it is still held: every deletion ") && strings.HasSuffix(reason(), needed), reason())
	require.NoError(t, g.stop())
	g = p.runGardenlet()
	done(without, "main@5", "0123456789ad")
	assert.True(t, strings.HasPrefix(reason(), "it is still held: every deletion ") && strings.HasSuffix(reason(), needed), reason())
	assert.NotNil(t, p.seedConfigMap("garden", b))
	require.NoError(t, g.stop())
}

// hasReview reports whether a gardenlet has the published reviews.
func (p *testSeed) hasReview(g *runningGardenlet) bool { return g.reviewVersion() != "" }

func (s *ownerWorker) hasKnownHolds() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.isHeldKnown
}

// TestHoldsAfterFailedRun: objects that a failed run did not check stay held as before; checked
// objects are held as it reports.
func TestHoldsAfterFailedRun(t *testing.T) {
	of := func(reason string, names ...string) permit.HeldObjects {
		out := permit.HeldObjects{Cluster: "seed", Approval: reason}
		for _, name := range names {
			out.Objects = append(out.Objects, apply.HeldObject{Ref: apply.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "a", Name: name}, Reason: change.Reason{Detail: reason}})
		}
		return out
	}
	s := &ownerWorker{}
	s.recordHeld([]permit.HeldObjects{of("old", "a", "b"), of("older", "c")}, true)
	s.recordHeld([]permit.HeldObjects{of("new", "a", "c")}, false)
	assert.Equal(t, []permit.HeldObjects{of("new", "a", "c"), of("old", "b")}, s.held)
	s.recordHeld(nil, true)
	assert.Empty(t, s.held)
}

// TestRecordsOfDeletedShoots: the record of a deleted Shoot is dropped, also if no gardenlet ran
// then. A Shoot on another seed keeps its record.
func TestRecordsOfDeletedShoots(t *testing.T) {
	p := newTestSeed(t)
	p.review = landscapev1alpha1.ReviewRequired
	p.publish("main@1")
	p.createShoot("stays")
	p.createShoot("goes")
	namespace := "garden-" + p.project
	recorded := func(name string) bool {
		return p.configMapValue("garden", recordsConfigMap, "shoot."+name+"."+namespace) != ""
	}
	g := p.runGardenlet()
	p.eventually("both are noted", func() bool { return recorded("stays") && recorded("goes") })
	require.NoError(t, p.resourceClient("Shoot", namespace).Delete(p.ctx, "goes", metav1.DeleteOptions{}))
	p.eventually("it is forgotten", func() bool { return !recorded("goes") })
	assert.True(t, recorded("stays"))
	require.NoError(t, g.stop())

	p.createShoot("moves")
	g = p.runGardenlet(func(o *Options) { o.Timing.SyncPeriod = time.Second })
	p.eventually("it is noted", func() bool { return recorded("moves") })
	p.patch("Shoot", namespace, "moves", `{"spec":{"seedName":"elsewhere"}}`)
	elsewhere := func() bool {
		return g.seedRecords.otherSeedShoots.has("shoot.moves." + namespace)
	}
	p.eventually("it is known to be on another seed", elsewhere)
	assert.True(t, recorded("moves"), "it may come back")
	require.NoError(t, p.resourceClient("Shoot", namespace).Delete(p.ctx, "moves", metav1.DeleteOptions{}))
	p.eventually("it is forgotten when it is gone there", func() bool { return !recorded("moves") })
	require.NoError(t, g.stop())
	require.NoError(t, p.resourceClient("Shoot", namespace).Delete(p.ctx, "stays", metav1.DeleteOptions{}))
	g = p.runGardenlet()
	p.eventually("another process forgets it, too", func() bool { return !recorded("stays") })
	require.NoError(t, g.stop())
}
