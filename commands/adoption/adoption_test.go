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

// images replaces images of upstream: only these Deployments have to restart.
const images = `
  images:
  - {name: gardener-resource-manager, repository: registry.example.org/pergola, tag: 0.2.0}
  - {name: gardener-controller-manager, repository: registry.example.org/pergola, tag: 0.2.0}
`

var restarted = []string{"Deployment garden/gardener-controller-manager", "Deployment garden/gardener-resource-manager", "Deployment garden/virtual-garden-gardener-resource-manager"}

// TestLandscapeOfUpstream moves a landscape with the whole catalogue from upstream's controllers to
// Pergola.
func TestLandscapeOfUpstream(t *testing.T) {
	s := newStage(t)
	_, err := s.apply(0)
	require.NoError(t, err)
	for _, cluster := range []string{landscape.Runtime, landscape.Virtual} {
		s.asUpstream(cluster)
	}
	s.upstreamRuns()
	s.write("landscape.yaml", strings.TrimRight(s.read("landscape.yaml"), "\n")+images)
	for _, step := range []struct {
		name string
		test func(*stage)
	}{
		{"a check says what restarts, and writes nothing", testCheck},
		{"what blocks keeps it from being stopped", testBlocked},
		{"nothing is stopped without approval", testUnapproved},
		{"controllers are stopped in order, and started again", testThereAndBack},
		{"an apply restarts nothing else, and nothing is left to others", testTakeover},
		{"the way back leaves to gardener-operator what Pergola has applied", testWayBack},
	} {
		if !t.Run(step.name, func(t *testing.T) { step.test(s.on(t)) }) {
			t.Errorf("what follows builds on %q", step.name)
		}
	}
}

