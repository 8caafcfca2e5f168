// SPDX-License-Identifier: Apache-2.0

package resourcemanager

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/hack/corpus"
)

// healthScenario is a scenario of upstream's health controller: the status of condition
// ResourcesApplied, the objects and the expected conditions. It expects none if health is not
// judged.
type healthScenario struct {
	class, applied string
	resource       string // apiVersion kind name, of status.resources
	objects        []string
	status         string // status of the last object
	want           []string
}

const (
	somePod        = "spec: {containers: [{name: c, image: c}]}"
	someDeployment = "spec: {replicas: 1, selector: {matchLabels: {test: foo}}, template: {metadata: {labels: {test: foo}}, spec: {containers: [{name: c, image: c}]}}}"
	skipped        = "resources.gardener.cloud/skip-health-check: 'true'"
)

func manifest(head, metadata, rest string) string {
	return "{" + head + ", metadata: {namespace: NS, " + metadata + "}, " + rest + "}"
}

var healthScenarios = map[string]healthScenario{
	"gardener-health-applied-progressing":  {applied: "Progressing"},
	"gardener-health-applied-unknown":      {},
	"gardener-health-foreign-class":        {class: "foo", applied: "True"},
	"gardener-health-foreign-class, ours":  {applied: "True", want: []string{"ResourcesHealthy=True/ResourcesHealthy", "ResourcesProgressing=False/ResourcesRolledOut"}},
	"gardener-health-missing-no-api-group": {applied: "True", resource: "non-existing.k8s.io/v1 ConfigMap non-existing", want: []string{"ResourcesHealthy=False/ConfigMapMissing"}},
	"gardener-health-missing-registered":   {applied: "True", resource: "v1 ConfigMap non-existing", want: []string{"ResourcesHealthy=False/ConfigMapMissing"}},
	"gardener-health-pod-pending": {applied: "True", resource: "v1 Pod p", objects: []string{manifest("apiVersion: v1, kind: Pod", "name: p", somePod)}, status: "{phase: Pending}",
		want: []string{"ResourcesHealthy=False/PodUnhealthy"}},
	"gardener-health-pod-skipped": {applied: "True", resource: "v1 Pod p", objects: []string{manifest("apiVersion: v1, kind: Pod", "name: p, annotations: {"+skipped+"}", somePod)}, status: "{phase: Pending}",
		want: []string{"ResourcesHealthy=True/ResourcesHealthy"}},
	"gardener-progressing-deployment-condition": {applied: "True", resource: "apps/v1 Deployment x", objects: []string{manifest("apiVersion: apps/v1, kind: Deployment", "name: x", someDeployment)},
		status: "{observedGeneration: 42, conditions: [{type: Progressing, status: 'False', reason: ProgressDeadlineExceeded}]}", want: []string{"ResourcesProgressing=True/DeploymentProgressing"}},
	"gardener-progressing-deployment-condition, skipped": {applied: "True", resource: "apps/v1 Deployment x", objects: []string{manifest("apiVersion: apps/v1, kind: Deployment", "name: x, annotations: {"+skipped+"}", someDeployment)},
		status: "{observedGeneration: 42, conditions: [{type: Progressing, status: 'False', reason: ProgressDeadlineExceeded}]}", want: []string{"ResourcesProgressing=False/ResourcesRolledOut"}},
	"gardener-progressing-deployment-old-pods": {applied: "True", resource: "apps/v1 Deployment x",
		objects: []string{manifest("apiVersion: v1, kind: Pod", "name: a, labels: {test: foo}", somePod), manifest("apiVersion: v1, kind: Pod", "name: b, labels: {test: foo}", somePod), manifest("apiVersion: apps/v1, kind: Deployment", "name: x", someDeployment)},
		status:  "{observedGeneration: 42, conditions: [{type: Available, status: 'True'}, {type: Progressing, status: 'True', reason: NewReplicaSetAvailable}]}", want: []string{"ResourcesProgressing=True/DeploymentProgressing"}},
	"gardener-progressing-statefulset": {applied: "True", resource: "apps/v1 StatefulSet x", objects: []string{manifest("apiVersion: apps/v1, kind: StatefulSet", "name: x", strings.Replace(someDeployment, "{replicas", "{serviceName: x, replicas", 1))},
		status: "{observedGeneration: 42, replicas: 1, currentReplicas: 1, updatedReplicas: 0}", want: []string{"ResourcesProgressing=True/StatefulSetProgressing"}},
	"gardener-progressing-alertmanager": {applied: "True", resource: "monitoring.coreos.com/v1 Alertmanager x", objects: []string{manifest("apiVersion: monitoring.coreos.com/v1, kind: Alertmanager", "name: x", "spec: {replicas: 1}")},
		status: "{replicas: 1, updatedReplicas: 0, conditions: [{type: Reconciled, status: 'True', observedGeneration: 42}]}", want: []string{"ResourcesProgressing=True/AlertmanagerProgressing"}},
	"gardener-progressing-certificate": {applied: "True", resource: "cert.gardener.cloud/v1alpha1 Certificate x", objects: []string{manifest("apiVersion: cert.gardener.cloud/v1alpha1, kind: Certificate", "name: x", "spec: {}")},
		status: "{state: Ready, observedGeneration: 0}", want: []string{"ResourcesProgressing=True/CertificateProgressing"}},
}

