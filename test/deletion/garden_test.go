// SPDX-License-Identifier: Apache-2.0

package deletion

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/pergola-dev/pergola/controllers/landscape"
	"github.com/pergola-dev/pergola/controllers/owner"
	"github.com/pergola-dev/pergola/hack/clusterobjects"
	"github.com/pergola-dev/pergola/hack/testclusters"
	"github.com/pergola-dev/pergola/hack/testselection"
)

var (
	gardens     = schema.GroupVersionResource{Group: "operator.gardener.cloud", Version: "v1alpha1", Resource: "gardens"}
	seeds       = schema.GroupVersionResource{Group: "core.gardener.cloud", Version: "v1beta1", Resource: "seeds"}
	buckets     = schema.GroupVersionResource{Group: "extensions.gardener.cloud", Version: "v1alpha1", Resource: "backupbuckets"}
	deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	secrets     = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	configMaps  = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
)

type step struct {
	name string
	test func(*deletionStage)
}

// TestGardenDeletion covers the life of three Gardens.
func TestGardenDeletion(t *testing.T) {
	if env.configs == nil {
		t.Skip(testclusters.MissingRequirement(env.Root, false))
	}
	s := newStage(t)
	before := s.snapshot()
	steps := []step{
		{"it is made and what it refers to is protected", testCreation},
		{"what Extensions install comes and goes with them", testExtensions},
		{"another one is refused", testSecondGarden},
		{"a removed file deletes nothing without the confirmation", testUnconfirmedDeletion},
		{"it stays while the virtual garden is in use", testVirtualGardenInUse},
		{"it waits for a bucket that is retained, and says so", testRetainedBucket},
		{"then the runtime cluster is as it was before", func(s *deletionStage) { testDeletion(s, before) }},
		{"another one ends although its virtual garden is gone", func(s *deletionStage) { testLostVirtualGarden(s, before) }},
		{"one with all options on leaves nothing either", func(s *deletionStage) { testAllOptions(s, before) }},
	}
	for _, step := range steps {
		if !testselection.HasPart(t, step.name) {
			continue
		}
		if !t.Run(step.name, func(t *testing.T) { step.test(s.withTest(t)) }) {
			t.Fatalf("the rest is left out: it builds on %q", step.name)
		}
	}
}

func testCreation(s *deletionStage) {
	_, err := s.apply(0)
	require.NoError(s, err)
	garden := s.garden()
	assert.Equal(s, []string{"gardener.cloud/operator", "gardener.cloud/reference-protection"}, garden.GetFinalizers())
	for _, name := range []string{"garden-dns-local", "virtual-garden-etcd-main-backup-local"} {
		assert.Contains(s, s.get(s.api[landscape.Runtime].Resource(secrets).Namespace("garden"), name).GetFinalizers(), "gardener.cloud/reference-protection", name)
	}
}

func testSecondGarden(s *deletionStage) {
	second := s.garden().DeepCopy()
	second.Object = map[string]any{"apiVersion": second.GetAPIVersion(), "kind": "Garden", "metadata": map[string]any{"name": "second"}, "spec": second.Object["spec"]}
	r := s.api[landscape.Runtime].Resource(gardens)
	_, err := r.Create(s.context(), second, metav1.CreateOptions{})
	require.NoError(s, err, "no admission webhook is there to refuse it")
	_, err = s.apply(0)
	require.NoError(s, err, "the first one goes on")
	assert.Empty(s, s.get(r, "second").GetFinalizers())
	require.NoError(s, r.Delete(s.context(), "second", metav1.DeleteOptions{}))
}

func testUnconfirmedDeletion(s *deletionStage) {
	there := s.snapshot()
	s.removeGarden()
	report, err := s.apply(0)
	require.NoError(s, err)
	reasons := map[string]string{}
	for _, h := range report.Held {
		reasons[h.Objects[0].Ref.String()] = h.Objects[0].Reason.String()
	}
	assert.Len(s, reasons, 3, "%v", reasons)
	assert.Contains(s, reasons["Garden local"], "kubectl")
	assert.Contains(s, reasons["Garden local"], "confirmation.gardener.cloud/deletion=true")
	assert.Contains(s, reasons["Secret garden/garden-dns-local"], "Garden local refers to it")
	assert.Nil(s, s.garden().GetDeletionTimestamp())
	assert.Empty(s, there.MissingFrom(s.snapshot()), "everything is there")

	c := s.newConverger(0)
	defer c.Close()
	kept := map[string]string{}
	for _, u := range c.Status(s.context(), landscape.StatusOptions{}).Undeclared {
		kept[u.Object.String()] = u.HoldReason
	}
	for object, reason := range reasons {
		assert.Equal(s, reason, kept[object], "the status says it as the run does: %s", object)
	}
}

