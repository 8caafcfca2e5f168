// SPDX-License-Identifier: Apache-2.0

package gardenlet

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/controllers/permit"
	"github.com/pergola-dev/pergola/controllers/seedpublication"
)

// eventMessages returns the messages of the Events with a reason about an object of the virtual
// garden.
func (p *testSeed) eventMessages(reason, name string) []string {
	list, err := p.resourceClient("Event", "").List(p.ctx, metav1.ListOptions{})
	require.NoError(p, err)
	var out []string
	for _, e := range list.Items {
		about, _, _ := unstructured.NestedString(e.Object, "involvedObject", "name")
		why, _, _ := unstructured.NestedString(e.Object, "reason")
		message, _, _ := unstructured.NestedString(e.Object, "message")
		if about == name && why == reason {
			out = append(out, message)
		}
	}
	return out
}

// usedApprovals returns the approvals that the Seed lists as used.
func (p *testSeed) usedApprovals() string {
	o, err := p.resourceClient("Seed", "").Get(p.ctx, p.name, metav1.GetOptions{})
	require.NoError(p, err)
	return o.GetAnnotations()[seedpublication.AnnotationUsedApprovals]
}

// TestAnApprovalCountsOnce: a repeated deletion is held under another id, also after a restart. An
// approval that the operator withdrew can be given again.
func TestAnApprovalCountsOnce(t *testing.T) {
	const gate, without = ", deletionGate: {maxDeletions: 0}", ", components: {seed: {b: {enabled: false}}}"
	p := newTestSeed(t)
	b := "b-" + p.name
	id := permit.ApprovalID(p.name, change.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "garden", Name: b})
	there := func() bool { return p.seedConfigMap("garden", b) != nil }
	publish := func(revision, spec string, approved ...string) {
		t.Helper()
		p.spec, p.approvals = spec, approved
		p.publish(revision)
	}
	held := func(id string) func() bool {
		return func() bool {
			return slices.ContainsFunc(p.eventMessages("DeletionHeld", p.name), func(m string) bool {
				return strings.Contains(m, "ConfigMap garden/"+b) && strings.Contains(m, "needs approval") && strings.HasSuffix(m, "pergola approve demo "+p.name+"/"+id)
			})
		}
	}
	publish("main@1", gate)
	g := p.runGardenlet()
	p.eventually("it is there", there)

	publish("main@2", gate+without)
	p.eventually("its deletion is held", held(id))
	assert.True(t, there())
	publish("main@2", gate+without, id)
	p.eventually("it passes", func() bool { return !there() })
	p.eventually("that is noted", func() bool { return p.usedApprovals() == id })

	publish("main@3", gate, id)
	p.eventually("it is there again", there)
	require.NoError(t, g.stop())
	g = p.runGardenlet()
	publish("main@4", gate+without, id)
	p.eventually("it is held under another id", held(id+"-2"))
	assert.True(t, there())
	publish("main@4", gate+without, id, id+"-2")
	p.eventually("it passes", func() bool { return !there() })
	p.eventually("that is noted", func() bool { return p.usedApprovals() == id+","+id+"-2" })

	publish("main@5", gate)
	p.eventually("it is there again", there)
	p.eventually("what is taken back is forgotten", func() bool { return p.usedApprovals() == "" })
	publish("main@6", gate+without, id)
	p.eventually("it counts anew", func() bool { return !there() })
	require.NoError(t, g.stop())
}

// zeroDeletionsGate holds every deletion, and disableComponentB disables component b of seeds.
const zeroDeletionsGate, disableComponentB = ", deletionGate: {maxDeletions: 0}", ", components: {seed: {b: {enabled: false}}}"

// componentB returns the name of component b's ConfigMap, and the id that approves its deletion.
func (p *testSeed) componentB() (name, id string) {
	name = "b-" + p.name
	return name, permit.ApprovalID(p.name, change.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "garden", Name: name})
}

// publishAndWait publishes settings and approvals, and waits until all owners are reconciled with
// them and the given number of objects is held.
func (p *testSeed) publishAndWait(spec, revision string, held int, approved ...string) {
	p.Helper()
	p.spec, p.approvals = spec, approved
	published := p.publish(revision)
	p.eventually(revision+" is done", func() bool {
		r := p.readReport()
		return r.Digest == published.Digest && len(r.Converging) == 0 && len(r.Held) == held
	})
}

