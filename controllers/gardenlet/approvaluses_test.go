// SPDX-License-Identifier: Apache-2.0

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

// requestKiller imitates a kill: it fails all requests of a gardenlet from one request to the seed
// on, or only that request.
type requestKiller struct {
	mu sync.Mutex
	// method and path (its end) select the request. after forwards it first. fails is how often it
	// fails without a kill.
	method, path string
	after        bool
	fails        int
	// isDead is set at the request, killed once it was forwarded: stopping the process earlier
	// would cancel it.
	isDead, isForwarded bool
}

var errKilled = errors.New("killed")

func (k *requestKiller) wrapClients(o *Options) {
	wrap := func(c *rest.Config, seed bool) *rest.Config {
		out := rest.CopyConfig(c)
		out.Wrap(func(next http.RoundTripper) http.RoundTripper { return killerTransport{k, next, seed} })
		return out
	}
	o.Garden, o.Local = wrap(o.Garden, false), wrap(o.Local, true)
}

func (k *requestKiller) isKilled() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.isForwarded
}

// remainingFailures returns how often the request will still fail.
func (k *requestKiller) remainingFailures() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.fails
}

type killerTransport struct {
	*requestKiller
	next http.RoundTripper
	seed bool
}

func (d killerTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.Contains(r.URL.Path, "/leases/") && d.seed {
		return d.next.RoundTrip(r) // the next process need not wait
	}
	d.mu.Lock()
	hit := d.seed && d.method != "" && strings.Contains(d.method, r.Method) && strings.HasSuffix(r.URL.Path, d.path)
	dead := d.isDead
	switch {
	case hit && d.fails > 0:
		d.fails--
		d.mu.Unlock()
		return nil, errKilled
	case hit && d.fails == 0 && !dead:
		d.isDead = true
		defer func() {
			d.mu.Lock()
			d.isForwarded = true
			d.mu.Unlock()
		}()
	}
	d.mu.Unlock()
	if dead || hit && !d.after && d.fails == 0 {
		return nil, errKilled
	}
	return d.next.RoundTrip(r)
}

// approvalUse returns the recorded use of an approval on the seed.
func (p *testSeed) approvalUse(id string) (permit.ApprovalUse, bool) {
	var out permit.ApprovalUse
	text := p.configMapValue("garden", approvalUsesConfigMap, id)
	return out, text != "" && json.Unmarshal([]byte(text), &out) == nil
}

// isHeldAs reports whether an Event asks to approve the deletion of extra with an id.
func (p *testSeed) isHeldAs(id string) func() bool {
	return func() bool {
		return slices.ContainsFunc(p.eventMessages("DeletionHeld", "one"), func(m string) bool {
			return strings.Contains(m, "/extra: ") && strings.HasSuffix(m, "pergola approve demo "+p.name+"/"+id)
		})
	}
}

// TestApprovalUseIsRecordedBeforeDeletion: wherever the process ends, one approval allows exactly
// one deletion, and that deletion needs no other approval.
func TestApprovalUseIsRecordedBeforeDeletion(t *testing.T) {
	for name, test := range map[string]struct {
		kill *requestKiller
		// again deletes the object manually and creates it again before the next process starts.
		again bool
		// noted and gone are the expected state after the kill.
		noted, gone bool
	}{
		"before it is noted":              {kill: &requestKiller{method: "POST,PATCH", path: approvalUsesConfigMap}},
		"when it is noted":                {kill: &requestKiller{method: "POST,PATCH", path: approvalUsesConfigMap, after: true}, noted: true},
		"before the deletion":             {kill: &requestKiller{method: "DELETE", path: "/extra"}, noted: true},
		"before the deletion of a former": {kill: &requestKiller{method: "DELETE", path: "/extra"}, noted: true, again: true},
		"after the deletion":              {kill: &requestKiller{method: "DELETE", path: "/extra", after: true}, noted: true, gone: true},
		"while the Shoot is not healthy":  {noted: true, gone: true},
	} {
		t.Run(name, func(t *testing.T) {
			p := newReviewedTestSeed(t)
			// so that it is always patched
			if p.seedConfigMap("garden", approvalUsesConfigMap) == nil {
				_, err := p.seed.Resource(corev1.SchemeGroupVersion.WithResource("namespaces")).Create(p.ctx, p.parseObject("{apiVersion: v1, kind: Namespace, metadata: {name: garden}}"), metav1.CreateOptions{})
				if !apierrors.IsAlreadyExists(err) {
					require.NoError(t, err)
				}
				made := p.parseObject("{apiVersion: v1, kind: ConfigMap, metadata: {name: " + approvalUsesConfigMap + ", namespace: garden}}")
				_, err = p.configMaps("garden").Create(p.ctx, made, metav1.CreateOptions{})
				require.NoError(t, err)
			}
			if test.kill == nil {
				p.addFailingDeployment()
			}
			p.setExtraObject(true)
			p.publish("main@1")
			p.createShoot("one")
			short := func(o *Options) { o.Timing.StepTimeout = 2 * time.Second }
			g := p.runGardenlet(short)
			p.eventually("it is there", func() bool { return p.hasConfigMap("extra")() && (test.kill == nil || p.hasRecord()()) })
			require.NoError(t, g.stop())
			p.setExtraObject(false)
			id := permit.ApprovalID(p.name, change.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: p.controlPlane("one"), Name: "extra"})
			p.approvals = []string{id}
			p.publish("main@2")
			if test.kill != nil {
				g = p.runGardenlet(test.kill.wrapClients)
				p.eventually("it is killed", test.kill.isKilled)
			} else {
				g = p.runGardenlet(short)
				p.eventually("it passes", p.hasNoConfigMap("extra"))
			}
			require.NoError(t, g.stop())
			p.eventually("the last request is through", func() bool {
				_, noted := p.approvalUse(id)
				return noted == test.noted && p.hasNoConfigMap("extra")() == test.gone
			})
			if test.again {
				require.NoError(t, p.configMaps(p.controlPlane("one")).Delete(p.ctx, "extra", metav1.DeleteOptions{}))
			}

			if !test.again {
				g = p.runGardenlet(short)
				p.eventually("what was approved goes", p.hasNoConfigMap("extra"))
				p.eventually("that is told", func() bool { return p.usedApprovals() == id })
				require.NoError(t, g.stop())
			}
			g = p.runGardenlet(short)
			p.setExtraObject(true)
			p.publish("main@3")
			p.eventually("it is made anew", p.hasConfigMap("extra"))
			p.setExtraObject(false)
			p.publish("main@4")
			p.eventually("its deletion is held", p.isHeldAs(id+"-2"))
			assert.True(t, p.hasConfigMap("extra")())
			p.approvals = []string{id, id + "-2"}
			p.publish("main@4")
			p.eventually("until that is approved", p.hasNoConfigMap("extra"))
			p.approvals = nil
			p.publish("main@4")
			p.eventually("what is not approved any more is forgotten", func() bool {
				_, one := p.approvalUse(id)
				_, two := p.approvalUse(id + "-2")
				return !one && !two && p.usedApprovals() == ""
			})
			require.NoError(t, g.stop())
		})
	}
}

