package resourcemanager

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	resourcesv1alpha1 "github.com/pergola-dev/pergola/api/resources/v1alpha1"
)

// managersOf an object's fields, by way of apply.
func (s *site) managersOf(kind, name string) []string {
	s.Helper()
	o, err := s.get(kind, name)
	require.NoError(s, err)
	var out []string
	for _, m := range o.GetManagedFields() {
		if m.Operation == metav1.ManagedFieldsOperationApply {
			out = append(out, m.Manager)
		}
	}
	return out
}

// classed is managed, of a class.
func (s *site) classed(name, class, spec string, manifests ...string) {
	s.Helper()
	s.contents(name, manifests...)
	s.create("{apiVersion: resources.gardener.cloud/v1alpha1, kind: ManagedResource, metadata: {name: " + name + ", namespace: NS}, spec: {class: " + class + ", " + spec + "secretRefs: [{name: " + name + "}]}}")
}

// TestClassesThatWantOneObject: each class applies as a field manager of its own, so nothing goes to and fro between two; the
// second one names the first, and gets the object when that gives it up.
func TestClassesThatWantOneObject(t *testing.T) {
	s := newSite(t)
	_, stop := s.start("")
	defer stop()
	_, stopOther := s.start("mine")
	defer stopOther()
	s.managed("first", configMap("shared"))
	s.becomes("first", good...)
	assert.Equal(t, []string{"pergola"}, s.managersOf("ConfigMap", "shared"))

	s.classed("second", "mine", "", strings.ReplaceAll(configMap("shared"), "a: b", "a: c"), configMap("own"))
	s.becomes("second", "ResourcesApplied=False/ApplyFailed")
	assert.Contains(t, s.message("second", "ResourcesApplied"), "set "+s.ns+"/first declares this object as well")
	assert.Equal(t, []string{"pergola/mine"}, s.managersOf("ConfigMap", "own"), "the rest is applied")
	s.becomes("first", good...)

	s.contents("first", configMap("else"))
	s.eventually("the other class has it", func() bool {
		o, err := s.get("ConfigMap", "shared")
		return err == nil && o.GetAnnotations()[resourcesv1alpha1.Origin] == s.ns+"/second"
	})
	s.becomes("second", good...)
	assert.Equal(t, []string{"pergola/mine"}, s.managersOf("ConfigMap", "shared"))
}

// TestClassChangeKeepsObjects: what the former class leaves where it is becomes that of the new one, whole.
func TestClassChangeKeepsObjects(t *testing.T) {
	s := newSite(t)
	_, stop := s.start("")
	defer stop()
	_, stopOther := s.start("mine")
	defer stopOther()
	s.contents("thing", strings.ReplaceAll(configMap("one"), "a: b", "a: b, stale: x"))
	s.create("{apiVersion: resources.gardener.cloud/v1alpha1, kind: ManagedResource, metadata: {name: thing, namespace: NS}, spec: {keepObjects: true, secretRefs: [{name: thing}]}}")
	s.becomes("thing", good...)
	before, err := s.get("ConfigMap", "one")
	require.NoError(t, err)
	s.contents("thing", configMap("one"))
	s.patch("ManagedResource", "thing", `{"spec": {"class": "mine"}}`)
	s.eventually("the new class has it", func() bool {
		managers := s.managersOf("ConfigMap", "one")
		return len(managers) == 1 && managers[0] == "pergola/mine"
	})
	s.becomes("thing", good...)
	after, err := s.get("ConfigMap", "one")
	require.NoError(t, err)
	assert.Equal(t, before.GetUID(), after.GetUID(), "it was not made anew")
	assert.NotContains(t, after.Object["data"], "stale")
}

// TestAutoscalerThatGoes: replicas are the autoscaler's as long as there is one, and those that are declared again at once when it
// is gone.
func TestAutoscalerThatGoes(t *testing.T) {
	s := newSite(t)
	_, stop := s.start("")
	defer stop()
	s.managed("thing", "{apiVersion: apps/v1, kind: Deployment, metadata: {name: app, namespace: NS}, spec: {replicas: 2, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: c}]}}}}")
	replicas := func() any {
		o, err := s.get("Deployment", "app")
		if err != nil {
			return nil
		}
		return o.Object["spec"].(map[string]any)["replicas"]
	}
	s.eventually("it is applied", func() bool { return replicas() == int64(2) })
	s.becomes("thing", "ResourcesApplied=True/ApplySucceeded")
	hpa := s.create("{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: app, namespace: NS}, spec: {minReplicas: 3, maxReplicas: 5, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: app}}}")
	s.eventually("the autoscaler is known", func() bool {
		mr, err := s.get("ManagedResource", "thing")
		if err != nil {
			return false
		}
		text, err := mr.MarshalJSON()
		return err == nil && strings.Contains(string(text), `"replicas"`)
	})
	s.patch("Deployment", "app", `{"spec": {"replicas": 4}}`)
	s.becomes("thing", "ResourcesApplied=True/ApplySucceeded")
	assert.Equal(t, int64(4), replicas())
	require.NoError(t, s.resource(hpa).Delete(s.ctx, "app", metav1.DeleteOptions{}))
	s.eventually("the declared number is back", func() bool { return replicas() == int64(2) })
}
