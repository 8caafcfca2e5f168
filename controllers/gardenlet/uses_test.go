package gardenlet

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/controllers/permit"
)

// killer imitates a kill: it fails all requests of a gardenlet from one request to the seed on, or
// only that request.
type killer struct {
	mu sync.Mutex
	// method and path (its end) select the request. after forwards it first. fails is how often it
	// fails without a kill.
	method, path string
	after        bool
	fails        int
	// dead is set at the request, killed once it was forwarded: stopping the process earlier would
	// cancel it.
	dead, killed bool
}

var errKilled = errors.New("killed")

func (k *killer) options(o *Options) {
	wrap := func(c *rest.Config, seed bool) *rest.Config {
		out := rest.CopyConfig(c)
		out.Wrap(func(next http.RoundTripper) http.RoundTripper { return dying{k, next, seed} })
		return out
	}
	o.Garden, o.Local = wrap(o.Garden, false), wrap(o.Local, true)
}

func (k *killer) isKilled() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.killed
}

// left returns how often the request will still fail.
func (k *killer) left() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.fails
}

type dying struct {
	*killer
	next http.RoundTripper
	seed bool
}

func (d dying) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.Contains(r.URL.Path, "/leases/") && d.seed {
		return d.next.RoundTrip(r) // the next process need not wait
	}
	d.mu.Lock()
	hit := d.seed && d.method != "" && strings.Contains(d.method, r.Method) && strings.HasSuffix(r.URL.Path, d.path)
	dead := d.dead
	switch {
	case hit && d.fails > 0:
		d.fails--
		d.mu.Unlock()
		return nil, errKilled
	case hit && d.fails == 0 && !dead:
		d.dead = true
		defer func() {
			d.mu.Lock()
			d.killed = true
			d.mu.Unlock()
		}()
	}
	d.mu.Unlock()
	if dead || hit && !d.after && d.fails == 0 {
		return nil, errKilled
	}
	return d.next.RoundTrip(r)
}

// usedFor returns the recorded use of an approval on the seed.
func (p *place) usedFor(id string) (permit.ApprovalUse, bool) {
	var out permit.ApprovalUse
	text := p.data("garden", usesName, id)
	return out, text != "" && json.Unmarshal([]byte(text), &out) == nil
}

// heldAs reports whether an Event asks to approve the deletion of extra with an id.
func (p *place) heldAs(id string) func() bool {
	return func() bool {
		return slices.ContainsFunc(p.events("DeletionHeld", "one"), func(m string) bool {
			return strings.Contains(m, "/extra: ") && strings.HasSuffix(m, "pergola approve demo "+p.name+"/"+id)
		})
	}
}

// TestAnApprovalIsUsedBeforeAnythingGoes: wherever the process ends, one approval allows exactly
// one deletion, and that deletion needs no other approval.
func TestAnApprovalIsUsedBeforeAnythingGoes(t *testing.T) {
	for name, test := range map[string]struct {
		kill *killer
		// again deletes the object by hand and creates it again before the next process starts.
		again bool
		// noted and gone are the expected state after the kill.
		noted, gone bool
	}{
		"before it is noted":              {kill: &killer{method: "POST,PATCH", path: usesName}},
		"when it is noted":                {kill: &killer{method: "POST,PATCH", path: usesName, after: true}, noted: true},
		"before the deletion":             {kill: &killer{method: "DELETE", path: "/extra"}, noted: true},
		"before the deletion of a former": {kill: &killer{method: "DELETE", path: "/extra"}, noted: true, again: true},
		"after the deletion":              {kill: &killer{method: "DELETE", path: "/extra", after: true}, noted: true, gone: true},
		"while the Shoot is not healthy":  {noted: true, gone: true},
	} {
		t.Run(name, func(t *testing.T) {
			p := newReviewedPlace(t)
			if p.onSeed("garden", usesName) == nil { // so that it is always patched
				_, err := p.seed.Resource(corev1.SchemeGroupVersion.WithResource("namespaces")).Create(p.ctx, p.object("{apiVersion: v1, kind: Namespace, metadata: {name: garden}}"), metav1.CreateOptions{})
				if !apierrors.IsAlreadyExists(err) {
					require.NoError(t, err)
				}
				made := p.object("{apiVersion: v1, kind: ConfigMap, metadata: {name: " + usesName + ", namespace: garden}}")
				_, err = p.configMaps("garden").Create(p.ctx, made, metav1.CreateOptions{})
				require.NoError(t, err)
			}
			if test.kill == nil {
				p.failing()
			}
			p.extra(true)
			p.publish("main@1")
			p.shoot("one")
			short := func(o *Options) { o.Pace.StepTimeout = 2 * time.Second }
			g := p.run(short)
			p.eventually("it is there", func() bool { return p.has("extra")() && (test.kill == nil || p.recorded()()) })
			require.NoError(t, g.stop())
			p.extra(false)
			id := permit.ApprovalID(p.name, change.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: p.controlPlane("one"), Name: "extra"})
			p.approved = []string{id}
			p.publish("main@2")
			if test.kill != nil {
				g = p.run(test.kill.options)
				p.eventually("it is killed", test.kill.isKilled)
			} else {
				g = p.run(short)
				p.eventually("it passes", p.lacks("extra"))
			}
			require.NoError(t, g.stop())
			p.eventually("the last request is through", func() bool {
				_, noted := p.usedFor(id)
				return noted == test.noted && p.lacks("extra")() == test.gone
			})
			if test.again {
				require.NoError(t, p.configMaps(p.controlPlane("one")).Delete(p.ctx, "extra", metav1.DeleteOptions{}))
			}

			if !test.again {
				g = p.run(short)
				p.eventually("what was approved goes", p.lacks("extra"))
				p.eventually("that is told", func() bool { return p.used() == id })
				require.NoError(t, g.stop())
			}
			g = p.run(short)
			p.extra(true)
			p.publish("main@3")
			p.eventually("it is made anew", p.has("extra"))
			p.extra(false)
			p.publish("main@4")
			p.eventually("its deletion is held", p.heldAs(id+"-2"))
			assert.True(t, p.has("extra")())
			p.approved = []string{id, id + "-2"}
			p.publish("main@4")
			p.eventually("until that is approved", p.lacks("extra"))
			p.approved = nil
			p.publish("main@4")
			p.eventually("what is not approved any more is forgotten", func() bool {
				_, one := p.usedFor(id)
				_, two := p.usedFor(id + "-2")
				return !one && !two && p.used() == ""
			})
			require.NoError(t, g.stop())
		})
	}
}