func testVirtualGardenInUse(s *deletionStage) {
	virtual := s.api[landscape.Virtual].Resource(seeds)
	_, err := virtual.Create(s.context(), s.decodeObject(seedManifest), metav1.CreateOptions{})
	require.NoError(s, err)
	there := s.snapshot()
	s.annotate(s.api[landscape.Runtime].Resource(gardens), "local", owner.AnnotationConfirmDeletion, "true")
	s.applyUntilBlocked(2*time.Second, "Seeds somebodys")
	assert.NotNil(s, s.garden().GetDeletionTimestamp())
	assert.Empty(s, there.MissingFrom(s.snapshot()), "everything is there")
	require.NoError(s, virtual.Delete(s.context(), "somebodys", metav1.DeleteOptions{}))
}

func testRetainedBucket(s *deletionStage) {
	r := s.api[landscape.Runtime].Resource(buckets)
	list, err := r.List(s.context(), metav1.ListOptions{})
	require.NoError(s, err)
	require.Len(s, list.Items, 1)
	bucket := list.Items[0].GetName()
	s.annotate(r, bucket, "local.pergola.dev/fail", "the retention period of the bucket is not over")
	s.applyUntilBlocked(20*time.Second, "BackupBucket "+bucket, "the retention period of the bucket is not over")
	assert.NotNil(s, s.get(r, bucket).GetDeletionTimestamp())
	_, err = s.api[landscape.Runtime].Resource(deployments).Namespace("garden").Get(s.context(), "virtual-garden-kube-apiserver", metav1.GetOptions{})
	assert.True(s, apierrors.IsNotFound(err), "what came before it in the flow is gone: %v", err)
	s.annotate(r, bucket, "local.pergola.dev/fail", "")
}

func testDeletion(s *deletionStage, before clusterobjects.Objects) {
	report, err := s.apply(0)
	require.NoError(s, err)
	require.Len(s, report.Owners, 1)
	assert.Empty(s, report.Owners[0].Notes)
	s.requireAsBefore(before)
}

// testLostVirtualGarden: Git declares a Garden again. A person deletes it and its API server, then
// removes it from Git.
func testLostVirtualGarden(s *deletionStage, before clusterobjects.Objects) {
	s.addGarden()
	_, err := s.apply(0)
	require.NoError(s, err)
	r := s.api[landscape.Runtime].Resource(gardens)
	require.NoError(s, r.Delete(s.context(), "local", metav1.DeleteOptions{}))
	_, err = s.apply(0)
	require.Error(s, err)
	s.requireLastOperation("Delete", "Error", "until it is confirmed")
	s.annotate(r, "local", owner.AnnotationConfirmDeletion, "true")
	require.NoError(s, s.api[landscape.Runtime].Resource(deployments).Namespace("garden").Delete(s.context(), "virtual-garden-kube-apiserver", metav1.DeleteOptions{}))
	s.removeGarden()
	report, err := s.apply(0)
	require.NoError(s, err)
	require.Len(s, report.Owners, 1)
	assert.Contains(s, strings.Join(report.Owners[0].Notes, "\n"), "virtual-garden-kube-apiserver does not exist")
	s.requireAsBefore(before)
}

// testAllOptions uses the Garden of the benchmarks, which has every component with definitions. Its
// Extension is omitted: its chart does not exist, and testExtensions has one.
func testAllOptions(s *deletionStage, before clusterobjects.Objects) {
	bench := filepath.Join(env.Root, "hack", "bench", "garden")
	require.NoError(s, os.Mkdir(s.path("all"), 0o755))
	for _, name := range []string{"garden.yaml", "objects.yaml"} {
		raw, err := os.ReadFile(filepath.Join(bench, name))
		require.NoError(s, err)
		var kept []string
		for _, doc := range strings.Split(string(raw), "\n---\n") {
			if s.decodeObject(doc).GetKind() != "Extension" {
				kept = append(kept, doc)
			}
		}
		s.write("all/"+name, strings.Join(kept, "\n---\n"))
	}
	was := s.read("landscape.yaml")
	s.write("landscape.yaml", strings.TrimRight(was, "\n")+"\n  featureGates: {VictoriaLogsBackend: true}\n")
	_, err := s.apply(0)
	require.NoError(s, err)
	s.annotate(s.api[landscape.Runtime].Resource(gardens), "local", owner.AnnotationConfirmDeletion, "true")
	require.NoError(s, os.RemoveAll(s.path("all")))
	_, err = s.apply(0)
	require.NoError(s, err)
	s.requireAsBefore(before)
}