// TestFailedDeletionNeedsNoSecondApproval: a failed deletion needs no second approval, unless the
// object is declared again meanwhile. If the use cannot be recorded, nothing is deleted.
func TestFailedDeletionNeedsNoSecondApproval(t *testing.T) {
	p := newReviewedTestSeed(t)
	p.setExtraObject(true)
	p.publish("main@1")
	p.createShoot("one")
	namespace := "garden-" + p.project
	state := func(want string) func() bool {
		return func() bool { return p.lastOperation("Shoot", namespace, "one", "state") == want }
	}
	g := p.runGardenlet()
	p.eventually("it is converged", func() bool { return p.hasConfigMap("extra")() && p.hasRecord()() })
	require.NoError(t, g.stop())

	id := permit.ApprovalID(p.name, change.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: p.controlPlane("one"), Name: "extra"})
	p.setExtraObject(false)
	p.approvals = []string{id}
	p.publish("main@2")
	failing := &requestKiller{method: "PATCH,POST", path: approvalUsesConfigMap, fails: 1 << 20}
	g = p.runGardenlet(failing.wrapClients)
	p.eventually("its use cannot be noted", func() bool { return failing.remainingFailures() < 1<<20-1 })
	assert.True(t, p.hasConfigMap("extra")())
	p.eventually("so that it is held", p.isHeldAs(id))
	require.NoError(t, g.stop())
	assert.Empty(t, p.usedApprovals())

	failing = &requestKiller{method: "DELETE", path: "/extra", fails: 1 << 20}
	g = p.runGardenlet(failing.wrapClients)
	p.eventually("its deletion fails", func() bool { return failing.remainingFailures() < 1<<20-1 && state("Error")() })
	p.eventually("it is told that the approval is used", func() bool { return p.usedApprovals() == id })
	one, _ := p.approvalUse(id)
	require.Len(t, one.DeletableObjects, 1)
	assert.Equal(t, p.seedConfigMap(p.controlPlane("one"), "extra").GetUID(), one.DeletableObjects[0].UID)
	p.setExtraObject(true)
	p.publish("main@3")
	p.eventually("it is wanted again", func() bool {
		one, _ := p.approvalUse(id)
		return len(one.DeletableObjects) == 0
	})
	p.setExtraObject(false)
	p.publish("main@4")
	p.eventually("its deletion is held", p.isHeldAs(id+"-2"))

	p.approvals = []string{id, id + "-2"}
	before := failing.remainingFailures()
	p.publish("main@4")
	p.eventually("its deletion fails again", func() bool { return failing.remainingFailures() < before-1 })
	p.eventually("it is told that the approval is used", func() bool { return p.usedApprovals() == id+","+id+"-2" })
	failing.mu.Lock()
	failing.method = ""
	failing.mu.Unlock()
	p.eventually("it goes without a third one", p.hasNoConfigMap("extra"))
	p.eventually("nothing is left to go", func() bool {
		one, noted := p.approvalUse(id + "-2")
		return noted && len(one.DeletableObjects) == 0 && state("Succeeded")()
	})
	require.NoError(t, g.stop())
	assert.False(t, p.isHeldAs(id+"-3")(), "nobody was asked for more")
}
