// SPDX-License-Identifier: Apache-2.0

package gardenlet

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/landscape"
)

// TestFenceBlocksWrites: a gardenlet writes neither to the garden nor to its seed while another one
// may be active. It waits for the lease, and stops after a late renewal, such as in a paused
// process.
func TestFenceBlocksWrites(t *testing.T) {
	p := newTestSeed(t)
	p.publish("main@1")
	g := p.runGardenlet()
	write := func(to *apply.Cluster, name string) error {
		client, err := kubernetes.NewForConfig(to.RESTConfig())
		require.NoError(t, err)
		_, err = client.CoreV1().ConfigMaps("default").Create(p.ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		return err
	}
	p.eventually("it has the lease", g.isSoleWriter)
	g.mu.Lock()
	lease := g.heartbeatState.lease
	g.mu.Unlock()
	hold := func(l *landscape.SharedLease) {
		g.mu.Lock()
		g.heartbeatState.lease = l
		g.mu.Unlock()
	}
	for _, to := range []*apply.Cluster{g.connections.garden, g.connections.local} {
		hold(nil)
		require.ErrorIs(t, write(to, "fence-"+p.name), landscape.ErrLeaseUncertain)
		hold(lease)
		require.NoError(t, write(to, "fence-"+p.name))
	}
	require.NoError(t, g.stop())
	require.ErrorIs(t, write(g.connections.local, "after-"+p.name), landscape.ErrLeaseUncertain, "the lease is given back")
	assert.False(t, g.isSoleWriter())
}
