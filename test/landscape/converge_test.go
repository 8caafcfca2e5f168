// SPDX-License-Identifier: Apache-2.0

package landscape

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/controllers/landscape"
	"github.com/pergola-dev/pergola/controllers/owner"
	"github.com/pergola-dev/pergola/controllers/resourcemanager/tokenrequestor"
)

// testFreshLandscape starts from nothing: all is Ready, and every created object is in an inventory
// or an exemption.
func testFreshLandscape(t *testing.T, s *testStage) {
	before := s.snapshot()
	started := time.Now()
	report, _ := s.mustApply()
	s.machineSpeed.createTime = time.Since(started)
	t.Logf("%d objects from nothing in %s", report.Changed, s.machineSpeed.createTime.Round(time.Second))
	assert.Greater(t, report.Changed, 200)
	assert.Equal(t, report.Changed, report.Written.Total())
	assert.Empty(t, report.Held)
	for _, o := range report.Owners {
		assert.NotEmpty(t, o.Conditions, o.Owner)
	}

	// Tokens are requested outside the flow.
	accounts := s.api[virtualCluster].Resource(corev1.SchemeGroupVersion.WithResource("serviceaccounts")).Namespace("kube-system")
	require.Eventually(t, func() bool {
		o, err := accounts.Get(t.Context(), "kube-controller-manager", metav1.GetOptions{})
		return err == nil && tokenrequestor.IsRequested(o)
	}, time.Minute, 100*time.Millisecond)
	now := s.snapshot()
	known := s.inventoryObjects(now)
	exempt := landscape.UninventoriedKinds()
	used := make([]bool, len(exempt))
	ours := now.writtenByPergola()
	for name, o := range now {
		if known[name] || ours[name] == nil && !tokenrequestor.IsRequested(o) {
			continue
		}
		i := slices.IndexFunc(exempt, func(e landscape.UninventoriedKind) bool { return e.Matches(o) })
		if assert.GreaterOrEqual(t, i, 0, "%s is in no inventory and not exempt: made by %s", name, fieldManagers(o)) {
			used[i] = true
		}
	}
	for i, e := range exempt {
		assert.True(t, used[i], "there is no %s: the exemption is not needed", e.Objects)
	}
	for name := range known {
		assert.Contains(t, now, name, "an inventory has an object that is not there")
	}
	for _, name := range now.without(before) {
		o := now[name]
		assert.True(t, known[name] || ours[name] != nil || tokenrequestor.IsRequested(o) || ownedByKubernetes(o), "%s appeared, and nobody knows why: %s", name, fieldManagers(o))
	}
	help, err := exec.Command(env.Pergola, "apply", "--help").Output()
	require.NoError(t, err)
	for _, e := range exempt {
		assert.Contains(t, string(help), e.Objects)
	}
}

// ownedByKubernetes reports whether only Kubernetes' controllers, the API server or simulated
// extensions wrote an object.
func ownedByKubernetes(o *unstructured.Unstructured) bool {
	for _, f := range o.GetManagedFields() {
		if !slices.Contains([]string{"kube-controller-manager", "kube-apiserver", "kube-scheduler", "kubelet"}, f.Manager) &&
			!strings.HasPrefix(f.Manager, "kwok") && !strings.HasPrefix(f.Manager, "pergola-local") {
			return false
		}
	}
	return true
}

func fieldManagers(o *unstructured.Unstructured) string {
	var out []string
	for _, f := range o.GetManagedFields() {
		out = append(out, f.Manager+" "+string(f.Operation)+" "+f.Subresource)
	}
	return strings.Join(out, ", ")
}

