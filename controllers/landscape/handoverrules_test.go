// SPDX-License-Identifier: Apache-2.0

package landscape

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/controllers/conventions"
	"github.com/pergola-dev/pergola/controllers/owner"
	"github.com/pergola-dev/pergola/plan"
	"github.com/pergola-dev/pergola/render"
)

const (
	controllerManager = "gardener-controller-manager"
	schedulerManager  = "gardener-scheduler"
)

func shootFile(name string) string {
	return strings.ReplaceAll(`apiVersion: core.gardener.cloud/v1beta1
kind: Shoot
metadata:
  name: NAME
  namespace: default
spec:
  cloudProfile: {kind: CloudProfile, name: local}
  region: local
  purpose: evaluation
  credentialsBindingName: local
  networking: {type: calico, nodes: 10.250.0.0/16}
  kubernetes:
    version: 1.33.1
    kubeControllerManager:
      podEvictionTimeout: 2m0s
  maintenance:
    autoUpdate: {kubernetesVersion: true, machineImageVersion: true}
  hibernation:
    enabled: false
    schedules: [{start: "0 20 * * *", end: "0 6 * * *"}]
  provider:
    type: local
    workers:
    - name: a
      minimum: 1
      maximum: 2
      maxSurge: 1
      maxUnavailable: 0
      kubernetes: {version: 1.33.1}
      machine: {type: local, image: {name: local, version: 1.0.0}}
`, "NAME", name)
}

// actAsControllers imitates controllers between two syncs: maintenance, hibernation, binding.
func actAsControllers(t *testing.T, name string) {
	t.Helper()
	updateShootAs(t, name, controllerManager, func(o *unstructured.Unstructured) {
		spec := o.Object["spec"].(map[string]any)
		kubernetes := spec["kubernetes"].(map[string]any)
		kubernetes["version"] = "1.34.2"
		delete(kubernetes, "kubeControllerManager")
		spec["hibernation"].(map[string]any)["enabled"] = true
		worker := spec["provider"].(map[string]any)["workers"].([]any)[0].(map[string]any)
		worker["kubernetes"] = map[string]any{"version": "1.34.2"}
		worker["machine"].(map[string]any)["image"].(map[string]any)["version"] = "1.2.0"
	})
	updateShootAs(t, name, schedulerManager, func(o *unstructured.Unstructured) {
		require.NoError(t, unstructured.SetNestedField(o.Object, "local", "spec", "seedName"))
	})
}

func pathsOf(fields []change.HandedOver) []string {
	var out []string
	for _, f := range fields {
		out = append(out, f.Path+" by "+f.Manager)
	}
	return out
}

// TestFieldsAreHandedOver checks that fields that controllers change as their task are reported and
// not written. A changed declaration has precedence.
func TestFieldsAreHandedOver(t *testing.T) {
	w := newFolderLandscape(t, "handed", map[string]string{"shoot.yaml": shootFile("handed")})
	w.mustSync()
	actAsControllers(t, "handed")
	acted := liveShoot(t, "handed")

	left := []string{
		"spec.hibernation.enabled by " + controllerManager,
		"spec.kubernetes.version by " + controllerManager,
		`spec.provider.workers[name="a"].kubernetes.version by ` + controllerManager,
		`spec.provider.workers[name="a"].machine.image.version by ` + controllerManager,
		"spec.kubernetes.kubeControllerManager.podEvictionTimeout by ",
	}
	for range 2 {
		c := w.mustSync()
		assert.ElementsMatch(t, left, pathsOf(c.currentRun.report.HandedOver))
		assert.Zero(t, c.currentRun.report.Changed)
		assert.Equal(t, acted.GetResourceVersion(), liveShoot(t, "handed").GetResourceVersion(), "nothing was written")
	}
	c := w.newConverger()
	before := c.Cluster(Virtual).Requests()
	p, err := c.planDeclarations(testContext(t), Virtual, splitByCluster(c.landscape)[Virtual])
	require.NoError(t, err)
	assert.True(t, p.IsEmpty(), "%+v", p.Items)
	assert.ElementsMatch(t, left, pathsOf(p.HandedOver))
	assert.NotEqual(t, before, c.Cluster(Virtual).Requests())
	for _, f := range p.HandedOver {
		assert.NotEmpty(t, f.Reason)
		if f.Manager != "" {
			require.NotNil(t, f.LastWrite)
			assert.WithinDuration(t, time.Now(), *f.LastWrite, time.Minute)
		}
	}

	assert.ElementsMatch(t, left, pathsOf(c.findHandedOver(testContext(t))))
	var texts []string
	for _, f := range p.HandedOver {
		texts = append(texts, plan.HandedOverText(f))
	}
	assert.Contains(t, strings.Join(texts, "\n"), "Shoot default/handed on virtual: spec.kubernetes.version is 1.34.2, Git has 1.33.1, set by gardener-controller-manager (")

	t.Run("an unrelated commit leaves them", func(t *testing.T) {
		w.write("shoot.yaml", strings.Replace(shootFile("handed"), "maximum: 2", "maximum: 5", 1))
		c := w.mustSync()
		assert.ElementsMatch(t, left, pathsOf(c.currentRun.report.HandedOver))
		live := liveShoot(t, "handed")
		assert.EqualValues(t, 5, firstPool(t, live)["maximum"])
		assert.Equal(t, "1.34.2", fieldValue(t, live, "spec.kubernetes.version"))
		assert.Equal(t, true, fieldValue(t, live, "spec.hibernation.enabled"))
		assert.Equal(t, "local", fieldValue(t, live, "spec.seedName"))
	})
}