// adopter is one run of `pergola adopt`.
func (s *stage) adopter() (a *Adopter, steps *[]string) {
	s.Helper()
	steps = &[]string{}
	return &Adopter{
		Converger: s.process(0), Landscape: "local", Catalogue: components.FS, Clock: clock.RealClock{}, Poll: 50 * time.Millisecond,
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

// objects returns the objects of findings.
func objects(found []Finding) []string {
	var out []string
	for _, f := range found {
		out = append(out, f.Objects...)
	}
	slices.Sort(out)
	return out
}

// everything returns all objects of both clusters.
func (s *stage) everything() map[string]map[string]thing {
	s.Helper()
	return map[string]map[string]thing{landscape.Runtime: s.things(landscape.Runtime), landscape.Virtual: s.things(landscape.Virtual)}
}

// untouched checks that no object was created, deleted or changed. It ignores what controllers of
// the clusters write: the status of most kinds, and some kinds entirely.
func (s *stage) untouched(before map[string]map[string]thing) {
	s.Helper()
	for cluster, now := range s.everything() {
		for name, o := range before[cluster] {
			if after, there := now[name]; o.isOfCluster() {
				continue
			} else if assert.True(s, there, "%s: %s is gone", cluster, name) {
				assert.Equal(s, declared(o), declared(after), "%s: %s", cluster, name)
			}
		}
		for name, o := range now {
			assert.True(s, before[cluster][name].Unstructured != nil || o.isOfCluster(), "%s: %s is new", cluster, name)
		}
	}
}

// declared returns an object without its status, and with the managedFields of Pergola only.
func declared(o thing) string {
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

// isOfCluster reports whether controllers of the clusters write the kind all the time.
func (o thing) isOfCluster() bool {
	return slices.Contains([]string{"Lease", "Deployment", "StatefulSet", "DaemonSet", "PersistentVolume", "PersistentVolumeClaim", "APIService", "FlowSchema", "PriorityLevelConfiguration"}, o.GetKind())
}

// unregistered are webhooks that are not registered if pods are played, because nothing answers
// them.
var unregistered = []string{
	"MutatingWebhookConfiguration gardener-admission-controller", "ValidatingWebhookConfiguration gardener-admission-controller",
	"MutatingWebhookConfiguration gardener-resource-manager",
}

// isUnregistered reports whether a finding is only about unregistered webhooks.
func isUnregistered(f Finding) bool {
	return len(f.Objects) > 0 && !slices.ContainsFunc(f.Objects, func(object string) bool { return !slices.Contains(unregistered, object) })
}

func testCheck(s *stage) {
	before := s.everything()
	report := s.check()
	for _, f := range report.Findings {
		if f.Level != Fine {
			s.Logf("%s %s %s %v: %s", f.Level, f.Area, f.Cluster, f.Objects, f.Text)
		}
	}
	s.untouched(before)
	assert.Empty(s, report.Problems)
	assert.Empty(s, report.Of(Blocks))
	assert.Equal(s, restarted, objects(report.Of(Restarts)))
	for _, f := range report.Of(Restarts) {
		require.Len(s, f.Fields, 1, "only what restarts them: %v", f.Fields)
		assert.Contains(s, f.Fields[0].Path, ".image")
		assert.Equal(s, "registry.example.org/pergola:0.2.0", f.Fields[0].New)
	}
	for _, f := range report.Of(Changes) {
		if isUnregistered(f) {
			continue
		}
		assert.Equal(s, AreaControllers, f.Area, "%v", f)
	}
	var stops []string
	for _, c := range report.Controllers {
		if c.Stops {
			stops = append(stops, c.Name)
		}
	}
	assert.Equal(s, []string{"gardener-operator", "gardener-controller-manager", "virtual-garden-gardener-resource-manager", "gardener-resource-manager"}, stops,
		"the scheduler is the same program, and goes on")
	assert.False(s, report.Clean())
	assert.False(s, report.Stopped)
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
		assert.False(s, stopping.Done)
		assert.Len(s, stopping.Controllers, 4)
	}
	assert.Empty(s, *steps)
	assert.Equal(s, int64(2), s.replicas("gardener-operator"))
	assert.Nil(s, s.get(landscape.Runtime, configMaps, "garden", recordName))
}

// recorded returns the record of stopped controllers.
func (s *stage) recorded() *record {
	s.Helper()
	a, _ := s.adopter()
	defer a.Converger.Close()
	r, err := a.readRecord(s.context(), landscape.Runtime)
	require.NoError(s, err)
	return r
}

// planned returns a context after a plan, which some checks need.
func (s *stage) planned(a *Adopter) context.Context {
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
	found, err := a.controllers(s.planned(a))
	require.NoError(s, err)
	approval := approvalOf(slices.DeleteFunc(found, func(c Controller) bool { return !c.Stops }))
	s.hold("gardener-operator-leader-election", "gardener-operator-7d4b9-x_0815", 1)
	began := time.Now()
	stopping, err := a.Stop(s.context(), approval)
	require.NoError(s, err)
	assert.True(s, stopping.Done)
	assert.Greater(s, time.Since(began), time.Second, "the lease was waited for")
	return *steps
}

func testThereAndBack(s *stage) {
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
	for _, one := range s.recorded().Stopped {
		ignored += one.Ignored
	}
	assert.Equal(s, "garden/gardener-controller-manager-runtime", ignored, "a resource manager would have put it back")
	assert.NotContains(s, s.get(landscape.Runtime, carriers, "garden", "gardener-controller-manager-runtime").GetAnnotations(), "resources.gardener.cloud/ignore", "by now it is stopped, too")
	assert.True(s, s.check().Stopped)

	a, _ := s.adopter()
	s.hold("gardener-operator-leader-election", "host_pergola-operator_1", 60)
	_, err := a.Undo(s.context())
	require.ErrorAs(s, err, new(*WorkingError))
	require.ErrorContains(s, err, "stop Pergola first, where that is its operator")
	require.ErrorContains(s, err, "kubectl ")
	s.hold("gardener-operator-leader-election", "", 1)
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
	assert.NotContains(s, s.get(landscape.Runtime, carriers, "garden", "gardener-controller-manager-runtime").GetAnnotations(), "resources.gardener.cloud/ignore")
	assert.Nil(s, s.get(landscape.Runtime, configMaps, "garden", recordName))
	assert.False(s, s.check().Stopped)
}

// formers are the field managers that hand their fields over.
var formers = []string{"gardener-operator", "gardener-resource-manager", "gardenlet", "pergola-adopt"}

// requested are the fields of an extension request, which keep that manager by design
// (docs/architecture.md).
const requested = `{"f:metadata":{"f:annotations":{"f:extensions.pergola.dev/requested":{},"f:gardener.cloud/timestamp":{}}}}`

// written are the fields that Pergola writes as upstream's managers: requests, and the Garden's
// annotation about its generic kubeconfig.
var written = []string{requested, `{"f:metadata":{"f:annotations":{"f:generic-token-kubeconfig.secret.gardener.cloud/name":{}}}}`}

func testTakeover(s *stage) {
	said := s.check()
	s.stopAll()
	assert.NotEmpty(s, s.stopAll(), "it can be repeated, and waits again")
	s.takeover(said)
	assert.Equal(s, restarted, objects(said.Of(Restarts)))
	for _, name := range restarted {
		assert.Positive(s, s.replicas(strings.TrimPrefix(name, "Deployment garden/")), name)
	}
	assert.NotContains(s, s.get(landscape.Runtime, carriers, "garden", "gardener-controller-manager-runtime").GetAnnotations(), "resources.gardener.cloud/ignore")
}

// takeover applies after everything is stopped. Only pods that the check announced restart, only
// announced objects are deleted, and only announced changes are made.
func (s *stage) takeover(said *Report) {
	s.Helper()
	before := s.everything()
	_, err := s.apply(0)
	for deadline := time.Now().Add(patience); err != nil && strings.Contains(err.Error(), "the lease was lost") && time.Now().Before(deadline); {
		// a busy machine may lose the lease; the next apply completes the rest
		_, err = s.apply(0)
	}
	require.NoError(s, err)
	after := s.everything()
	var restarts []string
	for cluster, objects := range before {
		told := mentioned(said, cluster)
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
			if replaces(o, now) {
				restarts = append(restarts, plain)
			}
			if o.GetKind() == "ManagedResource" || o.GetKind() == "Garden" {
				continue // they name their ManagedResource or the last operation
			}
			if now.GetGeneration() == 0 && !told[plain] {
				assert.Equal(s, content(o), content(now), "%s: %s", cluster, name)
			} else if !told[plain] {
				// A changed annotation increases the generation of a Deployment, too.
				assert.Equal(s, o.Object["spec"], now.Object["spec"], "%s: %s", cluster, name)
			}
			if !isPergolas(now.Unstructured) {
				continue
			}
			for _, m := range now.GetManagedFields() {
				if slices.Contains(formers, m.Manager) && m.Subresource == "" && !slices.Contains(written, m.FieldsV1.String()) {
					s.Errorf("%s: %s is owned by %s, too: %s", cluster, name, m.Manager, m.FieldsV1)
				}
			}
		}
	}
	slices.Sort(restarts)
	assert.Equal(s, objects(said.Of(Restarts)), restarts)
	report := s.check()
	assert.Empty(s, report.Problems)
	assert.Empty(s, report.Of(Blocks))
	assert.Empty(s, report.Of(Restarts))
}

// mentioned returns the objects of a cluster that a report says will change.
func mentioned(r *Report, cluster string) map[string]bool {
	out := map[string]bool{}
	for _, f := range r.Findings {
		if f.Level != Fine && (f.Cluster == "" || f.Cluster == cluster) {
			for _, object := range f.Objects {
				out[object] = true
			}
		}
	}
	return out
}

// replaces reports whether an update replaces pods, through the template or an operator.
func replaces(was, now thing) bool {
	path := []string{"spec", "template"}
	switch kind := was.GetKind(); {
	case slices.Contains(operated, kind):
		path = []string{"spec"}
	case !slices.Contains(workloads, kind):
		return false
	}
	a, _, _ := unstructured.NestedMap(was.Object, path...)
	b, _, _ := unstructured.NestedMap(now.Object, path...)
	return !equality.Semantic.DeepEqual(telltale(a), telltale(b))
}

// telltale returns a value without its hollow parts.
func telltale(value any) any {
	switch v := value.(type) {
	case map[string]any:
		out := map[string]any{}
		for key, inner := range v {
			if !isHollow(inner) {
				out[key] = telltale(inner)
			}
		}
		return out
	case []any:
		out := make([]any, 0, len(v))
		for _, inner := range v {
			out = append(out, telltale(inner))
		}
		return out
	}
	return value
}

// content returns an object without a generation for comparison. It omits fields that every write
// changes or that a check does not report: marks of reconciliations, finalizers (checked
// separately), status, and renewed tokens.
func content(o thing) string {
	out := o.DeepCopy()
	out.SetManagedFields(nil)
	out.SetResourceVersion("")
	out.SetFinalizers(nil)
	delete(out.Object, "status")
	annotations, labels := out.GetAnnotations(), out.GetLabels()
	for _, key := range marks["metadata.annotations"] {
		delete(annotations, key)
	}
	for _, key := range marks["metadata.labels"] {
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

func testWayBack(s *stage) {
	a, steps := s.adopter()
	defer a.Converger.Close()
	started, err := a.Undo(s.context())
	require.NoError(s, err)
	assert.Equal(s, []string{"runtime: Deployment garden/gardener-operator"}, started)
	assert.Contains(s, strings.Join(*steps, "\n"), "Deployment garden/gardener-resource-manager was applied by Pergola since")
	assert.Equal(s, int64(2), s.replicas("gardener-operator"))
}