// scenariosInOtherTests maps upstream's other scenarios to the test that covers each.
var scenariosInOtherTests = map[string]string{
	"gardener-class-foreign": "TestClasses", "gardener-create-plain": "TestClasses", "gardener-create-brotli": "TestAppliesChangesAndRepairsDrift", "gardener-ignore-managedresource": "TestAppliesChangesAndRepairsDrift",
}

// TestHealthScenarios plays upstream's scenarios of the health controller.
func TestHealthScenarios(t *testing.T) {
	definitions := newTestEnv(t)
	for _, definition := range []string{
		"group: monitoring.coreos.com, names: {plural: alertmanagers, singular: alertmanager, kind: Alertmanager}, versions: [{name: v1,",
		"group: cert.gardener.cloud, names: {plural: certificates, singular: certificate, kind: Certificate}, versions: [{name: v1alpha1,",
	} {
		group, plural := strings.TrimSuffix(strings.Fields(definition)[1], ","), strings.TrimSuffix(strings.Fields(definition)[4], ",")
		o := definitions.object("{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: " + plural + "." + group + "}, spec: {scope: Namespaced, " + definition +
			" served: true, storage: true, subresources: {status: {}}, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]}}")
		// an earlier run may still delete it
		definitions.eventually("the definition can be made", func() bool {
			_, err := definitions.resource(o).Create(definitions.ctx, o, metav1.CreateOptions{})
			return err == nil
		})
		t.Cleanup(func() {
			assert.NoError(t, definitions.resource(o).Delete(context.Background(), o.GetName(), metav1.DeleteOptions{}))
		})
	}
	for name, c := range healthScenarios {
		t.Run(name, func(t *testing.T) {
			s := newTestEnv(t)
			m, stop := s.newManagerOfClass("")
			defer stop()
			var last *unstructured.Unstructured
			for _, text := range c.objects {
				o := s.object(text)
				o.SetLabels(mergeLabels(o.GetLabels(), map[string]string{"resources.gardener.cloud/managed-by": "gardener"}))
				s.eventually("the kind is served", func() bool {
					created, err := s.resource(o).Create(s.ctx, o, metav1.CreateOptions{})
					last = created
					return err == nil
				})
			}
			if last != nil {
				status := s.object("{apiVersion: v1, kind: X, status: " + c.status + "}")
				last.Object["status"] = status.Object["status"]
				_, err := s.resource(last).UpdateStatus(s.ctx, last, metav1.UpdateOptions{})
				require.NoError(t, err)
			}
			mr := s.create("{apiVersion: resources.gardener.cloud/v1alpha1, kind: ManagedResource, metadata: {name: x, namespace: NS}, spec: {secretRefs: [{name: x}]" + strings.Replace(", class: "+c.class, ", class: \"\"", "", 1) + "}}")
			if c.applied != "" {
				status := "conditions: [{type: ResourcesApplied, status: '" + c.applied + "', reason: R, message: m, lastTransitionTime: '2026-01-01T00:00:00Z', lastUpdateTime: '2026-01-01T00:00:00Z'}]"
				if parts := strings.Fields(c.resource); len(parts) == 3 {
					status += fmt.Sprintf(", resources: [{apiVersion: %s, kind: %s, name: %s, namespace: NS}]", parts[0], parts[1], parts[2])
				}
				mr.Object["status"] = s.object("{apiVersion: v1, kind: X, status: {" + status + "}}").Object["status"]
				_, err := s.resource(mr).UpdateStatus(s.ctx, mr, metav1.UpdateOptions{})
				require.NoError(t, err)
			}
			s.eventually("the cache knows the status", func() bool {
				live, err := m.options.Source.Get(s.ctx, apply.RefOf(mr))
				_, has := live.Object["status"]
				return err == nil && (has || c.applied == "")
			})
			// the API server takes a moment to serve and list a new kind
			if last != nil {
				s.eventually("the cache knows the object", func() bool {
					o, err := m.options.Target.Get(s.ctx, apply.RefOf(last))
					if err != nil {
						m.options.Target.ResetMapping()
						return false
					}
					return o.Object["status"] != nil
				})
			}
			require.NoError(t, m.checkHealth(s.ctx, types.NamespacedName{Namespace: s.ns, Name: "x"}))
			have := s.conditions("x")
			delete(have, "ResourcesApplied")
			if len(c.want) == 0 {
				assert.Empty(t, have)
			}
			for _, want := range c.want {
				kind, value, _ := strings.Cut(want, "=")
				assert.Equal(t, value, have[kind], "%v", have)
			}
		})
	}
}