func (s *deletionStage) requireAsBefore(before clusterobjects.Objects) {
	s.Helper()
	var after clusterobjects.Objects
	// Pods and other derived objects take a moment to be deleted.
	if !assert.Eventually(s, func() bool { after = s.snapshot(); return len(after.MissingFrom(before)) == 0 }, time.Minute, time.Second) {
		require.Empty(s, after.MissingFrom(before))
	}
	assert.Empty(s, before.MissingFrom(after))
	assert.Empty(s, after.ChangedSince(before))
	namespace := after["Namespace. garden"]
	require.NotNil(s, namespace)
	assert.Equal(s, map[string]string{"kubernetes.io/metadata.name": "garden"}, namespace.GetLabels())
}

const seedManifest = `
apiVersion: core.gardener.cloud/v1beta1
kind: Seed
metadata: {name: somebodys}
spec:
  provider: {type: local, region: local}
  dns: {provider: {type: local, secretRef: {name: dns, namespace: garden}}}
  ingress: {domain: ingress.somebodys.example.org, controller: {kind: nginx}}
  networks: {nodes: 10.10.0.0/16, pods: 10.11.0.0/16, services: 10.12.0.0/16}
`

// removeGarden removes the Garden and its objects from Git.
func (s *deletionStage) removeGarden() {
	s.Helper()
	require.NoError(s, os.Rename(s.path("garden"), s.path("../garden")))
	require.NoError(s, os.Rename(s.path("gardenconfig"), s.path("../gardenconfig")))
}

func (s *deletionStage) addGarden() {
	s.Helper()
	require.NoError(s, os.Rename(s.path("../garden"), s.path("garden")))
	require.NoError(s, os.Rename(s.path("../gardenconfig"), s.path("gardenconfig")))
}

func (s *deletionStage) garden() *unstructured.Unstructured {
	s.Helper()
	return s.get(s.api[landscape.Runtime].Resource(gardens), "local")
}

// requireLastOperation checks the last operation of the Garden.
func (s *deletionStage) requireLastOperation(kind, state string, parts ...string) {
	s.Helper()
	operation, _, err := unstructured.NestedMap(s.garden().Object, "status", "lastOperation")
	require.NoError(s, err)
	assert.Equal(s, kind, operation["type"])
	assert.Equal(s, state, operation["state"], "%v", operation["description"])
	for _, part := range parts {
		assert.Contains(s, operation["description"], part)
	}
}

// applyUntilBlocked applies until the last operation says what blocks the deletion. Each run gives
// its steps little time, which may be too short on a busy machine; the next run continues.
func (s *deletionStage) applyUntilBlocked(steps time.Duration, parts ...string) {
	s.Helper()
	for ctx := s.context(); ; {
		_, err := s.apply(steps)
		require.Error(s, err)
		missing := slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(err.Error(), part) })
		if !missing || ctx.Err() != nil {
			break
		}
	}
	s.requireLastOperation("Delete", "Error", parts...)
}

func (s *deletionStage) get(r dynamic.ResourceInterface, name string) *unstructured.Unstructured {
	s.Helper()
	o, err := r.Get(s.context(), name, metav1.GetOptions{})
	require.NoError(s, err)
	return o
}

// annotate sets an annotation as a person does; an empty value removes it.
func (s *deletionStage) annotate(r dynamic.ResourceInterface, name, key, value string) {
	s.Helper()
	text := `"` + value + `"`
	if value == "" {
		text = "null"
	}
	_, err := r.Patch(s.context(), name, types.MergePatchType, []byte(`{"metadata":{"annotations":{"`+key+`":`+text+`}}}`), metav1.PatchOptions{FieldManager: "kubectl-annotate"})
	require.NoError(s, err)
}

func (s *deletionStage) decodeObject(text string) *unstructured.Unstructured {
	s.Helper()
	o := &unstructured.Unstructured{}
	require.NoError(s, yaml.Unmarshal([]byte(text), &o.Object))
	return o
}
