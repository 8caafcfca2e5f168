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
	"k8s.io/apimachinery/pkg/runtime"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/conventions"
	"github.com/pergola-dev/pergola/controllers/owner"
	"github.com/pergola-dev/pergola/render"
)

func profileFile(versions, images string) string {
	return "apiVersion: core.gardener.cloud/v1beta1\nkind: CloudProfile\nmetadata: {name: local}\nspec:\n  type: local\n  regions: [{name: local}]\n" +
		"  kubernetes: {versions: [" + versions + "]}\n  machineTypes: [{name: local, cpu: \"2\", gpu: \"0\", memory: 8Gi, architecture: amd64}]\n" +
		"  machineImages: [{name: local, versions: [" + images + "]}]\n"
}

func imageVersionField(version string) string {
	return "{version: " + version + ", architectures: [amd64], cri: [{name: containerd}]}"
}

// openShootFile is a Shoot that leaves its versions and images open.
func openShootFile(name, version string) string {
	text := strings.ReplaceAll(shootFile(name), "    version: 1.33.1\n", "    version: \""+version+"\"\n")
	return strings.NewReplacer("      kubernetes: {version: 1.33.1}\n", "", ", version: 1.0.0", "").Replace(text)
}

// TestOpenVersionsStay checks that open values are chosen at creation and stay after changes of the
// profile or of other fields. Components are rendered for the chosen values.
func TestOpenVersionsStay(t *testing.T) {
	w := newFolderLandscape(t, "open", map[string]string{"shoot.yaml": openShootFile("open", "1.33"), "profile.yaml": profileFile("{version: 1.33.1}", imageVersionField("1.0.0"))})
	t.Cleanup(func() {
		gvr := gardencorev1beta1.SchemeGroupVersion.WithResource("cloudprofiles")
		_ = resourceClient(t, gvr, "").Delete(context.Background(), "local", metav1.DeleteOptions{})
	})
	w.mustSync()
	chosen := func(kubernetes, machine string) *unstructured.Unstructured {
		t.Helper()
		live := liveShoot(t, "open")
		assert.Equal(t, kubernetes, fieldValue(t, live, "spec.kubernetes.version"))
		assert.Equal(t, map[string]any{"name": "local", "version": machine}, firstPool(t, live)["machine"].(map[string]any)["image"])
		return live
	}
	first := chosen("1.33.1", "1.0.0")

	w.write("profile.yaml", profileFile("{version: 1.34.2, classification: supported}, {version: 1.33.9, classification: supported}, {version: 1.33.1, classification: deprecated}", imageVersionField("1.1.0")+", "+imageVersionField("1.0.0")))
	w.mustSync()
	assert.Equal(t, first.GetResourceVersion(), chosen("1.33.1", "1.0.0").GetResourceVersion(), "nothing was written")

	w.write("shoot.yaml", strings.Replace(openShootFile("open", "1.33"), "purpose: evaluation", "purpose: testing", 1))
	c := w.newConverger()
	p, err := c.planDeclarations(testContext(t), Virtual, splitByCluster(c.landscape)[Virtual])
	require.NoError(t, err)
	require.Len(t, p.Items, 1)
	require.Len(t, p.Items[0].Fields, 1, "%+v", p.Items[0].Fields)
	assert.Equal(t, "spec.purpose", p.Items[0].Fields[0].Path)
	w.mustSync()
	live := chosen("1.33.1", "1.0.0")
	assert.Equal(t, "testing", fieldValue(t, live, "spec.purpose"))

	for name, c := range map[string]*Converger{"who applies": w.mustSync(), "who does not": w.newConverger()} {
		t.Run(name, func(t *testing.T) {
			local, err := conventions.NewCluster("local", server.config, apply.ClusterOptions{})
			require.NoError(t, err)
			defer local.Close()
			d, _ := c.landscape.Find(live.GroupVersionKind().GroupKind(), "default", "open")
			full := runtime.DeepCopyJSON(d.Object().Object)
			require.NoError(t, unstructured.SetNestedField(full, "1.33.9", "spec", "kubernetes", "version"))
			o := &convergedOwner{Owner: owner.Owner{Ref: apply.RefOf(live), ObjectCluster: c.connections.clusters[Virtual], Local: local, Input: render.Input{
				Owner: render.Owner{Kind: owner.Shoot, Namespace: "default", Name: "open"}, TargetVersion: "1.33.9",
				Objects: map[string]map[string]any{owner.Shoot: full},
			}}}
			require.NoError(t, c.useEffectiveObject(o, live))
			object := &unstructured.Unstructured{Object: o.Input.Objects[owner.Shoot]}
			assert.Equal(t, "1.33.1", fieldValue(t, object, "spec.kubernetes.version"))
			assert.Equal(t, "1.33.1", o.Input.TargetVersion)
			assert.Equal(t, map[string]any{"name": "local", "version": "1.0.0"}, firstPool(t, object)["machine"].(map[string]any)["image"])
		})
	}

	// Maintenance raises them, and a commit with another minor version has precedence.
	updateShootAs(t, "open", controllerManager, func(o *unstructured.Unstructured) {
		require.NoError(t, unstructured.SetNestedField(o.Object, "1.33.9", "spec", "kubernetes", "version"))
		worker := o.Object["spec"].(map[string]any)["provider"].(map[string]any)["workers"].([]any)[0].(map[string]any)
		worker["machine"].(map[string]any)["image"].(map[string]any)["version"] = "1.1.0"
	})
	w.write("shoot.yaml", openShootFile("open", "1.33"))
	w.mustSync()
	chosen("1.33.9", "1.1.0")
	w.write("shoot.yaml", openShootFile("open", "1.34"))
	w.mustSync()
	chosen("1.34.2", "1.1.0")
}