func TestNewDeclarationOverridesHandover(t *testing.T) {
	for name, test := range map[string]struct {
		old, new string
		path     string
		want     any
		left     bool
	}{
		"a newer version wins":          {"version: 1.33.1\n    kube", "version: 1.34.5\n    kube", "spec.kubernetes.version", "1.34.5", false},
		"an older version cannot":       {"version: 1.33.1\n    kube", "version: 1.33.9\n    kube", "spec.kubernetes.version", "1.34.2", true},
		"hibernation by a commit":       {"enabled: false\n    schedules", "enabled: true\n    schedules", "spec.hibernation.enabled", true, false},
		"without schedules Git decides": {"\n    schedules: [{start: \"0 20 * * *\", end: \"0 6 * * *\"}]", "", "spec.hibernation.enabled", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			shoot := "moves-" + strings.ReplaceAll(strings.ToLower(name), " ", "-")
			w := newFolderLandscape(t, shoot, map[string]string{"shoot.yaml": shootFile(shoot)})
			w.mustSync()
			actAsControllers(t, shoot)
			w.mustSync()
			changed := strings.Replace(shootFile(shoot), test.old, test.new, 1)
			require.NotEqual(t, shootFile(shoot), changed)
			w.write("shoot.yaml", strings.ReplaceAll(changed, "podEvictionTimeout: 2m0s", "nodeCIDRMaskSize: 24"))
			for range 2 {
				c := w.mustSync()
				assert.Equal(t, test.want, fieldValue(t, liveShoot(t, shoot), test.path))
				found := false
				for _, f := range c.currentRun.report.HandedOver {
					found = found || f.Path == test.path
				}
				assert.Equal(t, test.left, found)
			}
		})
	}
	t.Run("an image, also an older one", func(t *testing.T) {
		w := newFolderLandscape(t, "image", map[string]string{"shoot.yaml": shootFile("image")})
		w.mustSync()
		actAsControllers(t, "image")
		w.mustSync()
		w.write("shoot.yaml", strings.Replace(shootFile("image"), "version: 1.0.0", "version: 1.1.0", 1))
		w.mustSync()
		assert.Equal(t, map[string]any{"name": "local", "version": "1.1.0"}, firstPool(t, liveShoot(t, "image"))["machine"].(map[string]any)["image"])
		updateShootAs(t, "image", controllerManager, func(o *unstructured.Unstructured) {
			pool := o.Object["spec"].(map[string]any)["provider"].(map[string]any)["workers"].([]any)[0].(map[string]any)
			pool["machine"].(map[string]any)["image"].(map[string]any)["version"] = "1.2.0"
		})
		assert.Contains(t, pathsOf(w.mustSync().currentRun.report.HandedOver), `spec.provider.workers[name="a"].machine.image.version by `+controllerManager)
	})
	t.Run("hibernation goes on with its schedules after a commit", func(t *testing.T) {
		w := newFolderLandscape(t, "sleeps", map[string]string{"shoot.yaml": shootFile("sleeps")})
		w.mustSync()
		asleep := strings.Replace(shootFile("sleeps"), "enabled: false", "enabled: true", 1)
		w.write("shoot.yaml", asleep)
		w.mustSync()
		assert.Equal(t, true, fieldValue(t, liveShoot(t, "sleeps"), "spec.hibernation.enabled"))
		patchShoot(t, "sleeps", controllerManager, `{"spec":{"hibernation":{"enabled":false}}}`)
		assert.Contains(t, pathsOf(w.mustSync().currentRun.report.HandedOver), "spec.hibernation.enabled by "+controllerManager)
		assert.Equal(t, false, fieldValue(t, liveShoot(t, "sleeps"), "spec.hibernation.enabled"))
	})
}

