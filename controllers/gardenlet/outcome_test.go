// SPDX-License-Identifier: Apache-2.0

package gardenlet

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/controllers/owner"
	"github.com/pergola-dev/pergola/controllers/permit"
	"github.com/pergola-dev/pergola/controllers/seedpublication"
)

// holdAllGate holds every deletion until it is approved.
const holdAllGate = ", deletionGate: {maxDeletions: 0}"

// isReconciled reports whether the status of an object shows that its generation is reconciled.
func (p *testSeed) isReconciled(kind, namespace, name string) func() bool {
	return func() bool {
		o, err := p.resourceClient(kind, namespace).Get(p.ctx, name, metav1.GetOptions{})
		require.NoError(p, err)
		observed, _, _ := unstructured.NestedInt64(o.Object, "status", "observedGeneration")
		state, _, _ := unstructured.NestedString(o.Object, "status", "lastOperation", "state")
		return observed == o.GetGeneration() && state == "Succeeded"
	}
}

// stepBrake pauses one step: the next whose owner and node begin with the text in on.
type stepBrake struct {
	stepPrefix atomic.Pointer[string]
	reached    chan struct{}
	release    chan struct{}
}

func newStepBrake() *stepBrake {
	return &stepBrake{reached: make(chan struct{}), release: make(chan struct{})}
}

func (b *stepBrake) onEvent(e owner.Event) {
	step := e.Owner + " " + e.Node
	if on := b.stepPrefix.Load(); on == nil || !strings.HasPrefix(step, *on) || !b.stepPrefix.CompareAndSwap(on, nil) {
		return
	}
	close(b.reached)
	<-b.release
}

// TestReportIsWrittenBeforeStatus: once a Shoot or Seed is reconciled, the report shows its held
// deletions and the Shoots that follow the Seed. One write is enough, without a heartbeat.
func TestReportIsWrittenBeforeStatus(t *testing.T) {
	p := newTestSeed(t)
	p.addAwakeComponent()
	p.spec = holdAllGate
	p.publish("main@1")
	p.createShoot("one")
	namespace := "garden-" + p.project
	slow := newStepBrake()
	g := p.runGardenlet(func(o *Options) { o.Timing.HeartbeatInterval, o.OnEvent = time.Hour, slow.onEvent })
	one := p.isReconciled("Shoot", namespace, "one")
	p.eventually("it is reconciled", one)
	require.True(t, p.hasConfigMap("d")())

	// written counts the writes of the report since a request.
	written := func(since int) (n int) {
		for _, r := range p.virtualConnection.requestsSince(since) {
			if strings.HasPrefix(r, "PATCH ") && strings.HasSuffix(r, "/seeds/"+p.name) {
				n++
			}
		}
		return n
	}
	before := len(p.virtualConnection.requestsSince(0))
	p.patch("Shoot", namespace, "one", hibernatePatch)
	p.eventually("it is reconciled", one)
	ref := change.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: p.controlPlane("one"), Name: "d"}
	now := p.readReport()
	assert.Equal(t, []seedpublication.HeldObject{{Owner: "Shoot " + namespace + "/one", Cluster: p.name, Object: ref.String(),
		Reason: change.Reason{Code: landscapev1alpha1.HeldEveryDeletion, Cluster: p.name}, Approval: permit.ApprovalID(p.name, ref)}}, now.Held)
	assert.Empty(t, now.Converging)
	assert.Equal(t, 1, written(before))

	before = len(p.virtualConnection.requestsSince(0))
	p.patch("Shoot", namespace, "one", wakeUpPatch)
	p.eventually("it is reconciled", one)
	assert.Empty(t, p.readReport().Held, "it is wanted again")
	assert.Equal(t, 1, written(before))

	before = len(p.virtualConnection.requestsSince(0))
	p.patch("Shoot", namespace, "one", `{"spec":{"kubernetes":{"version":"1.33.5"}}}`)
	p.eventually("it is reconciled", one)
	assert.Zero(t, written(before), "nobody has to know more of it than its status says")

	step := "shoot " + namespace + "/one "
	slow.stepPrefix.Store(&step)
	p.patch("Seed", "", p.name, `{"spec":{"provider":{"region":"there"}}}`)
	p.eventually("the Seed is reconciled", p.isReconciled("Seed", "", p.name))
	assert.Equal(t, []string{"Shoot " + namespace + "/one"}, p.readReport().Converging)
	close(slow.release)
	require.NoError(t, g.stop())
}