// inventoryObjects returns the names of all objects in the inventories of bundles.
func (s *testStage) inventoryObjects(w snapshotByName) map[string]bool {
	s.Helper()
	role := map[string]string{"runtime": runtimeCluster, "virtual": virtualCluster, "seed": seedCluster, "bootstrap": runtimeCluster}
	out := map[string]bool{}
	for name, o := range w {
		cluster, _, _ := strings.Cut(name, ":")
		switch {
		case o.GetKind() == "ManagedResource":
			target := cluster
			if class, _, _ := unstructured.NestedString(o.Object, "spec", "class"); class == "" {
				target = virtualCluster
			}
			resources, _, err := unstructured.NestedSlice(o.Object, "status", "resources")
			require.NoError(s, err)
			for _, r := range resources {
				m := r.(map[string]any)
				ref := apply.Ref{Kind: fmt.Sprint(m["kind"]), Name: fmt.Sprint(m["name"])}
				ref.Namespace, _ = m["namespace"].(string)
				out[target+": "+ref.String()] = true
			}
		case o.GetKind() == "ConfigMap" && strings.HasPrefix(o.GetName(), owner.InventoryPrefix):
			target := role[o.GetLabels()[owner.LabelCluster]]
			if o.GetLabels()[owner.LabelDelivery] == "managedResource" {
				target = cluster
			}
			text, _, _ := unstructured.NestedString(o.Object, "data", "entries.json")
			require.NotEmpty(s, text, name)
			for _, line := range strings.Split(strings.TrimSpace(text), "\n") {
				var entry apply.Entry
				require.NoError(s, json.Unmarshal([]byte(line), &entry))
				out[target+": "+entry.Ref.String()] = true
			}
		}
	}
	return out
}

// waitForRollout waits until every bundle is rolled out and reported: a rollout that ended since
// the last run would count as a change.
func (s *testStage) waitForRollout() {
	s.Helper()
	c := s.newConverger()
	defer c.Close()
	ctx := testContext(s.T)
	for {
		status := c.Status(ctx, landscape.StatusOptions{Live: true, Components: true})
		var open []owner.BundleState
		for _, o := range append(status.Owners, status.Owners[1].Shoots...) {
			for _, b := range o.Bundles {
				if b.State != owner.StateHealthy && !isWaiting(b) {
					open = append(open, b)
				}
			}
		}
		if len(open) == 0 {
			break
		}
		select {
		case <-time.After(200 * time.Millisecond):
		case <-ctx.Done():
			require.Fail(s, "not rolled out", "%+v", open)
		}
	}
	s.mustApply()
}

// testNoChanges: another run writes no object, and neither a dry run nor a live comparison finds or
// writes anything.
func testNoChanges(t *testing.T, s *testStage) {
	s.waitForRollout()
	before := s.snapshot().fieldTimes()
	c := s.newConverger()
	started := time.Now()
	report, err := c.Apply(testContext(t))
	took := time.Since(started)
	require.NoError(t, err)
	assert.Zero(t, report.Changed)
	assert.Empty(t, c.writtenObjects())
	assert.Less(t, took, s.machineSpeed.createTime/2, "too long for nothing: everything took %s", s.machineSpeed.createTime)
	s.machineSpeed.noChangeTime = took
	t.Logf("nothing changed: %s", took.Round(100*time.Millisecond))
	assert.Equal(t, before, s.snapshot().fieldTimes())
	for _, name := range clusterNames {
		requests := c.Cluster(name).Requests()
		t.Logf("%s: %v", name, requests)
		// Only status of owners (patch) and leases (update, one create) remain.
		assert.Zero(t, requests["patch-apply"]+requests["delete"], name)
		assert.LessOrEqual(t, requests["patch"]+requests["update"]+requests["create"], 20, name)
	}
	c.Close()

	p, planner := s.planWithoutWaiting()
	assert.True(t, p.IsEmpty(), "%v", p.Items)
	assert.Greater(t, p.Unchanged, 200)
	for _, name := range clusterNames {
		assert.Zero(t, planner.Cluster(name).Requests().Writes(), name)
	}
	judge := s.newConverger()
	live := judge.Status(testContext(t), landscape.StatusOptions{Live: true, Components: true})
	assert.True(t, live.Ready, "%+v", live)
	for _, o := range append(live.Owners, live.Owners[1].Shoots...) {
		assert.NotEmpty(t, o.Conditions, o.Name)
		assert.True(t, o.HealthCheckedAt.Equal(live.At), o.Name)
		assert.NotEmpty(t, o.Bundles, o.Name)
		for _, b := range o.Bundles {
			if isWaiting(b) {
				assert.Regexp(t, "nothing serves the API server of the Shoot|nothing answers its webhooks", b.Message)
				continue
			}
			assert.Equal(t, owner.StateHealthy, b.State, "%s %s: %s", o.Name, b.Bundle, b.Message)
			assert.Positive(t, b.Objects, b.Bundle)
		}
	}
	for _, name := range clusterNames {
		assert.Zero(t, judge.Cluster(name).Requests().Writes(), "judging writes nothing to %s", name)
	}
	dry := s.cli("apply", s.dir, "--dry-run")
	assert.Equal(t, 1, dry.run(t))
	assert.Regexp(t, `^7 to create, \d+ unchanged`, dry.stdout.String())
	assert.Contains(t, dry.stdout.String(), "+ ClusterRoleBinding gardener.cloud:target:kube-controller-manager  (it waits: nothing serves the API server of the Shoot: ")
	assert.Equal(t, before, s.snapshot().fieldTimes())
}

