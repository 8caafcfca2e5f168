// SPDX-License-Identifier: Apache-2.0

package owner

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/pergola-dev/pergola/api/crds"
	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/components"
	"github.com/pergola-dev/pergola/render"
)

// deletionTest is a Seed or Shoot with all bundles of its flow, and one of an older catalogue.
type deletionTest struct {
	*testSite
	objects dynamic.ResourceInterface
	nodes   []render.FlowNode

	mu sync.Mutex
	// deletedBundles are the bundles in the order in which their ConfigMaps were deleted.
	deletedBundles []string
}

const oldBundleName = "of-an-older-catalogue"

func newDeletionTest(t *testing.T, kind string, object string) *deletionTest {
	t.Helper()
	d := &deletionTest{testSite: newSite(t)}
	live := d.object(object)
	_, err := envtest.InstallCRDs(server.config, envtest.CRDInstallOptions{CRDs: []*apiextensionsv1.CustomResourceDefinition{crds.Get("core.gardener.cloud", live.GetKind())}})
	require.NoError(t, err)
	o := d.run.owner
	o.Input.Owner.Kind, o.Ref = kind, apply.RefOf(live)
	mapping, err := o.ObjectCluster.Mapping(d.ctx, o.Ref.GVK())
	require.NoError(t, err)
	d.objects = d.api.Resource(mapping.Resource)
	if live.GetNamespace() != "" {
		d.objects = d.api.Resource(mapping.Resource).Namespace(live.GetNamespace())
	}
	_, err = d.objects.Create(d.ctx, live, metav1.CreateOptions{})
	require.NoError(t, err)

	d.run.reconciler.Render = render.Options{Catalogue: components.FS}
	d.run.reconciler.StepTimeout = 20 * time.Second
	definition, err := render.LoadFlow(components.FS, "delete", o.Input)
	require.NoError(t, err)
	d.nodes = definition.Nodes
	names := []string{oldBundleName}
	for _, n := range d.nodes {
		for _, name := range n.Bundles {
			if name != render.OtherBundles {
				names = append(names, name)
			}
		}
	}
	for i, name := range names {
		b := d.bundle(i%2 == 0, d.configMap(name))
		b.Name = name
		d.mustApply(b)
	}
	d.run.reconciler.Hooks.OnObject = func(_, bundle string, r apply.ObjectResult) {
		d.mu.Lock()
		defer d.mu.Unlock()
		if r.Action == apply.Deleted && r.Ref.Kind == "ConfigMap" {
			d.deletedBundles = append(d.deletedBundles, bundle)
		}
	}
	require.NoError(t, d.objects.Delete(d.ctx, o.Ref.Name, metav1.DeleteOptions{}))
	return d
}