// TestOtherFieldsAreNotHandedOver checks that other fields are not handed over: edits by
// people are reverted, writes by other programs are conflicts.
func TestOtherFieldsAreNotHandedOver(t *testing.T) {
	w := newFolderLandscape(t, "people", map[string]string{"shoot.yaml": shootFile("people")})
	w.mustSync()
	patchShoot(t, "people", "kubectl-edit", `{"spec":{"purpose":"testing"}}`)
	patchShoot(t, "people", "some-controller", `{"spec":{"maintenance":{"autoUpdate":{"machineImageVersion":false}}}}`)
	_, err := w.sync()
	require.ErrorContains(t, err, "spec.maintenance.autoUpdate.machineImageVersion is owned by some-controller")
	assert.NotContains(t, err.Error(), "spec.purpose")
	patchShoot(t, "people", controllerManager, `{"spec":{"kubernetes":{"version":"1.34.0"}}}`)
	_, err = w.sync()
	require.ErrorContains(t, err, "spec.maintenance.autoUpdate.machineImageVersion is owned by some-controller")
	assert.NotContains(t, err.Error(), "kubernetes")
	patchShoot(t, "people", "some-controller", `{"spec":{"maintenance":{"autoUpdate":{"machineImageVersion":true}}}}`)
	c := w.mustSync()
	assert.Equal(t, "evaluation", fieldValue(t, liveShoot(t, "people"), "spec.purpose"))
	assert.Contains(t, pathsOf(c.currentRun.report.HandedOver), "spec.kubernetes.version by "+controllerManager)
}

// TestComponentsUseHandedOverFields checks that the components of a Shoot use handed-over
// values: its control plane does not return to the version in Git.
func TestComponentsUseHandedOverFields(t *testing.T) {
	w := newFolderLandscape(t, "followed", map[string]string{"shoot.yaml": shootFile("followed")})
	applied := w.mustSync()
	actAsControllers(t, "followed")
	live := liveShoot(t, "followed")
	applying := w.mustSync()
	for name, c := range map[string]*Converger{"who applies": applying, "who does not": w.newConverger(), "who applied before": applied} {
		t.Run(name, func(t *testing.T) {
			if c == applied {
				c.currentRun.handedOver = nil
			}
			local, err := conventions.NewCluster("local", server.config, apply.ClusterOptions{})
			require.NoError(t, err)
			defer local.Close()
			d, _ := c.landscape.Find(live.GroupVersionKind().GroupKind(), "default", "followed")
			o := &convergedOwner{Owner: owner.Owner{Ref: apply.RefOf(live), ObjectCluster: c.connections.clusters[Virtual], Local: local, Input: render.Input{
				Owner: render.Owner{Kind: owner.Shoot, Namespace: "default", Name: "followed"}, TargetVersion: "1.33.1",
				Objects: map[string]map[string]any{owner.Shoot: d.Object().Object},
			}}}
			require.NoError(t, c.useEffectiveObject(o, live))
			object := &unstructured.Unstructured{Object: o.Input.Objects[owner.Shoot]}
			assert.Equal(t, "1.34.2", fieldValue(t, object, "spec.kubernetes.version"))
			assert.Equal(t, "1.34.2", o.Input.TargetVersion)
			assert.Equal(t, true, fieldValue(t, object, "spec.hibernation.enabled"))
			assert.Nil(t, fieldValue(t, object, "spec.kubernetes.kubeControllerManager.podEvictionTimeout"))
			assert.Equal(t, map[string]any{"name": "local", "version": "1.2.0"}, firstPool(t, object)["machine"].(map[string]any)["image"])
			assert.Equal(t, "1.33.1", fieldValue(t, d.Object(), "spec.kubernetes.version"), "declarations are shared")

			require.NoError(t, unstructured.SetNestedField(live.Object, "elsewhere", "spec", "seedName"))
			require.ErrorContains(t, c.useEffectiveObject(o, live), "it is bound to seed elsewhere, but Git declares local")
			require.NoError(t, unstructured.SetNestedField(live.Object, "local", "spec", "seedName"))
		})
	}
}

// TestVersionsOfGardenletsAreHandedOver checks that the version of a gardenlet is handed over only
// with the label of the Gardenlet, and only to controllers.
func TestVersionsOfGardenletsAreHandedOver(t *testing.T) {
	labelled := &unstructured.Unstructured{Object: map[string]any{}}
	labelled.SetLabels(map[string]string{"operator.gardener.cloud/auto-update-gardenlet-helm-chart-ref": "true"})
	refusing := &unstructured.Unstructured{Object: map[string]any{}}
	refusing.SetLabels(map[string]string{"operator.gardener.cloud/auto-update-gardenlet-helm-chart-ref": "false"})
	for name, c := range map[string]struct {
		live  *unstructured.Unstructured
		by    string
		value any
		want  bool
	}{
		"by the operator":     {labelled, "gardener-operator", "v1.150.0", true},
		"by a person":         {labelled, "kubectl-edit", "v1.150.0", false},
		"taken away":          {labelled, "gardener-operator", nil, false},
		"of one that refuses": {refusing, "gardener-operator", "v1.150.0", false},
		"without a label":     {&unstructured.Unstructured{Object: map[string]any{}}, "gardener-operator", "v1.150.0", false},
	} {
		t.Run(name, func(t *testing.T) {
			why, handed := handOverAutoUpdatedChart(apply.FieldConflict{LiveObject: c.live, Manager: c.by, Live: c.value})
			assert.Equal(t, c.want, handed)
			assert.Equal(t, "label operator.gardener.cloud/auto-update-gardenlet-helm-chart-ref", why)
		})
	}
}
