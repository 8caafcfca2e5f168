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

// holdsEverything holds every deletion until it is approved.
const holdsEverything = ", deletionGate: {maxDeletions: 0}"

// done reports whether the status of an object shows that its generation is reconciled.
func (p *place) done(kind, namespace, name string) func() bool {
	return func() bool {
		o, err := p.of(kind, namespace).Get(p.ctx, name, metav1.GetOptions{})
		require.NoError(p, err)
		observed, _, _ := unstructured.NestedInt64(o.Object, "status", "observedGeneration")
		state, _, _ := unstructured.NestedString(o.Object, "status", "lastOperation", "state")
		return observed == o.GetGeneration() && state == "Succeeded"
	}
}

// brake pauses one step: the next whose owner and node begin with the text in on.
type brake struct {
	on      atomic.Pointer[string]
	reached chan struct{}
	release chan struct{}
}

func newBrake() *brake { return &brake{reached: make(chan struct{}), release: make(chan struct{})} }

func (b *brake) hear(e owner.Event) {
	step := e.Owner + " " + e.Node
	if on := b.on.Load(); on == nil || !strings.HasPrefix(step, *on) || !b.on.CompareAndSwap(on, nil) {
		return
	}
	close(b.reached)
	<-b.release
}

// TestWhatIsHeldIsKnownAtTheEnd: once a Shoot or Seed is reconciled, the report shows its held
// deletions and the Shoots that follow the Seed. One write is enough, without a heartbeat.
func TestWhatIsHeldIsKnownAtTheEnd(t *testing.T) {
	p := newPlace(t)
	p.optional()
	p.spec = holdsEverything
	p.publish("main@1")
	p.shoot("one")
	namespace := "garden-" + p.project
	slow := newBrake()
	g := p.run(func(o *Options) { o.Pace.HeartbeatInterval, o.OnEvent = time.Hour, slow.hear })
	one := p.done("Shoot", namespace, "one")
	p.eventually("it is reconciled", one)
	require.True(t, p.has("d")())

	// written counts the writes of the report since a request.
	written := func(since int) (n int) {
		for _, r := range p.toVirtual.since(since) {
			if strings.HasPrefix(r, "PATCH ") && strings.HasSuffix(r, "/seeds/"+p.name) {
				n++
			}
		}
		return n
	}
	before := len(p.toVirtual.since(0))
	p.patch("Shoot", namespace, "one", asleep)
	p.eventually("it is reconciled", one)
	ref := change.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: p.controlPlane("one"), Name: "d"}
	now := p.reported()
	assert.Equal(t, []seedpublication.Held{{Owner: "Shoot " + namespace + "/one", Cluster: p.name, Object: ref.String(),
		Why: change.Reason{Code: landscapev1alpha1.HeldEveryDeletion, Cluster: p.name}, Approval: permit.ApprovalID(p.name, ref)}}, now.Held)
	assert.Empty(t, now.Converging)
	assert.Equal(t, 1, written(before))

	before = len(p.toVirtual.since(0))
	p.patch("Shoot", namespace, "one", awake)
	p.eventually("it is reconciled", one)
	assert.Empty(t, p.reported().Held, "it is wanted again")
	assert.Equal(t, 1, written(before))

	before = len(p.toVirtual.since(0))
	p.patch("Shoot", namespace, "one", `{"spec":{"kubernetes":{"version":"1.33.5"}}}`)
	p.eventually("it is reconciled", one)
	assert.Zero(t, written(before), "nobody has to know more of it than its status says")

	step := "shoot " + namespace + "/one "
	slow.on.Store(&step)
	p.patch("Seed", "", p.name, `{"spec":{"provider":{"region":"there"}}}`)
	p.eventually("the Seed is reconciled", p.done("Seed", "", p.name))
	assert.Equal(t, []string{"Shoot " + namespace + "/one"}, p.reported().Converging)
	close(slow.release)
	require.NoError(t, g.stop())
}
