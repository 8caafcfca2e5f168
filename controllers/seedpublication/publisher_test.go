// SPDX-License-Identifier: Apache-2.0

package seedpublication

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	"github.com/pergola-dev/pergola/api/crds"
	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/conventions"
	"github.com/pergola-dev/pergola/hack/apiserver"
)

var server struct {
	config *rest.Config
	count  atomic.Int64
}

func TestMain(m *testing.M) {
	os.Exit(apiserver.Main(m, func(config *rest.Config) { server.config = config }, crds.ByGroup(gardencorev1beta1.SchemeGroupVersion.Group)...))
}

type virtualGarden struct {
	*testing.T
	ctx     context.Context
	cluster *apply.Cluster
	client  kubernetes.Interface
	seed    string
	clock   *clocktesting.FakePassiveClock
	*Publisher
}

func newGarden(t *testing.T) *virtualGarden {
	apiserver.SkipIfUnavailable(t)
	g := &virtualGarden{T: t, seed: fmt.Sprintf("s%d", server.count.Add(1)), clock: clocktesting.NewFakePassiveClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))}
	var cancel context.CancelFunc
	g.ctx, cancel = context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	var err error
	g.cluster, err = conventions.NewCluster("virtual", server.config, apply.ClusterOptions{})
	require.NoError(t, err)
	t.Cleanup(g.cluster.Close)
	g.client, err = kubernetes.NewForConfig(server.config)
	require.NoError(t, err)
	g.Publisher = &Publisher{Engine: conventions.NewEngine(apply.Options{}), Clock: g.clock}
	return g
}

func (g *virtualGarden) declareSeed() {
	g.Helper()
	seed := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "core.gardener.cloud/v1beta1", "kind": "Seed", "metadata": map[string]any{"name": g.seed}, "spec": map[string]any{
		"provider": map[string]any{"type": "local", "region": "local"}, "networks": map[string]any{"pods": "10.3.0.0/16", "services": "10.4.0.0/16"},
		"ingress": map[string]any{"domain": "ingress.example.org", "controller": map[string]any{"kind": "nginx"}}, "dns": map[string]any{},
	}}}
	_, err := g.cluster.Dynamic().Resource(gardencorev1beta1.SchemeGroupVersion.WithResource("seeds")).Create(g.ctx, seed, metav1.CreateOptions{})
	require.NoError(g, err)
}

func (g *virtualGarden) publish(changes map[string]string, revision string) PublishResult {
	g.Helper()
	c, err := ContentOf(loadLandscape(g.T, landscapeFiles(changes), "live"), ObjectSettings{})
	require.NoError(g, err)
	out, err := g.Apply(g.ctx, g.cluster, c, g.seed, revision)
	require.NoError(g, err)
	return out
}

// readPublication reads the publication as a seed does.
func (g *virtualGarden) readPublication() (*Publication, int) {
	g.Helper()
	read := func(object any) *unstructured.Unstructured {
		content, err := toUnstructured(object)
		require.NoError(g, err)
		return content
	}
	pointer, err := g.client.CoreV1().ConfigMaps(SeedNamespace(g.seed)).Get(g.ctx, PointerName, metav1.GetOptions{})
	require.NoError(g, err)
	secrets, err := g.client.CoreV1().Secrets(SeedNamespace(g.seed)).List(g.ctx, metav1.ListOptions{LabelSelector: LabelPart})
	require.NoError(g, err)
	p, err := Read(read(pointer), func(name string) *unstructured.Unstructured {
		for i := range secrets.Items {
			if secrets.Items[i].Name == name {
				return read(&secrets.Items[i])
			}
		}
		return nil
	})
	require.NoError(g, err)
	return p, len(secrets.Items)
}

// writeRequestCount counts the requests that change objects.
func writeRequestCount(c apply.RequestCounts) int {
	n := 0
	for verb, count := range c {
		if verb != "get" && verb != "list" && verb != "watch" {
			n += count
		}
	}
	return n
}

func TestPublisher(t *testing.T) {
	g := newGarden(t)
	c, err := ContentOf(loadLandscape(t, landscapeFiles(nil), "live"), ObjectSettings{})
	require.NoError(t, err)
	_, err = g.Apply(g.ctx, g.cluster, c, g.seed, "main@0")
	require.ErrorContains(t, err, "Seed "+g.seed, "there is no namespace for a Seed that is not there")

	g.declareSeed()
	first := g.publish(nil, "main@1")
	assert.Equal(t, 2, first.ChangedObjects)
	p, parts := g.readPublication()
	assert.Equal(t, "main@1", p.Revision)
	assert.Equal(t, 1, parts)
	namespace, err := g.client.CoreV1().Namespaces().Get(g.ctx, SeedNamespace(g.seed), metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, "seed", namespace.Labels["gardener.cloud/role"])
	require.Len(t, namespace.OwnerReferences, 1)
	assert.Equal(t, g.seed, namespace.OwnerReferences[0].Name)

	t.Run("a commit about something else costs no request", func(t *testing.T) {
		before := g.cluster.Requests()
		out := g.publish(map[string]string{"live/components/garden/vpa/more.txt": "x"}, "main@2")
		assert.Equal(t, PublishResult{ChangedObjects: 0, Revision: "main@1", Digest: first.Digest}, out)
		assert.Empty(t, g.cluster.Requests().Sub(before))
	})
	changed := map[string]string{"live/components/seed/system/p.yaml": patch + "data: {a: b}\n"}
	t.Run("a change is published, and the former parts stay for a while", func(t *testing.T) {
		out := g.publish(changed, "main@3")
		p, parts := g.readPublication()
		assert.Equal(t, "main@3", p.Revision)
		assert.Equal(t, out.Digest, p.Digest)
		assert.Equal(t, first.Digest, p.PreviousDigest)
		assert.Equal(t, 2, parts)
		before := g.cluster.Requests()
		assert.Zero(t, g.publish(changed, "main@4").ChangedObjects)
		assert.Zero(t, writeRequestCount(g.cluster.Requests().Sub(before)))
	})
	t.Run("former parts go", func(t *testing.T) {
		g.clock.SetTime(g.clock.Now().Add(11 * time.Minute))
		assert.Equal(t, 1, g.publish(changed, "main@5").ChangedObjects)
		p, parts := g.readPublication()
		assert.Equal(t, "main@3", p.Revision)
		assert.Equal(t, 1, parts)
	})
	t.Run("a part that somebody deletes comes back", func(t *testing.T) {
		p, _ := g.readPublication()
		require.NoError(t, g.client.CoreV1().Secrets(SeedNamespace(g.seed)).Delete(g.ctx, partName(p.Digest, 0), metav1.DeleteOptions{}))
		require.Eventually(t, func() bool { return g.publish(changed, "main@6").ChangedObjects == 1 }, 20*time.Second, 20*time.Millisecond)
		g.readPublication()
	})
	t.Run("another publisher begins with what is there", func(t *testing.T) {
		other := newGarden(t)
		other.seed = g.seed
		other.clock.SetTime(g.clock.Now())
		assert.Zero(t, other.publish(changed, "main@7").ChangedObjects)
	})
}

func toUnstructured(object any) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	return &unstructured.Unstructured{Object: content}, err
}
