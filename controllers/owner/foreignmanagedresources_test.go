// SPDX-License-Identifier: Apache-2.0

package owner

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	"github.com/pergola-dev/pergola/api/crds"
	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/render"
)

// TestConditionsOfAManagedResource checks the conditions that a ManagedResource counts for
// (reference §7).
func TestConditionsOfAManagedResource(t *testing.T) {
	for name, c := range map[string]struct {
		class, label string
		want         []string
	}{
		"of the runtime cluster":                   {"seed", "", []string{conditionRuntimeHealthy}},
		"of the runtime cluster, labelled so":      {"seed", conditionRuntimeHealthy, []string{conditionRuntimeHealthy}},
		"of the virtual garden's control plane":    {"seed", conditionVirtualHealthy, []string{conditionVirtualHealthy}},
		"observability":                            {"seed", conditionObservabilityHealthy, []string{conditionObservabilityHealthy}},
		"in the virtual garden":                    {"", "", []string{conditionVirtualHealthy}},
		"in the virtual garden, labelled so":       {"", conditionVirtualHealthy, []string{conditionVirtualHealthy}},
		"in the virtual garden, for observability": {"", conditionObservabilityHealthy, []string{conditionVirtualHealthy, conditionObservabilityHealthy}},
		"in the virtual garden, labelled as not":   {"", conditionRuntimeHealthy, []string{conditionVirtualHealthy}},
		"a condition of somebody else":             {"seed", "SystemComponentsHealthy", nil},
	} {
		t.Run(name, func(t *testing.T) {
			mr := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{}}}
			if c.class != "" {
				mr.Object["spec"] = map[string]any{"class": c.class}
			}
			if c.label != "" {
				mr.SetLabels(map[string]string{conditionTypeLabel: c.label})
			}
			assert.Equal(t, c.want, conditionsOfResource(mr))
		})
	}
}

func TestConditionsOfABundle(t *testing.T) {
	of := func(cluster, condition string, direct bool) []string {
		return conditionsOf(render.Bundle{Cluster: cluster, Condition: condition, Delivery: render.Delivery{Direct: direct}})
	}
	assert.Empty(t, of(render.ClusterRuntime, "", false))
	assert.Equal(t, []string{conditionObservabilityHealthy}, of(render.ClusterRuntime, conditionObservabilityHealthy, false))
	assert.Equal(t, []string{conditionObservabilityHealthy, conditionVirtualHealthy}, of(render.ClusterVirtual, conditionObservabilityHealthy, false))
	assert.Equal(t, []string{conditionVirtualHealthy}, of(render.ClusterVirtual, conditionVirtualHealthy, false))
	assert.Equal(t, []string{"ControlPlaneHealthy"}, of(render.ClusterShoot, "ControlPlaneHealthy", false))
}

// newGarden returns a site whose owner is a Garden.
func newGarden(t *testing.T) *testSite {
	t.Helper()
	s := newSite(t)
	_, err := envtest.InstallCRDs(server.config, envtest.CRDInstallOptions{CRDs: []*apiextensionsv1.CustomResourceDefinition{crds.Get("operator.gardener.cloud", "Garden")}})
	require.NoError(t, err)
	o := s.run.owner
	o.Input.Owner.Kind = Garden
	o.Ref = apply.Ref{APIVersion: "operator.gardener.cloud/v1alpha1", Kind: "Garden", Name: s.ns}
	mapping, err := o.ObjectCluster.Mapping(s.ctx, o.Ref.GVK())
	require.NoError(t, err)
	gardens := s.api.Resource(mapping.Resource)
	_, err = gardens.Create(s.ctx, s.object(`{apiVersion: operator.gardener.cloud/v1alpha1, kind: Garden, metadata: {name: NS}, spec: {
		runtimeCluster: {provider: {zones: [a]}, networking: {pods: [10.1.0.0/16], services: [10.2.0.0/16]}, ingress: {controller: {kind: nginx}, domains: [{name: ingress.example.org}]}},
		virtualCluster: {dns: {domains: [{name: virtual.example.org}]}, kubernetes: {version: 1.34.1}, gardener: {clusterIdentity: x},
		networking: {services: [10.3.0.0/16]}, maintenance: {timeWindow: {begin: 220000+0100, end: 230000+0100}}}}}`), metav1.CreateOptions{})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, gardens.Delete(context.Background(), s.ns, metav1.DeleteOptions{})) })
	return s
}