// webhookBundles are the bundles with webhooks that do not run here: of the virtual garden, and of
// the runtime cluster and the seed.
var webhookBundles = []string{"gardener-admission-controller-webhooks", "gardener-resource-manager-webhooks"}

// isWaiting reports whether a bundle waits for the Shoot's simulated API server or for webhooks.
func isWaiting(b owner.BundleState) bool {
	return b.State == owner.StateWaiting && (strings.HasPrefix(b.Cluster, "shoot ") || slices.Contains(webhookBundles, b.Bundle))
}

// planWithoutWaiting ignores objects that wait for the Shoot's API server or for webhooks: both are
// simulated here.
func (s *testStage) planWithoutWaiting() (change.Plan, *converger) {
	s.Helper()
	c := s.newConverger()
	p, err := c.Plan(testContext(s.T))
	require.NoError(s, err)
	p.Items = slices.DeleteFunc(p.Items, func(i change.Item) bool {
		if strings.HasPrefix(i.Cluster, "shoot ") || slices.Contains(webhookBundles, i.Bundle) {
			assert.Equal(s, change.Create, i.Action, i.Object)
			assert.Contains(s, i.Reason, "it waits: ", i.Object)
			return true
		}
		return false
	})
	return p, c
}

// testFieldChange changes a field of the Shoot and one of the Garden: only the planned changes
// happen.
func testFieldChange(t *testing.T, s *testStage) {
	s.eventTTL("2h", "3h")
	versions := s.snapshot().fieldTimes()
	p, _ := s.planWithoutWaiting()
	var announced []string
	for _, item := range p.Items {
		assert.Equal(t, change.Change, item.Action, item.Object)
		announced = append(announced, "configured "+item.Object.String())
	}
	assert.Equal(t, versions, s.snapshot().fieldTimes(), "a plan writes nothing")
	assert.Equal(t, 1, s.cli("diff", s.dir, "--live").run(t))
	assert.Equal(t, 1, s.cli("apply", s.dir, "--dry-run").run(t), "there are differences")

	report, c := s.mustApply()
	want := []string{
		"configured Cluster shoot--local--local", // extensions read the Shoot from it
		"configured Deployment garden/virtual-garden-kube-apiserver",
		"configured Deployment shoot--local--local/kube-apiserver",
		"configured Garden local",
		"configured Shoot garden-local/local",
	}
	assert.ElementsMatch(t, want, c.writtenObjects())
	assert.ElementsMatch(t, want, announced)
	assert.Equal(t, len(want), report.Changed)
	live := s.get(s.resource(seedCluster, "apps/v1", "deployments", "shoot--local--local"), "kube-apiserver")
	text, err := json.Marshal(live.Object)
	require.NoError(t, err)
	assert.Contains(t, string(text), "--event-ttl=3h")
	service := s.get(s.resource(seedCluster, "v1", "services", "shoot--local--local"), "kube-apiserver")
	_, rest, _ := strings.Cut(fieldAt(service, "spec", "clusterIP").(string), ".")
	assert.Contains(t, string(text), "--advertise-address=240."+rest, "the address of its Service is a fact")
}

