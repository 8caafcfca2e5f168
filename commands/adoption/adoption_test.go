// SPDX-License-Identifier: Apache-2.0

package adoption

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	resourcesv1alpha1 "github.com/pergola-dev/pergola/api/resources/v1alpha1"
	"github.com/pergola-dev/pergola/components"
	"github.com/pergola-dev/pergola/controllers/landscape"
	"github.com/pergola-dev/pergola/controllers/resourcemanager/tokenrequestor"
)

// imageOverrides replaces images of upstream: only these Deployments have to restart.
const imageOverrides = `
  images:
  - {name: gardener-resource-manager, repository: registry.example.org/pergola, tag: 0.2.0}
  - {name: gardener-controller-manager, repository: registry.example.org/pergola, tag: 0.2.0}
`

var restartedDeployments = []string{"Deployment garden/gardener-controller-manager", "Deployment garden/gardener-resource-manager", "Deployment garden/virtual-garden-gardener-resource-manager"}

// TestLandscapeOfUpstream moves a landscape with the whole catalogue from upstream's controllers to
// Pergola.
func TestLandscapeOfUpstream(t *testing.T) {
	s := newStage(t)
	_, err := s.apply(0)
	require.NoError(t, err)
	for _, cluster := range []string{landscape.Runtime, landscape.Virtual} {
		s.imitateUpstream(cluster)
	}
	s.deployGardenerOperator()
	s.write("landscape.yaml", strings.TrimRight(s.read("landscape.yaml"), "\n")+imageOverrides)
	for _, step := range []struct {
		name string
		test func(*stage)
	}{
		{"a check says what restarts, and writes nothing", testCheck},
		{"what blocks keeps it from being stopped", testBlocked},
		{"nothing is stopped without approval", testUnapproved},
		{"controllers are stopped in order, and started again", testStopAndUndo},
		{"an apply restarts nothing else, and nothing is left to others", testTakeover},
		{"the way back leaves to gardener-operator what Pergola has applied", testUndoAfterApply},
	} {
		if !t.Run(step.name, func(t *testing.T) { step.test(s.withT(t)) }) {
			t.Errorf("what follows builds on %q", step.name)
		}
	}
}

// adopter is one run of `pergola adopt`.
func (s *stage) adopter() (a *Adopter, steps *[]string) {
	s.Helper()
	steps = &[]string{}
	return &Adopter{
		Converger: s.newConverger(0), Landscape: "local", Catalogue: components.FS, Clock: clock.RealClock{}, PollInterval: 50 * time.Millisecond,
		OnStep: func(step string) { *steps = append(*steps, step) },
	}, steps
}

func (s *stage) check() *Report {
	s.Helper()
	a, _ := s.adopter()
	defer a.Converger.Close()
	report, err := a.Check(s.context())
	require.NoError(s, err)
	return report
}