// careConditions returns the conditions as "Status Reason" by type.
func (s *testSite) careConditions() map[string]string {
	s.Helper()
	conditions, err := s.run.reconciler.care(s.ctx, s.run.owner)
	require.NoError(s, err)
	out := map[string]string{}
	for _, c := range conditions {
		out[string(c.Type)] = strings.TrimSpace(string(c.Status) + " " + c.Reason)
	}
	return out
}

// TestConditionsOfAGarden checks that a broken component turns only its own condition False, with
// upstream's reason, and that the condition recovers.
func TestConditionsOfAGarden(t *testing.T) {
	s := newGarden(t)
	s.installKind("monitoring.coreos.com/v1", "Prometheus", "prometheuses")
	s.installKind("monitoring.coreos.com/v1", "Alertmanager", "alertmanagers")
	s.installKind("druid.gardener.cloud/v1alpha1", "Etcd", "etcds")
	o := s.run.owner
	o.Local.ResetMapping()
	o.Target = o.Local
	const (
		workload = `spec: {replicas: 1, selector: {matchLabels: {app: APP}}, template: {metadata: {labels: {app: APP}}, spec: {containers: [{name: c, image: i}]}}}`
		server   = `status: {replicas: 1, updatedReplicas: 1, availableReplicas: 1, conditions: [
			{type: Available, status: "True", observedGeneration: 1}, {type: Reconciled, status: "True", observedGeneration: 1}]}`
		serverDown = `status: {replicas: 1, updatedReplicas: 1, availableReplicas: 0, conditions: [
			{type: Available, status: "False", observedGeneration: 1, message: no pod}, {type: Reconciled, status: "True", observedGeneration: 1}]}`
		deployed = `status: {observedGeneration: 1, replicas: 1, updatedReplicas: 1, readyReplicas: 1, availableReplicas: 1, conditions: [
			{type: Available, status: "True", lastTransitionTime: "2026-01-01T00:00:00Z"}, {type: Progressing, status: "True", reason: NewReplicaSetAvailable, lastTransitionTime: "2026-01-01T00:00:00Z"}]}`
		deployedNot = `status: {observedGeneration: 1, replicas: 1, updatedReplicas: 1, unavailableReplicas: 1, conditions: [
			{type: Available, status: "False", lastTransitionTime: "2026-01-01T00:00:00Z"}, {type: Progressing, status: "True", reason: NewReplicaSetAvailable, lastTransitionTime: "2026-01-01T00:00:00Z"}]}`
	)
	cases := []struct {
		bundle, condition string
		direct            bool
		object, well, not string
		reason            string
	}{
		{"prometheus-garden", conditionObservabilityHealthy, false, `{apiVersion: monitoring.coreos.com/v1, kind: Prometheus, metadata: {name: garden, namespace: NS}, spec: {replicas: 1}}`, server, serverDown, "PrometheusUnhealthy"},
		{"alertmanager-garden", conditionObservabilityHealthy, false, `{apiVersion: monitoring.coreos.com/v1, kind: Alertmanager, metadata: {name: garden, namespace: NS}, spec: {replicas: 1}}`, server, serverDown, "AlertmanagerUnhealthy"},
		{"vali", conditionObservabilityHealthy, false, `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: vali, namespace: NS}, ` + workload + `}`,
			`status: {observedGeneration: 1, replicas: 1, readyReplicas: 1, updatedReplicas: 1, currentReplicas: 1}`, `status: {observedGeneration: 1, replicas: 1, readyReplicas: 0, updatedReplicas: 1}`, "StatefulSetUnhealthy"},
		// A Deployment in a ManagedResource is rolled out with its last pod, and no pods run here.
		{"virtual-garden-istio", conditionRuntimeHealthy, false, `{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: gateway, namespace: NS}, spec: {selector: {matchLabels: {app: APP}}, template: {metadata: {labels: {app: APP}}, spec: {containers: [{name: c, image: i}]}}}}`,
			`status: {observedGeneration: 1, currentNumberScheduled: 1, desiredNumberScheduled: 1, numberMisscheduled: 0, numberReady: 1, updatedNumberScheduled: 1}`,
			`status: {observedGeneration: 1, currentNumberScheduled: 0, desiredNumberScheduled: 1, numberMisscheduled: 0, numberReady: 0, updatedNumberScheduled: 1}`, "DaemonSetUnhealthy"},
		{"kube-apiserver", conditionVirtualHealthy, true, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: virtual-garden-kube-apiserver, namespace: NS}, ` + workload + `}`, deployed, deployedNot, "DeploymentUnhealthy"},
		{"etcd-main", conditionVirtualHealthy, true, `{apiVersion: druid.gardener.cloud/v1alpha1, kind: Etcd, metadata: {name: virtual-garden-etcd-main, namespace: NS}, spec: {replicas: 1}}`,
			`status: {ready: true, observedGeneration: 1}`, `status: {ready: false, observedGeneration: 1}`, "EtcdUnhealthy"},
	}
	all := make([]render.Bundle, 0, len(cases))
	for _, c := range cases {
		object := s.object(strings.ReplaceAll(c.object, "APP", c.bundle))
		b := s.bundle(c.direct, object)
		b.Name, b.Cluster, b.Condition = c.bundle, render.ClusterRuntime, c.condition
		s.mustApply(b)
		s.setStatus(object, c.well)
		all = append(all, b)
	}
	o.state.bundles = all
	well := map[string]string{
		conditionRuntimeHealthy: "True RuntimeComponentsRunning", conditionVirtualHealthy: "True VirtualComponentsRunning", conditionObservabilityHealthy: "True ObservabilityComponentsRunning",
		"VirtualGardenAPIServerAvailable": "True HealthzRequestSucceeded",
	}
	s.waitForConditions(well)
	for _, c := range cases {
		t.Run(c.bundle, func(t *testing.T) {
			object := s.object(c.object)
			s.setStatus(object, c.not)
			want := map[string]string{}
			for name, is := range well {
				want[name] = is
			}
			want[c.condition] = "False " + c.reason
			s.waitForConditions(want)
			s.setStatus(object, c.well)
			s.waitForConditions(well)
		})
	}
}

// TestEveryManagedResourceOfAGardenCounts checks that a ManagedResource without a component of ours
// counts as in upstream, except in other namespaces.
func TestEveryManagedResourceOfAGardenCounts(t *testing.T) {
	s := newGarden(t)
	o := s.run.owner
	b := s.bundle(true, s.configMap("a"))
	s.mustApply(b)
	var bundles []render.Bundle
	for _, name := range []string{conditionRuntimeHealthy, conditionVirtualHealthy, conditionObservabilityHealthy} {
		b.Condition = name
		bundles = append(bundles, b)
	}
	o.state.bundles = bundles
	well := map[string]string{
		conditionRuntimeHealthy: "True RuntimeComponentsRunning", conditionVirtualHealthy: "True VirtualComponentsRunning", conditionObservabilityHealthy: "True ObservabilityComponentsRunning",
	}
	s.waitForConditions(well)
	_, err := s.resource("namespaces", "").Create(s.ctx, s.object("{apiVersion: v1, kind: Namespace, metadata: {name: istio-system}}"), metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		require.NoError(t, err)
	}
	applied := `{type: ResourcesApplied, status: "True", reason: ApplySucceeded, message: m, lastTransitionTime: "2026-01-01T00:00:00Z", lastUpdateTime: "2026-01-01T00:00:00Z"}`
	rolledOut := `{type: ResourcesProgressing, status: "False", reason: ResourcesRolledOut, message: m, lastTransitionTime: "2026-01-01T00:00:00Z", lastUpdateTime: "2026-01-01T00:00:00Z"}`
	healthy := func(status, reason string) string {
		return `status: {observedGeneration: 1, conditions: [` + applied + `, ` + rolledOut + `, {type: ResourcesHealthy, status: "` + status + `", reason: ` + reason +
			`, message: what it is, lastTransitionTime: "2026-01-01T00:00:00Z", lastUpdateTime: "2026-01-01T00:00:00Z"}]}`
	}
	for name, c := range map[string]struct {
		namespace, class, label string
		fall                    []string
	}{
		"an extension":                    {"garden", "class: seed, ", "", []string{conditionRuntimeHealthy}},
		"of the gateway":                  {"istio-system", "class: seed, ", "", []string{conditionRuntimeHealthy}},
		"in the virtual garden":           {"garden", "", "", []string{conditionVirtualHealthy}},
		"its monitoring in the garden":    {"garden", "", conditionObservabilityHealthy, []string{conditionVirtualHealthy, conditionObservabilityHealthy}},
		"monitoring of the runtime":       {"garden", "class: seed, ", conditionObservabilityHealthy, []string{conditionObservabilityHealthy}},
		"in a namespace of somebody else": {s.ns, "class: seed, ", "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			mr := s.object(`{apiVersion: resources.gardener.cloud/v1alpha1, kind: ManagedResource, metadata: {name: other-NS, namespace: ` + c.namespace + `}, spec: {` + c.class + `secretRefs: [{name: x}]}}`)
			if c.label != "" {
				mr.SetLabels(map[string]string{conditionTypeLabel: c.label})
			}
			_, err := s.resource("managedresources", c.namespace).Create(s.ctx, mr, metav1.CreateOptions{})
			require.NoError(t, err)
			t.Cleanup(func() {
				assert.NoError(t, s.resource("managedresources", c.namespace).Delete(context.Background(), mr.GetName(), metav1.DeleteOptions{}))
			})
			falling := func(reason string) map[string]string {
				out := map[string]string{}
				for name, is := range well {
					out[name] = is
				}
				for _, name := range c.fall {
					out[name] = "False " + reason
				}
				return out
			}
			s.waitForConditions(falling("OutdatedStatus"))
			s.setStatus(mr, healthy("False", "DeploymentUnhealthy"))
			s.waitForConditions(falling("DeploymentUnhealthy"))
			conditions, err := s.run.reconciler.care(s.ctx, o)
			require.NoError(t, err)
			for _, condition := range conditions {
				if condition.Status == gardencorev1beta1.ConditionFalse {
					assert.Contains(t, condition.Message, "ManagedResource "+c.namespace+"/"+mr.GetName())
				}
			}
			s.setStatus(mr, healthy("True", "ResourcesHealthy"))
			s.waitForConditions(well)
		})
	}
}

// installKind installs a CRD that preserves all fields, with a status.
func (s *testSite) installKind(apiVersion, kind, plural string) {
	s.Helper()
	group, version, _ := strings.Cut(apiVersion, "/")
	open := true
	anything := &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &open}}
	_, err := envtest.InstallCRDs(server.config, envtest.CRDInstallOptions{CRDs: []*apiextensionsv1.CustomResourceDefinition{{
		ObjectMeta: metav1.ObjectMeta{Name: plural + "." + group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{Group: group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: kind, Plural: plural, Singular: strings.ToLower(kind), ListKind: kind + "List"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: version, Served: true, Storage: true, Schema: anything,
				Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}}}}},
	}}})
	require.NoError(s, err)
}

// setStatus writes the status of an object, as its controller would.
func (s *testSite) setStatus(object *unstructured.Unstructured, text string) {
	s.Helper()
	mapping, err := s.run.owner.Local.Mapping(s.ctx, object.GroupVersionKind())
	require.NoError(s, err)
	var at dynamic.ResourceInterface = s.api.Resource(mapping.Resource).Namespace(object.GetNamespace())
	live, err := at.Get(s.ctx, object.GetName(), metav1.GetOptions{})
	require.NoError(s, err)
	var written map[string]any
	require.NoError(s, yaml.Unmarshal([]byte(text), &written))
	live.Object["status"] = written["status"]
	_, err = at.UpdateStatus(s.ctx, live, metav1.UpdateOptions{})
	require.NoError(s, err)
}

// waitForConditions waits for these conditions.
func (s *testSite) waitForConditions(want map[string]string) {
	s.Helper()
	got := map[string]string{}
	if !assert.Eventually(s, func() bool { got = s.careConditions(); return assert.ObjectsAreEqual(want, got) }, 20*time.Second, 20*time.Millisecond) {
		require.Equal(s, want, got)
	}
}
