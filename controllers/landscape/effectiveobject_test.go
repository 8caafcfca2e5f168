// SPDX-License-Identifier: Apache-2.0

package landscape

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/conventions"
	"github.com/pergola-dev/pergola/controllers/owner"
	"github.com/pergola-dev/pergola/render"
)

const seedFile = "apiVersion: core.gardener.cloud/v1beta1\nkind: Seed\nmetadata: {name: local}\nspec:\n  provider: {type: local, region: local}\n" +
	"  networks: {pods: 10.1.0.0/16, services: 10.2.0.0/16}\n  ingress: {domain: ingress.example.org, controller: {kind: nginx}}\n  dns: {}\n"

// TestComponentsUseUndeclaredFields checks that components of a Seed and a Shoot include
// undeclared fields that others have set, before, after and without an apply. A field that Git no
// longer declares is removed.
func TestComponentsUseUndeclaredFields(t *testing.T) {
	declared := strings.Replace(shootFile("undeclared"), "  namespace: default\n", "  namespace: default\n  annotations: {given-up: by-git, kept: by-git}\n", 1)
	require.Contains(t, declared, "given-up")
	w := newFolderLandscape(t, "undeclared", map[string]string{"shoot.yaml": declared, "seed.yaml": seedFile})
	seeds := resourceClient(t, gardencorev1beta1.SchemeGroupVersion.WithResource("seeds"), "")
	t.Cleanup(func() { _ = seeds.Delete(context.Background(), "local", metav1.DeleteOptions{}) })
	w.mustSync()
	patchShoot(t, "undeclared", "kubectl-annotate", `{"metadata":{"annotations":{"foo":"bar","gardener.cloud/operation":"reconcile"},"labels":{"team":"a"}}}`)
	patchShoot(t, "undeclared", "kubectl-patch", `{"spec":{"controlPlane":{"highAvailability":{"failureTolerance":{"type":"node"}}}}}`)
	_, err := seeds.Patch(testContext(t), "local", types.MergePatchType, []byte(`{"metadata":{"labels":{"rack":"7"}}}`), metav1.PatchOptions{FieldManager: "kubectl-label"})
	require.NoError(t, err)
	w.write("shoot.yaml", strings.NewReplacer("given-up: by-git, ", "", "purpose: evaluation", "purpose: testing").Replace(declared))

	look := map[string]func() *Converger{
		"plan": func() *Converger {
			c := w.newConverger()
			p, err := c.planDeclarations(testContext(t), Virtual, splitByCluster(c.landscape)[Virtual])
			require.NoError(t, err)
			require.Len(t, p.Items, 1, "the Shoot alone: %+v", p.Items)
			return c
		},
		"status": func() *Converger {
			c := w.newConverger()
			c.dryRunVirtualOwners(testContext(t))
			return c
		},
		"apply": w.mustSync,
	}
	for _, name := range []string{"plan", "status", "apply"} {
		t.Run(name, func(t *testing.T) {
			c := look[name]()
			local, err := conventions.NewCluster("local", server.config, apply.ClusterOptions{})
			require.NoError(t, err)
			defer local.Close()
			d, _ := c.landscape.Find(gardencorev1beta1.SchemeGroupVersion.WithKind("Shoot").GroupKind(), "default", "undeclared")
			seed, _ := c.landscape.Find(gardencorev1beta1.SchemeGroupVersion.WithKind("Seed").GroupKind(), "", "local")
			o := &convergedOwner{Owner: owner.Owner{Ref: apply.RefOf(d.Object()), ObjectCluster: c.connections.clusters[Virtual], Local: local, Input: render.Input{
				Owner:   render.Owner{Kind: owner.Shoot, Namespace: "default", Name: "undeclared"},
				Objects: map[string]map[string]any{owner.Shoot: d.Object().Object, owner.Seed: seed.Object().Object},
			}}}
			before := c.connections.clusters[Virtual].Requests()
			require.NoError(t, c.loadLiveOwner(testContext(t), o))
			assert.Equal(t, 2, c.connections.clusters[Virtual].Requests().Sub(before)["get"], "the Shoot and its Seed")
			shoot := &unstructured.Unstructured{Object: o.Input.Objects[owner.Shoot]}
			assert.Equal(t, map[string]string{"foo": "bar", "kept": "by-git"}, shoot.GetAnnotations())
			assert.Equal(t, "a", shoot.GetLabels()["team"])
			assert.Equal(t, "node", fieldValue(t, shoot, "spec.controlPlane.highAvailability.failureTolerance.type"))
			assert.Equal(t, "testing", fieldValue(t, shoot, "spec.purpose"), "what Git declares now")
			assert.Empty(t, shoot.GetUID(), "only what a declaration has")
			assert.Nil(t, shoot.GetManagedFields())
			inForce := &unstructured.Unstructured{Object: o.Input.Objects[owner.Seed]}
			assert.Equal(t, "7", inForce.GetLabels()["rack"])
			assert.NotEmpty(t, inForce.GetUID(), "backups are named after it")
			assert.Empty(t, d.Object().GetAnnotations()["foo"], "declarations are shared")
		})
	}
}