func (s *stage) get(cluster string, resource schema.GroupVersionResource, namespace, name string) *unstructured.Unstructured {
	s.Helper()
	o, err := s.api[cluster].Resource(resource).Namespace(namespace).Get(s.context(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	require.NoError(s, err)
	return o
}

func (s *stage) replicas(name string) int64 {
	s.Helper()
	return replicasOf(s.get(landscape.Runtime, deployments, "garden", name))
}

// findingObjects returns the objects of findings.
func findingObjects(found []Finding) []string {
	var out []string
	for _, f := range found {
		out = append(out, f.Objects...)
	}
	slices.Sort(out)
	return out
}

// allObjects returns all objects of both clusters.
func (s *stage) allObjects() map[string]map[string]clusterObject {
	s.Helper()
	return map[string]map[string]clusterObject{landscape.Runtime: s.clusterObjects(landscape.Runtime), landscape.Virtual: s.clusterObjects(landscape.Virtual)}
}

// assertUnchanged checks that no object was created, deleted or changed. It ignores what
// controllers of the clusters write: the status of most kinds, and some kinds entirely.
func (s *stage) assertUnchanged(before map[string]map[string]clusterObject) {
	s.Helper()
	for cluster, now := range s.allObjects() {
		for name, o := range before[cluster] {
			if after, there := now[name]; o.isWrittenByCluster() {
				continue
			} else if assert.True(s, there, "%s: %s is gone", cluster, name) {
				assert.Equal(s, comparableText(o), comparableText(after), "%s: %s", cluster, name)
			}
		}
		for name, o := range now {
			assert.True(s, before[cluster][name].Unstructured != nil || o.isWrittenByCluster(), "%s: %s is new", cluster, name)
		}
	}
}

// comparableText returns an object without its status, and with the managedFields of Pergola only.
func comparableText(o clusterObject) string {
	out := o.DeepCopy()
	out.SetResourceVersion("")
	out.SetManagedFields(slices.DeleteFunc(out.GetManagedFields(), func(m metav1.ManagedFieldsEntry) bool { return !strings.HasPrefix(m.Manager, "pergola") }))
	delete(out.Object, "status")
	text, err := json.MarshalIndent(out.Object, "", " ")
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// isWrittenByCluster reports whether controllers of the clusters write the kind all the time.
func (o clusterObject) isWrittenByCluster() bool {
	return slices.Contains([]string{"Lease", "Deployment", "StatefulSet", "DaemonSet", "PersistentVolume", "PersistentVolumeClaim", "APIService", "FlowSchema", "PriorityLevelConfiguration"}, o.GetKind())
}

// unregisteredWebhooks are webhooks that are not registered if pods are played, because nothing
// answers them.
var unregisteredWebhooks = []string{
	"MutatingWebhookConfiguration gardener-admission-controller", "ValidatingWebhookConfiguration gardener-admission-controller",
	"MutatingWebhookConfiguration gardener-resource-manager",
}

// isUnregistered reports whether a finding is only about unregistered webhooks.
func isUnregistered(f Finding) bool {
	return len(f.Objects) > 0 && !slices.ContainsFunc(f.Objects, func(object string) bool { return !slices.Contains(unregisteredWebhooks, object) })
}

func testCheck(s *stage) {
	before := s.allObjects()
	report := s.check()
	for _, f := range report.Findings {
		if f.Level != LevelNoAction {
			s.Logf("%s %s %s %v: %s", f.Level, f.Area, f.Cluster, f.Objects, f.Text)
		}
	}
	s.assertUnchanged(before)
	assert.Empty(s, report.Problems)
	assert.Empty(s, report.ByLevel(LevelBlocks))
	assert.Equal(s, restartedDeployments, findingObjects(report.ByLevel(LevelRestarts)))
	for _, f := range report.ByLevel(LevelRestarts) {
		require.Len(s, f.Fields, 1, "only what restarts them: %v", f.Fields)
		assert.Contains(s, f.Fields[0].Path, ".image")
		assert.Equal(s, "registry.example.org/pergola:0.2.0", f.Fields[0].New)
	}
	for _, f := range report.ByLevel(LevelChanges) {
		if isUnregistered(f) {
			continue
		}
		assert.Equal(s, AreaControllers, f.Area, "%v", f)
	}
	var stops []string
	for _, c := range report.Controllers {
		if c.MustStop {
			stops = append(stops, c.Name)
		}
	}
	assert.Equal(s, []string{"gardener-operator", "gardener-controller-manager", "virtual-garden-gardener-resource-manager", "gardener-resource-manager"}, stops,
		"the scheduler is the same program, and goes on")
	assert.False(s, report.IsClean())
	assert.False(s, report.HasStopped)
}

func testBlocked(s *stage) {
	garden := "garden/garden.yaml"
	was := s.read(garden)
	defer s.write(garden, was)
	s.write(garden, strings.Replace(was, "clusterIdentity: local", "clusterIdentity: another", 1))
	require.NotEqual(s, was, s.read(garden))
	a, _ := s.adopter()
	defer a.Converger.Close()
	stopping, err := a.Stop(s.context(), "")
	require.ErrorContains(s, err, "nothing was stopped: ")
	require.ErrorContains(s, err, "spec.virtualCluster.gardener.clusterIdentity")
	_, err = a.Stop(s.context(), stopping.Approval)
	require.ErrorContains(s, err, "nothing was stopped: ")
	assert.Equal(s, int64(2), s.replicas("gardener-operator"))
}

func testUnapproved(s *stage) {
	a, steps := s.adopter()
	defer a.Converger.Close()
	for _, approval := range []string{"0123456789abcdef"} {
		stopping, err := a.Stop(s.context(), approval)
		require.NoError(s, err)
		assert.False(s, stopping.IsDone)
		assert.Len(s, stopping.Controllers, 4)
	}
	assert.Empty(s, *steps)
	assert.Equal(s, int64(2), s.replicas("gardener-operator"))
	assert.Nil(s, s.get(landscape.Runtime, configMaps, "garden", recordName))
}

// readAdoptionRecord returns the record of stopped controllers.
func (s *stage) readAdoptionRecord() *adoptionRecord {
	s.Helper()
	a, _ := s.adopter()
	defer a.Converger.Close()
	r, err := a.readRecord(s.context(), landscape.Runtime)
	require.NoError(s, err)
	return r
}

// plannedContext returns a context after a plan, which some checks need.
func (s *stage) plannedContext(a *Adopter) context.Context {
	s.Helper()
	ctx := s.context()
	_, err := a.Converger.Plan(ctx)
	require.NoError(s, err)
	return ctx
}

// stopAll stops all controllers and returns the steps.
func (s *stage) stopAll() []string {
	s.Helper()
	a, steps := s.adopter()
	defer a.Converger.Close()
	found, err := a.controllers(s.plannedContext(a))
	require.NoError(s, err)
	approval := approvalOf(slices.DeleteFunc(found, func(c Controller) bool { return !c.MustStop }))
	s.holdLease("gardener-operator-leader-election", "gardener-operator-7d4b9-x_0815", 1)
	began := time.Now()
	stopping, err := a.Stop(s.context(), approval)
	require.NoError(s, err)
	assert.True(s, stopping.IsDone)
	assert.Greater(s, time.Since(began), time.Second, "the lease was waited for")
	return *steps
}

func testStopAndUndo(s *stage) {
	scheduler := s.replicas("gardener-scheduler")
	manager := s.replicas("gardener-controller-manager")
	require.Positive(s, manager)
	var stoppedOnes []string
	for _, step := range s.stopAll() {
		if name, is := strings.CutSuffix(step, ": stopped"); is {
			stoppedOnes = append(stoppedOnes, strings.TrimPrefix(name, "runtime: Deployment garden/"))
		}
	}
	assert.Equal(s, []string{"gardener-operator", "gardener-controller-manager", "virtual-garden-gardener-resource-manager", "gardener-resource-manager"}, stoppedOnes)
	for _, name := range stoppedOnes {
		assert.Zero(s, s.replicas(name), name)
	}
	assert.Equal(s, scheduler, s.replicas("gardener-scheduler"))
	assert.Nil(s, s.get(landscape.Runtime, validatingWebhooks, "", "gardener-operator"), "nobody answers it")
	assert.NotNil(s, s.get(landscape.Runtime, validatingWebhooks, "", "somebody"))
	var ignored string
	for _, one := range s.readAdoptionRecord().Stopped {
		ignored += one.IgnoredManagedResource
	}
	assert.Equal(s, "garden/gardener-controller-manager-runtime", ignored, "a resource manager would have put it back")
	assert.NotContains(s, s.get(landscape.Runtime, managedResourcesResource, "garden", "gardener-controller-manager-runtime").GetAnnotations(), "resources.gardener.cloud/ignore", "by now it is stopped, too")
	assert.True(s, s.check().HasStopped)

	a, _ := s.adopter()
	s.holdLease("gardener-operator-leader-election", "host_pergola-operator_1", 60)
	_, err := a.Undo(s.context())
	require.ErrorAs(s, err, new(*PergolaActiveError))
	require.ErrorContains(s, err, "stop Pergola first; if that is its operator")
	require.ErrorContains(s, err, "kubectl ")
	s.holdLease("gardener-operator-leader-election", "", 1)
	started, err := a.Undo(s.context())
	a.Converger.Close()
	require.NoError(s, err)
	for i, one := range started {
		started[i] = strings.TrimPrefix(one, "runtime: Deployment garden/")
	}
	slices.Reverse(stoppedOnes)
	assert.Equal(s, stoppedOnes, started)
	assert.Equal(s, int64(2), s.replicas("gardener-operator"))
	assert.Equal(s, manager, s.replicas("gardener-controller-manager"))
	assert.NotNil(s, s.get(landscape.Runtime, validatingWebhooks, "", "gardener-operator"))
	assert.NotContains(s, s.get(landscape.Runtime, managedResourcesResource, "garden", "gardener-controller-manager-runtime").GetAnnotations(), "resources.gardener.cloud/ignore")
	assert.Nil(s, s.get(landscape.Runtime, configMaps, "garden", recordName))
	assert.False(s, s.check().HasStopped)
}

// previousManagers are the field managers that hand their fields over.
var previousManagers = []string{"gardener-operator", "gardener-resource-manager", "gardenlet", "pergola-adopt"}

// extensionRequestFields are the fields of an extension request, which keep that manager by design
// (docs/explanation/architecture.md).
const extensionRequestFields = `{"f:metadata":{"f:annotations":{"f:extensions.pergola.dev/requested":{},"f:gardener.cloud/timestamp":{}}}}`

// upstreamNamedFields are the fields that Pergola writes as upstream's managers: requests, and the
// Garden's annotation about its generic kubeconfig.
var upstreamNamedFields = []string{extensionRequestFields, `{"f:metadata":{"f:annotations":{"f:generic-token-kubeconfig.secret.gardener.cloud/name":{}}}}`}

func testTakeover(s *stage) {
	said := s.check()
	s.stopAll()
	assert.NotEmpty(s, s.stopAll(), "it can be repeated, and waits again")
	s.assertTakeover(said)
	assert.Equal(s, restartedDeployments, findingObjects(said.ByLevel(LevelRestarts)))
	for _, name := range restartedDeployments {
		assert.Positive(s, s.replicas(strings.TrimPrefix(name, "Deployment garden/")), name)
	}
	assert.NotContains(s, s.get(landscape.Runtime, managedResourcesResource, "garden", "gardener-controller-manager-runtime").GetAnnotations(), "resources.gardener.cloud/ignore")
}

// assertTakeover applies after everything is stopped. Only pods that the check announced restart,
// only announced objects are deleted, and only announced changes are made.
func (s *stage) assertTakeover(said *Report) {
	s.Helper()
	before := s.allObjects()
	_, err := s.apply(0)
	for deadline := time.Now().Add(runTimeout); err != nil && strings.Contains(err.Error(), "the lease was lost") && time.Now().Before(deadline); {
		// a busy machine may lose the lease; the next apply completes the rest
		_, err = s.apply(0)
	}
	require.NoError(s, err)
	after := s.allObjects()
	var restarts []string
	for cluster, objects := range before {
		told := announcedObjects(said, cluster)
		for name, o := range objects {
			now, there := after[cluster][name]
			plain := strings.TrimSpace(o.GetKind() + " " + strings.TrimPrefix(o.GetNamespace()+"/"+o.GetName(), "/"))
			if !there {
				// Data Secrets of ManagedResources are named after their content.
				isData := o.GetKind() == "Secret" && strings.HasPrefix(o.GetName(), "managedresource-")
				assert.True(s, isData || told[plain], "%s: %s is gone", cluster, name)
				continue
			}
			assert.Equal(s, o.GetUID(), now.GetUID(), name)
			assert.Subset(s, now.GetFinalizers(), o.GetFinalizers(), name)
			if isPodReplacement(o, now) {
				restarts = append(restarts, plain)
			}
			if o.GetKind() == "ManagedResource" || o.GetKind() == "Garden" {
				continue // they name their ManagedResource or the last operation
			}
			if now.GetGeneration() == 0 && !told[plain] {
				assert.Equal(s, comparableContent(o), comparableContent(now), "%s: %s", cluster, name)
			} else if !told[plain] {
				// A changed annotation increases the generation of a Deployment, too.
				assert.Equal(s, o.Object["spec"], now.Object["spec"], "%s: %s", cluster, name)
			}
			if !isAppliedByPergola(now.Unstructured) {
				continue
			}
			for _, m := range now.GetManagedFields() {
				if slices.Contains(previousManagers, m.Manager) && m.Subresource == "" && !slices.Contains(upstreamNamedFields, m.FieldsV1.String()) {
					s.Errorf("%s: %s is owned by %s, too: %s", cluster, name, m.Manager, m.FieldsV1)
				}
			}
		}
	}
	slices.Sort(restarts)
	assert.Equal(s, findingObjects(said.ByLevel(LevelRestarts)), restarts)
	report := s.check()
	assert.Empty(s, report.Problems)
	assert.Empty(s, report.ByLevel(LevelBlocks))
	assert.Empty(s, report.ByLevel(LevelRestarts))
}

// announcedObjects returns the objects of a cluster that a report says will change.
func announcedObjects(r *Report, cluster string) map[string]bool {
	out := map[string]bool{}
	for _, f := range r.Findings {
		if f.Level != LevelNoAction && (f.Cluster == "" || f.Cluster == cluster) {
			for _, object := range f.Objects {
				out[object] = true
			}
		}
	}
	return out
}

// isPodReplacement reports whether an update replaces pods, through the template or an operator.
func isPodReplacement(was, now clusterObject) bool {
	path := []string{"spec", "template"}
	switch kind := was.GetKind(); {
	case slices.Contains(operatorKinds, kind):
		path = []string{"spec"}
	case !slices.Contains(workloads, kind):
		return false
	}
	a, _, _ := unstructured.NestedMap(was.Object, path...)
	b, _, _ := unstructured.NestedMap(now.Object, path...)
	return !equality.Semantic.DeepEqual(withoutEmptyValues(a), withoutEmptyValues(b))
}

// withoutEmptyValues returns a value without its hollow parts.
func withoutEmptyValues(value any) any {
	switch v := value.(type) {
	case map[string]any:
		out := map[string]any{}
		for key, inner := range v {
			if !isDeeplyEmpty(inner) {
				out[key] = withoutEmptyValues(inner)
			}
		}
		return out
	case []any:
		out := make([]any, 0, len(v))
		for _, inner := range v {
			out = append(out, withoutEmptyValues(inner))
		}
		return out
	}
	return value
}

// comparableContent returns an object without a generation for comparison. It omits fields that
// every write changes or that a check does not report: marks of reconciliations, finalizers
// (checked separately), status, and renewed tokens.
func comparableContent(o clusterObject) string {
	out := o.DeepCopy()
	out.SetManagedFields(nil)
	out.SetResourceVersion("")
	out.SetFinalizers(nil)
	delete(out.Object, "status")
	annotations, labels := out.GetAnnotations(), out.GetLabels()
	for _, key := range reconcilerMarks["metadata.annotations"] {
		delete(annotations, key)
	}
	for _, key := range reconcilerMarks["metadata.labels"] {
		delete(labels, key)
	}
	if o.GetKind() == "Secret" && labels[resourcesv1alpha1.LabelPurpose] == resourcesv1alpha1.LabelPurposeTokenRequestor {
		delete(annotations, tokenrequestor.AnnotationRenew)
		delete(out.Object, "data")
	}
	// No annotations or labels equal an empty map.
	out.SetAnnotations(nil)
	out.SetLabels(nil)
	if len(annotations) > 0 {
		out.SetAnnotations(annotations)
	}
	if len(labels) > 0 {
		out.SetLabels(labels)
	}
	raw, err := out.MarshalJSON()
	if err != nil {
		return err.Error()
	}
	return string(raw)
}

func testUndoAfterApply(s *stage) {
	a, steps := s.adopter()
	defer a.Converger.Close()
	started, err := a.Undo(s.context())
	require.NoError(s, err)
	assert.Equal(s, []string{"runtime: Deployment garden/gardener-operator"}, started)
	assert.Contains(s, strings.Join(*steps, "\n"), "Deployment garden/gardener-resource-manager now belongs to Pergola")
	assert.Equal(s, int64(2), s.replicas("gardener-operator"))
}