func (d *deletionTest) patch(of dynamic.ResourceInterface, name, patch string) {
	d.Helper()
	_, err := of.Patch(d.ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	require.NoError(d, err)
}

// remainingBundles returns the bundles whose objects exist.
func (d *deletionTest) remainingBundles() (out []string) {
	d.Helper()
	list, err := d.resource("configmaps", d.ns).List(d.ctx, metav1.ListOptions{})
	require.NoError(d, err)
	for _, item := range list.Items {
		if item.GetName() != "kube-root-ca.crt" {
			out = append(out, item.GetName())
		}
	}
	return out
}

// TestDelete checks that Seeds and Shoots follow their deletion flows: nothing before the
// confirmation, then one bundle after another, then the object.
func TestDelete(t *testing.T) {
	for kind, c := range map[string]struct {
		object string
		// stuck is a bundle with an object that is not deleted; first are the bundles that may be
		// deleted before it.
		stuck string
		first []string
		// stays are the bundles whose objects remain.
		stays []string
	}{
		Seed: {`{apiVersion: core.gardener.cloud/v1beta1, kind: Seed, metadata: {name: NS, finalizers: [gardener, example.org/other]}, spec: {provider: {type: local, region: a},
			networks: {nodes: 10.0.0.0/16, pods: 10.1.0.0/16, services: 10.2.0.0/16}, dns: {provider: {type: local}}}}`,
			"system", []string{oldBundleName, "etcd-druid"}, []string{"garden-namespace"}},
		Shoot: {`{apiVersion: core.gardener.cloud/v1beta1, kind: Shoot, metadata: {name: NS, namespace: default, finalizers: [gardener, example.org/other]},
			spec: {region: a, provider: {type: local}, kubernetes: {version: 1.34.1}, cloudProfile: {kind: CloudProfile, name: local}}}`,
			"control-plane", []string{oldBundleName, "network", "worker", "operating-system-config"}, nil},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			d := newDeletionTest(t, kind, c.object)
			all := d.remainingBundles()
			_, err := d.run.reconciler.delete(d.ctx, d.run.owner)
			require.ErrorContains(t, err, "nothing is deleted until it is confirmed")
			assert.Equal(t, all, d.remainingBundles())
			d.patch(d.objects, d.ns, `{"metadata":{"annotations":{"confirmation.gardener.cloud/deletion":"true"}}}`)

			d.patch(d.resource("configmaps", d.ns), c.stuck, `{"metadata":{"finalizers":["example.org/stuck"]}}`)
			d.run.reconciler.StepTimeout = 3 * time.Second
			report, err := d.run.reconciler.delete(d.ctx, d.run.owner)
			require.ErrorContains(t, err, c.stuck)
			assert.ElementsMatch(t, c.first, d.deletedBundles, "nothing goes before what it comes after")
			assert.Positive(t, report.ChangeCounts.Total())
			live, err := d.objects.Get(d.ctx, d.ns, metav1.GetOptions{})
			require.NoError(t, err)
			assert.Equal(t, []string{"gardener", "example.org/other"}, live.GetFinalizers())
			assert.Equal(t, "Delete Error", lastOperationText(live))

			d.patch(d.resource("configmaps", d.ns), c.stuck, `{"metadata":{"finalizers":null}}`)
			d.run.reconciler.StepTimeout = 20 * time.Second
			_, err = d.run.reconciler.delete(d.ctx, d.run.owner)
			require.NoError(t, err)
			assert.ElementsMatch(t, c.stays, d.remainingBundles())
			for _, n := range d.nodes {
				for _, before := range d.nodes {
					for _, b := range n.Bundles {
						if _, needs := n.After[before.ID]; needs && slices.Contains(d.deletedBundles, b) {
							for _, earlier := range before.Bundles {
								assert.Less(t, slices.Index(d.deletedBundles, earlier), slices.Index(d.deletedBundles, b), "%s goes before %s", earlier, b)
							}
						}
					}
				}
			}
			left, err := HasInventory(d.ctx, d.run.owner.Owner)
			require.NoError(t, err)
			assert.False(t, left)
			live, err = d.objects.Get(d.ctx, d.ns, metav1.GetOptions{})
			require.NoError(t, err)
			assert.Equal(t, []string{"example.org/other"}, live.GetFinalizers(), "that of others is theirs")
			assert.Equal(t, "Delete Succeeded", lastOperationText(live))
			d.patch(d.objects, d.ns, `{"metadata":{"finalizers":null}}`)
			_, err = d.objects.Get(d.ctx, d.ns, metav1.GetOptions{})
			assert.True(t, apierrors.IsNotFound(err))
			report, err = d.run.reconciler.delete(d.ctx, d.run.owner)
			require.NoError(t, err)
			assert.Empty(t, report.Nodes, "nothing is left to do")
		})
	}
}

func lastOperationText(live *unstructured.Unstructured) string {
	kind, _, _ := unstructured.NestedString(live.Object, "status", "lastOperation", "type")
	state, _, _ := unstructured.NestedString(live.Object, "status", "lastOperation", "state")
	return kind + " " + state
}