// testGeneratedSecret requests a change of a Secret that the cluster generates. The plan shows the
// restarts and the new name, and creates nothing.
func testGeneratedSecret(t *testing.T, s *testStage) {
	s.write("projects/local/shoot.yaml", strings.Replace(s.read("projects/local/shoot.yaml"), "    kubeAPIServer:\n", "    kubeAPIServer:\n      encryptionConfig: {resources: [configmaps]}\n", 1))
	const volume = "spec.template.spec.volumes[name=etcd-encryption-secret].secret.secretName"
	versions := s.snapshot().fieldTimes()
	p, _ := s.planWithoutWaiting()
	var announced []string
	name := ""
	for _, item := range p.Items {
		announced = append(announced, "configured "+item.Object.String())
		for _, f := range item.Fields {
			if f.Path == volume {
				name, _ = f.New.(string)
				assert.NotEqual(t, f.Old, f.New)
				assert.Contains(t, item.Consequences, "rolls its pods")
			}
		}
	}
	assert.Regexp(t, "^kube-apiserver-etcd-encryption-configuration-[0-9a-f]{8}$", name)
	assert.Equal(t, versions, s.snapshot().fieldTimes(), "a plan writes nothing")
	_, c := s.mustApply()
	assert.ElementsMatch(t, announced, c.writtenObjects())
	assert.Equal(t, name, s.get(s.resource(seedCluster, "v1", "secrets", "shoot--local--local"), name).GetName())
}

// testDrift: while the landscape is maintained, drift is repaired, and foreign objects stay.
func testDrift(t *testing.T, s *testStage) {
	c := s.newConverger()
	_, err := c.Apply(testContext(t))
	require.NoError(t, err)
	ctx := testContext(t)
	ended := make(chan error, 1)
	stop := make(chan struct{})
	go func() { ended <- c.Maintain(contextUntilClosed(ctx, stop)) }()

	deployments := s.resource(runtimeCluster, "apps/v1", "deployments", "garden")
	old := s.get(deployments, "vpa-updater")
	s.delete(deployments, "vpa-updater")
	eventually(t, "the Deployment to come back", func() bool {
		o, err := deployments.Get(ctx, "vpa-updater", getOptions)
		return err == nil && o.GetUID() != old.GetUID()
	})
	eventually(t, "the repair to be told", func() bool { return c.isRepaired("Deployment garden/vpa-updater") })

	configMaps := s.resource(runtimeCluster, "v1", "configmaps", "istio-system")
	mesh := fieldAt(s.get(configMaps, "istio"), "data", "mesh")
	s.patch(configMaps, "istio", `{"data":{"mesh":"edited by hand"},"metadata":{"labels":{"somebody":"was-here"}}}`)
	eventually(t, "the ConfigMap to be as it was", func() bool { return fieldAt(s.get(configMaps, "istio"), "data", "mesh") == mesh })
	assert.Equal(t, "was-here", s.get(configMaps, "istio").GetLabels()["somebody"], "a label of somebody else is not ours to take")

	seedDeployments := s.resource(seedCluster, "apps/v1", "deployments", "shoot--local--local")
	s.patch(seedDeployments, "kube-scheduler", `{"spec":{"template":{"spec":{"priorityClassName":"system-node-critical"}}}}`)
	eventually(t, "the field to be as it was", func() bool {
		return fieldAt(s.get(seedDeployments, "kube-scheduler"), "spec", "template", "spec", "priorityClassName") != "system-node-critical"
	})

	managed := s.resource(runtimeCluster, "resources.gardener.cloud/v1alpha1", "managedresources", "garden")
	before, druid := s.get(managed, "etcd-druid"), s.get(deployments, "etcd-druid")
	s.delete(managed, "etcd-druid")
	eventually(t, "the ManagedResource to come back", func() bool {
		o, err := managed.Get(ctx, "etcd-druid", getOptions)
		return err == nil && o.GetUID() != before.GetUID() && o.GetDeletionTimestamp() == nil && len(o.GetFinalizers()) == 1
	})
	eventually(t, "its inventory to be complete", func() bool {
		now, _, _ := unstructured.NestedSlice(s.get(managed, "etcd-druid").Object, "status", "resources")
		was, _, _ := unstructured.NestedSlice(before.Object, "status", "resources")
		return len(now) == len(was) && len(now) > 0
	})
	assert.Equal(t, druid.GetUID(), s.get(deployments, "etcd-druid").GetUID(), "its objects have stayed")

	close(stop)
	require.NoError(t, <-ended)
	c.Close()
	_, c = s.mustApply()
	assert.Empty(t, c.writtenObjects(), "all was repaired")
	s.patch(configMaps, "istio", `{"metadata":{"labels":{"somebody":null}}}`)
}
