// SPDX-License-Identifier: Apache-2.0

package gardenlet

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// hasEvent reports whether an Event contains all parts.
func (p *testSeed) hasEvent(reason, name string, parts ...string) func() bool {
	return func() bool {
		return slices.ContainsFunc(p.eventMessages(reason, name), func(m string) bool {
			return !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(m, part) })
		})
	}
}

// TestUnmanagedOwnersAreReported: deletions and moves are not handled, and the objects stay on the
// seed. Events report that.
func TestUnmanagedOwnersAreReported(t *testing.T) {
	p := newTestSeed(t)
	namespace := "garden-" + p.project
	for _, name := range []string{"going", "gone", "leaving"} {
		p.createShoot(name)
	}
	p.patch("Shoot", namespace, "going", `{"metadata":{"finalizers":["gardener.cloud/test"]}}`)
	p.Cleanup(func() { p.patch("Shoot", namespace, "going", `{"metadata":{"finalizers":null}}`) })
	p.publish("main@1")
	g := p.runGardenlet()
	for _, name := range []string{"going", "gone", "leaving"} {
		p.eventually(name+" is there", func() bool { return p.seedConfigMap(p.controlPlane(name), "c") != nil })
		p.eventually(name+" is converged", func() bool { return p.lastOperation("Shoot", namespace, name, "state") == "Succeeded" })
	}
	for _, name := range []string{"going", "gone"} {
		require.NoError(t, p.resourceClient("Shoot", namespace).Delete(p.ctx, name, metav1.DeleteOptions{}))
	}
	p.patch("Shoot", namespace, "leaving", `{"spec":{"seedName":"elsewhere"}}`)
	p.eventually("a deletion is told", p.hasEvent(reasonLeftAlone, "going", "it is being deleted", "delete them there manually"))
	p.eventually("one that is done is told at the Seed", p.hasEvent(reasonLeftAlone, p.name, "Shoot "+namespace+"/gone no longer exists", "unreconciled"))
	p.eventually("a move is told", p.hasEvent(reasonLeftAlone, "leaving", "spec.seedName changed from "+p.name+" to elsewhere", "unreconciled"))
	p.patch("Shoot", namespace, "going", `{"metadata":{"annotations":{"gardener.cloud/operation":"reconcile"}}}`)
	p.eventually("what is asked of it is told", p.hasEvent(reasonOperationIgnored, "going", `the operation "reconcile"`, "ignores the object: it is being deleted"))
	for _, name := range []string{"going", "gone", "leaving"} {
		assert.NotNil(t, p.seedConfigMap(p.controlPlane(name), "c"), name)
	}
	require.NoError(t, g.stop())
}