// TestADeletionThatFailsGoesOn: a failed deletion needs no second approval, unless the object is
// declared again meanwhile. If the use cannot be recorded, nothing is deleted.
func TestADeletionThatFailsGoesOn(t *testing.T) {
	p := newReviewedPlace(t)
	p.extra(true)
	p.publish("main@1")
	p.shoot("one")
	namespace := "garden-" + p.project
	state := func(want string) func() bool {
		return func() bool { return p.operation("Shoot", namespace, "one", "state") == want }
	}
	g := p.run()
	p.eventually("it is converged", func() bool { return p.has("extra")() && p.recorded()() })
	require.NoError(t, g.stop())

	id := permit.ApprovalID(p.name, change.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: p.controlPlane("one"), Name: "extra"})
	p.extra(false)
	p.approved = []string{id}
	p.publish("main@2")
	failing := &killer{method: "PATCH,POST", path: usesName, fails: 1 << 20}
	g = p.run(failing.options)
	p.eventually("its use cannot be noted", func() bool { return failing.left() < 1<<20-1 })
	assert.True(t, p.has("extra")())
	p.eventually("so that it is held", p.heldAs(id))
	require.NoError(t, g.stop())
	assert.Empty(t, p.used())

	failing = &killer{method: "DELETE", path: "/extra", fails: 1 << 20}
	g = p.run(failing.options)
	p.eventually("its deletion fails", func() bool { return failing.left() < 1<<20-1 && state("Error")() })
	p.eventually("it is told that the approval is used", func() bool { return p.used() == id })
	one, _ := p.usedFor(id)
	require.Len(t, one.DeletableObjects, 1)
	assert.Equal(t, p.onSeed(p.controlPlane("one"), "extra").GetUID(), one.DeletableObjects[0].UID)
	p.extra(true)
	p.publish("main@3")
	p.eventually("it is wanted again", func() bool {
		one, _ := p.usedFor(id)
		return len(one.DeletableObjects) == 0
	})
	p.extra(false)
	p.publish("main@4")
	p.eventually("its deletion is held", p.heldAs(id+"-2"))

	p.approved = []string{id, id + "-2"}
	before := failing.left()
	p.publish("main@4")
	p.eventually("its deletion fails again", func() bool { return failing.left() < before-1 })
	p.eventually("it is told that the approval is used", func() bool { return p.used() == id+","+id+"-2" })
	failing.mu.Lock()
	failing.method = ""
	failing.mu.Unlock()
	p.eventually("it goes without a third one", p.lacks("extra"))
	p.eventually("nothing is left to go", func() bool {
		one, noted := p.usedFor(id + "-2")
		return noted && len(one.DeletableObjects) == 0 && state("Succeeded")()
	})
	require.NoError(t, g.stop())
	assert.False(t, p.heldAs(id+"-3")(), "nobody was asked for more")
}