// TestApprovalAfterHoldEnded: the approval is used up, whether it comes with the commit
// that declares the object again or later. The next deletion is held.
func TestApprovalAfterHoldEnded(t *testing.T) {
	p := newTestSeed(t)
	b, id := p.componentB()
	g := p.runGardenlet()
	p.publishAndWait(zeroDeletionsGate, "main@1", 0)
	p.publishAndWait(zeroDeletionsGate+disableComponentB, "main@2", 1)
	p.publishAndWait(zeroDeletionsGate, "main@3", 0, id)
	p.eventually("it is used up", func() bool { return p.usedApprovals() == id })
	p.eventually("that is told", p.hasEvent(reasonApprovalLapsed, p.name, "approval "+id+" lapsed", "nothing is held now"))
	p.publishAndWait(zeroDeletionsGate+disableComponentB, "main@4", 1, id)
	assert.NotNil(t, p.seedConfigMap("garden", b))
	assert.Equal(t, id+"-2", p.readReport().Held[0].Approval)
	p.publishAndWait(zeroDeletionsGate, "main@5", 0, id)
	p.publishAndWait(zeroDeletionsGate, "main@5", 0, id, id+"-2")
	p.eventually("one that comes late, too", func() bool { return p.usedApprovals() == id+","+id+"-2" })
	p.eventually("with the id that was given", p.hasEvent(reasonApprovalLapsed, p.name, "approval "+id+"-2 lapsed"))
	p.publishAndWait(zeroDeletionsGate, "main@6", 0, id+"-4")
	p.eventually("one with a number that nobody was shown, too", func() bool { return p.usedApprovals() == id+"-4" })
	p.eventually("that is told", p.hasEvent(reasonApprovalLapsed, p.name, "approval "+id+"-4 lapsed"))
	require.NoError(t, g.stop())
}

// TestALateApprovalAfterARestart: approving a hold that ended under an earlier process allows no
// later deletion.
func TestALateApprovalAfterARestart(t *testing.T) {
	p := newTestSeed(t)
	b, id := p.componentB()
	g := p.runGardenlet()
	p.publishAndWait(zeroDeletionsGate, "main@1", 0)
	p.publishAndWait(zeroDeletionsGate+disableComponentB, "main@2", 1)
	p.publishAndWait(zeroDeletionsGate, "main@3", 0)
	require.NoError(t, g.stop())
	g = p.runGardenlet()
	p.publishAndWait(zeroDeletionsGate, "main@4", 0, id)
	p.eventually("it is used up", func() bool { return p.usedApprovals() == id })
	p.eventually("that is told", p.hasEvent(reasonApprovalLapsed, p.name, "approval "+id+" lapsed"))
	p.publishAndWait(zeroDeletionsGate+disableComponentB, "main@5", 1, id)
	assert.NotNil(t, p.seedConfigMap("garden", b))
	assert.Equal(t, id+"-2", p.readReport().Held[0].Approval)
	p.publishAndWait(zeroDeletionsGate+disableComponentB, "main@6", 0, id, id+"-2")
	p.eventually("that is approved", func() bool { return p.seedConfigMap("garden", b) == nil })
	require.NoError(t, g.stop())
}

// TestReportedApprovalIDs: a report of an earlier process lists the ids of an owner's holds as they
// were given.
func TestReportedApprovalIDs(t *testing.T) {
	former := &seedpublication.SeedReport{Held: []seedpublication.HeldObject{{Owner: "Seed x", Cluster: "x", Object: "ConfigMap a/b", Approval: "a-2", GroupApproval: "b"}, {Owner: "Seed x", Approval: "d"}, {Owner: "Seed y", Approval: "c"}}}
	assert.Equal(t, map[string]bool{"a": true, "b": true, "d": true}, reportedApprovalIDs(heldByOwner(former.Held, "Seed x")))
}

// TestLapsedApprovalText: the message about a lapsed approval lists the current holds.
func TestLapsedApprovalText(t *testing.T) {
	held := permit.HeldObjects{Cluster: "here"}
	for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
		held.Objects = append(held.Objects, apply.HeldObject{Ref: apply.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "n", Name: name}, ApprovalID: "id-" + name})
	}
	text := lapsedApprovalText("0123456789ab", "demo here", permit.Approvals{Used: []string{"id-b"}}, []permit.HeldObjects{held})
	assert.Contains(t, text, "approval 0123456789ab lapsed")
	assert.Contains(t, text, "held now: ConfigMap n/a (pergola approve demo here/id-a), ConfigMap n/b (pergola approve demo here/id-b-2), ")
	assert.True(t, strings.HasSuffix(text, "ConfigMap n/e (pergola approve demo here/id-e), and 1 more"), text)
}