func mergeLabels(a, b map[string]string) map[string]string {
	out := maps.Clone(a)
	if out == nil {
		out = map[string]string{}
	}
	maps.Copy(out, b)
	return out
}

// TestEveryScenarioIsCovered checks that scenarios of upstream's resource manager are covered by
// the engine or here.
func TestEveryScenarioIsCovered(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(corpus.Dir(t), "scenarios", "gardener-*.md"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	engine, err := os.ReadFile("../../apply/scenarios_test.go")
	require.NoError(t, err)
	here := slices.Collect(maps.Keys(healthScenarios))
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".md")
		assert.True(t, strings.Contains(string(engine), `"`+name+`"`) || slices.Contains(here, name) || scenariosInOtherTests[name] != "", "scenario %s is not played", name)
	}
}

// TestDroppedFieldsInTheCondition: the condition names the path of a field that the API server
// drops, also while nothing changes.
func TestDroppedFieldsInTheCondition(t *testing.T) {
	s := newTestEnv(t)
	s.createDataSecret(map[string]any{"a.yaml": `
apiVersion: apps/v1
kind: Deployment
metadata: {name: d, namespace: NS}
spec: {replicas: 0, selector: {matchLabels: {a: d}}, template: {metadata: {labels: {a: d}}, spec: {schedulingGroup: {podGroupName: g}, containers: [{name: c, image: i}]}}}
`})
	s.create(`{apiVersion: resources.gardener.cloud/v1alpha1, kind: ManagedResource, metadata: {name: dropping, namespace: NS}, spec: {secretRefs: [{name: data}]}}`)
	_, stop := s.startClass("")
	defer stop()
	message := func() string {
		o, err := s.get("ManagedResource", "dropping")
		require.NoError(t, err)
		conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
		for _, c := range conditions {
			if m, _ := c.(map[string]any); m["type"] == "ResourcesApplied" {
				text, _ := m["message"].(string)
				return text
			}
		}
		return ""
	}
	want := "Deployment " + s.ns + "/d (spec.template.spec.schedulingGroup)."
	s.eventually("the condition names the field", func() bool { return strings.HasSuffix(message(), want) })
	s.waitForConditions("dropping", "ResourcesApplied=True/FieldsDropped")
	s.patch("ManagedResource", "dropping", "spec: {keepObjects: true}")
	s.eventually("the change is observed", func() bool {
		o, err := s.get("ManagedResource", "dropping")
		require.NoError(t, err)
		seen, _, _ := unstructured.NestedInt64(o.Object, "status", "observedGeneration")
		return seen == o.GetGeneration() && strings.HasSuffix(message(), want)
	})
}
