// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/change/redact"
)

func restConfigOf(host string) *rest.Config { return &rest.Config{Host: host} }

func statusError(code int32, text string) error {
	reasons := map[int32]metav1.StatusReason{422: metav1.StatusReasonInvalid, 403: metav1.StatusReasonForbidden, 500: metav1.StatusReasonInternalError}
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: "Failure", Code: code, Reason: reasons[code], Message: text}}
}

func plainError(text string) error { return errors.New(text) }

// currentVersions maps versions of the corpus that API servers no longer serve to current ones.
var currentVersions = map[string]string{"apps/v1beta1": "apps/v1", "extensions/v1beta1": "apps/v1", "batch/v1beta1": "batch/v1",
	"admissionregistration.k8s.io/v1beta1": "admissionregistration.k8s.io/v1"}

// acceptable makes an object of the corpus acceptable to an API server without changing the subject
// of the case. It sets the namespace of the test, current versions, and required fields that
// upstream's unit tests omit.
func (f *fixture) acceptable(in *unstructured.Unstructured) *unstructured.Unstructured {
	f.Helper()
	o := in.DeepCopy()
	if v := currentVersions[o.GetAPIVersion()]; v != "" {
		o.SetAPIVersion(v)
	}
	f.defineKind(o)
	mapping, err := f.c.Mapping(f.ctx, o.GroupVersionKind())
	if err != nil {
		return o
	}
	if mapping.Scope.Name() == "namespace" {
		o.SetNamespace(f.ns)
	} else {
		o.SetNamespace("")
	}
	for _, field := range []string{"resourceVersion", "uid", "creationTimestamp", "generation", "selfLink", "managedFields", "deletionTimestamp", "deletionGracePeriodSeconds"} {
		unstructured.RemoveNestedField(o.Object, "metadata", field)
	}
	finalizers := o.GetFinalizers()
	for i, name := range finalizers {
		if !strings.Contains(name, "/") {
			finalizers[i] = "test.example.com/" + name
		}
	}
	o.SetFinalizers(finalizers)
	addRequiredFields(o)
	return o
}

// addRequiredFields adds fields that the API server requires and the corpus omits.
func addRequiredFields(o *unstructured.Unstructured) {
	set := func(v any, path ...string) {
		if _, found, _ := unstructured.NestedFieldNoCopy(o.Object, path...); !found {
			_ = unstructured.SetNestedField(o.Object, v, path...)
		}
	}
	spec := []string{"spec"}
	switch o.GetKind() {
	case "Service":
		completeService(o)
		return
	case "Deployment", "StatefulSet", "DaemonSet":
		set(map[string]any{"added": "x"}, "spec", "selector", "matchLabels")
		spec = []string{"spec", "template", "spec"}
		labels, _, _ := unstructured.NestedStringMap(o.Object, "spec", "selector", "matchLabels")
		have, _, _ := unstructured.NestedStringMap(o.Object, "spec", "template", "metadata", "labels")
		_ = unstructured.SetNestedStringMap(o.Object, mergeMaps(have, labels), "spec", "template", "metadata", "labels")
	case "Job":
		spec = []string{"spec", "template", "spec"}
		set("Never", append(spec, "restartPolicy")...)
		if _, found, _ := unstructured.NestedMap(o.Object, "spec", "selector"); found {
			set(true, "spec", "manualSelector") // a generated selector would not match
		}
	case "CronJob":
		spec = []string{"spec", "jobTemplate", "spec", "template", "spec"}
		_ = unstructured.SetNestedField(o.Object, "0 0 * * *", "spec", "schedule")
		// the API server generates it
		unstructured.RemoveNestedField(o.Object, "spec", "jobTemplate", "spec", "selector")
		set("Never", append(spec, "restartPolicy")...)
	case "MutatingWebhookConfiguration":
		hooks, _, _ := unstructured.NestedSlice(o.Object, "webhooks")
		for _, hook := range hooks {
			m := hook.(map[string]any)
			if _, found := m["admissionReviewVersions"]; !found {
				m["admissionReviewVersions"] = []any{"v1beta1"}
			}
			m["sideEffects"] = "None"
		}
		_ = unstructured.SetNestedSlice(o.Object, hooks, "webhooks")
		return
	case "Pod":
	case "PersistentVolumeClaim":
		set([]any{"ReadWriteOnce"}, "spec", "accessModes")
		set("1Gi", "spec", "resources", "requests", "storage")
		return
	default:
		return
	}
	set([]any{map[string]any{"name": "added"}}, append(spec, "containers")...)
	for _, list := range []string{"containers", "initContainers"} {
		items, _, _ := unstructured.NestedSlice(o.Object, append(spec, list)...)
		for _, item := range items {
			if c, ok := item.(map[string]any); ok && c["image"] == nil {
				c["image"] = "x"
			}
		}
		if len(items) > 0 {
			_ = unstructured.SetNestedSlice(o.Object, items, append(spec, list)...)
		}
	}
}

// completeService moves addresses and ports into the ranges of the test's API server. Within them
// it uses only values that the server never allocates (the first 15 of 254 addresses, the first 86
// of 2768 node ports). A Service of another test may hold any other value.
func completeService(o *unstructured.Unstructured) {
	if ip, _, _ := unstructured.NestedString(o.Object, "spec", "clusterIP"); ip != "" && ip != "None" {
		last, _ := strconv.Atoi(ip[strings.LastIndex(ip, ".")+1:])
		_ = unstructured.SetNestedField(o.Object, fmt.Sprintf("10.0.0.%d", 2+last%14), "spec", "clusterIP")
	}
	inRange := func(m map[string]any, field string) {
		if n, ok := m[field].(int64); ok && n > 0 {
			m[field] = 30000 + n%86
		}
	}
	spec, _, _ := unstructured.NestedFieldNoCopy(o.Object, "spec")
	if m, ok := spec.(map[string]any); ok {
		inRange(m, "healthCheckNodePort")
		ports, _ := m["ports"].([]any)
		for _, p := range ports {
			inRange(p.(map[string]any), "nodePort")
		}
	}
}

// defineKind creates a CustomResourceDefinition for a kind of the corpus that the server does not
// know.
func (f *fixture) defineKind(o *unstructured.Unstructured) {
	gvk := o.GroupVersionKind()
	if _, err := f.c.Mapping(f.ctx, gvk); err == nil || !strings.Contains(gvk.Group, ".") {
		return
	}
	plural := strings.ToLower(gvk.Kind) + "s"
	scope := "Namespaced"
	if gvk.Group == "foo.io" {
		scope = "Cluster" // the only case with a namespace on a cluster-scoped object
	}
	crd := f.object(fmt.Sprintf(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[1]s.%[2]s}
spec:
  group: %[2]s
  scope: %[5]s
  names: {plural: %[1]s, singular: %[3]s, kind: %[4]s}
  versions: [{name: %[6]s, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
`, plural, gvk.Group, strings.ToLower(gvk.Kind), gvk.Kind, scope, gvk.Version))
	_, err := f.resource(crd).Create(f.ctx, crd, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		require.NoError(f, err)
	}
	f.eventually(gvk.Kind+" is served", func() bool {
		f.c.ResetMapping()
		_, err := f.c.Mapping(f.ctx, gvk)
		if err != nil {
			return false
		}
		_, err = f.api.Resource(schema.GroupVersionResource{Group: gvk.Group, Version: gvk.Version, Resource: plural}).List(f.ctx, metav1.ListOptions{})
		return err == nil
	})
}

// createOrUpdateAsOther writes the live object in the name of someone else.
func (f *fixture) createOrUpdateAsOther(o *unstructured.Unstructured) error {
	f.Helper()
	existing, err := f.resource(o).Get(f.ctx, o.GetName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		_, err = f.resource(o).Create(f.ctx, o, metav1.CreateOptions{FieldManager: f.other})
		// the next case needs the addresses, node ports and cluster-scoped names
		if err == nil {
			f.Cleanup(func() { _ = f.resource(o).Delete(context.Background(), o.GetName(), deleteNow) })
		}
		return err
	}
	require.NoError(f, err)
	o = o.DeepCopy()
	o.SetResourceVersion(existing.GetResourceVersion())
	_, err = f.resource(o).Update(f.ctx, o, metav1.UpdateOptions{FieldManager: f.other})
	return err
}

// waivedDiffs are cases of the diff corpus whose verdict, recorded from Argo, differs from that of
// a real API server or does not help reviewers.
var waivedDiffs = map[string]string{
	"argo-aggregated-role-compared":           "rules that we do not declare belong to the aggregation controller, which owns them",
	"argo-ignored-path-three-way":             "there are no ignore rules: a field that others decide on is left out of the declaration",
	"argo-ignored-path-two-way":               "there are no ignore rules: a field that others decide on is left out of the declaration",
	"argo-wrong-type-differs":                 "no API server stores the live object, whose type is wrong",
	"own-apiversion-differs-only":             "no API server of today serves both versions; in a diff of two revisions it shows",
	"own-custom-resource-list-item-defaulted": "without a schema the server does not know the default, and the list is one value",
	"own-null-value-deletes":                  "null means that nothing is declared: a key of others stays",
	"own-replicas-removed-three-way":          "replicas that are not declared any more stay as they are, as in upstream's merge",
}

// TestPlanTellsChangesFromNoise: a live dry run gives the verdicts of the corpus. Additions by the
// server are not changes, our changes are.
func TestPlanTellsChangesFromNoise(t *testing.T) {
	for _, c := range corpusCases(t, "diff/*.yaml") {
		if !strings.HasPrefix(c.headers["mode"], "two-way") || c.objects["desired"] == nil || c.objects["live"] == nil {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(t)
			modified, err := f.plannedChanges(c)
			want := strings.HasPrefix(c.verdict(), "modified")
			if reason, waived := waivedDiffs[c.name]; waived {
				assert.True(t, err != nil || want != (len(modified) > 0), "needs no waiver any more: %s", reason)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, want, len(modified) > 0, "%v", modified)
		})
	}
}

// verdict returns the recorded verdict, or the better one if the corpus disagrees with Argo.
func (c corpusCase) verdict() string {
	if better := c.headers["should"]; better != "" {
		return better
	}
	return c.headers["expect"]
}

// plannedChanges returns the changes that a plan shows for the object of a case.
func (f *fixture) plannedChanges(c corpusCase) ([]string, error) {
	f.Helper()
	desired, live := f.acceptable(c.objects["desired"]), f.acceptable(c.objects["live"])
	if text := live.GetAnnotations()["kubectl.kubernetes.io/last-applied-configuration"]; text != "" {
		previous := &unstructured.Unstructured{}
		require.NoError(f, previous.UnmarshalJSON([]byte(text)))
		if _, err := f.apply(f.set(f.acceptable(previous))); err != nil {
			return nil, fmt.Errorf("the last apply: %w", err)
		}
	}
	if err := f.createOrUpdateAsOther(live); err != nil {
		return nil, fmt.Errorf("the live object: %w", err)
	}
	p, err := f.e.Plan(f.ctx, f.cluster(), f.set(desired), f.inv, ApplyOptions{})
	if err != nil {
		return []string{err.Error()}, nil // refusals of the server are shown, too
	}
	var out []string
	for _, item := range p.Items {
		for _, field := range item.Fields {
			if !isBookkeeping(field) {
				out = append(out, fmt.Sprintf("%s: %v → %v", field.Path, field.Old, field.New))
			}
		}
		if item.Action == change.Create || item.Action == change.Recreate {
			out = append(out, string(item.Action))
		}
	}
	return out, nil
}

// isBookkeeping reports whether a field is the label or an annotation that the engine adds to
// adopted objects.
func isBookkeeping(f change.Field) bool {
	keys := gardenerKeys()
	ours := map[string]bool{keys.ManagedByLabel: true, keys.Origin: true, keys.Description: true}
	for k := range ours {
		if strings.HasSuffix(f.Path, "["+k+"]") {
			return true
		}
	}
	m, ok := f.New.(map[string]any)
	if !ok || f.Old != nil || f.Path != "metadata.labels" && f.Path != "metadata.annotations" {
		return false
	}
	for k := range m {
		if !ours[k] {
			return false
		}
	}
	return true
}

// waivedMerges are cases in which server-side apply rightly gives a different result than
// upstream's merge, or which no API server accepts.
var waivedMerges = map[string]string{
	"own-deployment-preserve-resources-mixed":                                                                           "the API server refuses the request of the live object above the declared limit",
	"own-job-image-changed":                                                                                             refusedByServer,
	"own-service-nodeport-ports-swapped":                                                                                "upstream ends with one node port twice; each port keeps that of its number",
	"own-service-nodeport-port-renumbered-keeps-by-name of somebody":                                                    portOfOthers,
	"own-service-nodeport-unnamed-port-renumbered of somebody":                                                          portOfOthers,
	"suite-mergeservice-clusterip-to-clusterip-with-changed-ports of somebody":                                          portOfOthers,
	"suite-mergeservice-externalname-to-clusterip-with-changed-ports of somebody":                                       portOfOthers,
	"suite-mergeservice-loadbalancer-to-externalname-removes-clusterip of somebody":                                     portOfOthers,
	"suite-mergeservice-loadbalancer-to-nodeport-with-changed-ports-and-without-nodeport of somebody":                   portOfOthers,
	"suite-mergeservice-loadbalancer-to-nodeport-with-changed-ports of somebody":                                        portOfOthers,
	"suite-mergeservice-nodeport-to-clusterip-with-changed-ports of somebody":                                           portOfOthers,
	"suite-mergeservice-nodeport-to-nodeport-with-changed-ports-and-without-nodeport of somebody":                       portOfOthers,
	"suite-mergeservice-clusterip-to-clusterip-without-passing-any-type of somebody":                                    refusedByServer,
	"suite-mergeservice-clusterip-to-headless-clusterip":                                                                refusedByServer,
	"suite-mergeservice-loadbalancer-to-headless-clusterip-type-service":                                                refusedByServer,
	"suite-mergeservice-nodeport-to-headless-clusterip-type-service":                                                    refusedByServer,
	"own-deployment-extensions-v1beta1-live-apps":                                                                       "upstream refuses an object that moved to another API group, server-side apply does not care",
	"own-deployment-restartedat-live-wins":                                                                              "an annotation that Git declares is Git's; one that it does not declare survives",
	"own-deployment-selector-from-desired":                                                                              refusedByServer,
	"own-statefulset-immutables-from-desired":                                                                           refusedByServer,
	"own-statefulset-vct-no-creationtimestamp":                                                                          refusedByServer,
	"suite-mergejob-overwrite-old-spec-containers-resources-if-preserveresources-is-false of gardener-resource-manager": refusedByServer,
	"suite-mergejob-not-overwrite-old-spec-selector":                                                                    "a Job's selector is generated; where it is declared and differs, the server's refusal is reported",
	"suite-mergestatefulset-use-new-spec-volumeclaimtemplates-if-the-statefulset-has-not-been-created":                  refusedByServer,
}

const (
	portOfOthers    = "the port belongs to somebody we know nothing of: it stays, and the server refuses the second one"
	refusedByServer = "the API server refuses the object that upstream sends: the field is immutable"
)

// TestMergeKeepsWhatUpstreamKeeps: our apply preserves the live fields that upstream's merge
// preserves, and sets the desired fields that upstream's merge sets. It may preserve more:
// upstream's update removes fields of others.
func TestMergeKeepsWhatUpstreamKeeps(t *testing.T) {
	for _, c := range corpusCases(t, "merge/*.yaml") {
		if c.headers["op"] == "inject" || c.objects["desired"] == nil || c.objects["live"] == nil {
			continue
		}
		for _, owner := range []string{"somebody", takeoverManagerName} {
			t.Run(c.name+" of "+owner, func(t *testing.T) {
				f := newFixture(t)
				f.other = owner
				lost, err := f.mergeLosses(t, c)
				_, fails := c.headers["expect-error"]
				ok := (err != nil) == fails && len(lost) == 0
				reason, waived := waivedMerges[c.name]
				if !waived {
					reason, waived = waivedMerges[c.name+" of "+owner]
				}
				if waived {
					assert.False(t, ok, "needs no waiver any more: %s", reason)
					return
				}
				assert.True(t, ok, "error %v, lost %v", err, lost)
			})
		}
	}
}

// mergeLosses applies the desired object of a case over its live one and lists the unexpected
// differences.
func (f *fixture) mergeLosses(t *testing.T, c corpusCase) ([]string, error) {
	f.Helper()
	desired, live := f.acceptable(c.objects["desired"]), f.acceptable(c.objects["live"])
	labels, annotations := unchangedEntries(c.strings(t, "existingLabels"), live.GetLabels()), unchangedEntries(c.strings(t, "existingAnnotations"), live.GetAnnotations())
	foreign := live.DeepCopy()
	foreign.SetLabels(withoutKeys(live.GetLabels(), labels))
	foreign.SetAnnotations(withoutKeys(live.GetAnnotations(), annotations))
	if _, err := f.c.Mapping(f.ctx, desired.GroupVersionKind()); err != nil {
		_, err = f.apply(f.set(desired))
		return nil, err
	}
	if f.other == takeoverManagerName {
		if err := f.createOrUpdateAsOther(withTakeoverFields(foreign)); err != nil {
			return nil, fmt.Errorf("the object of before: %w", err)
		}
		foreign.SetLabels(mergeMaps(foreign.GetLabels(), map[string]string{gardenerKeys().ManagedByLabel: "gardener"}))
		f.other = "somebody"
	}
	if err := f.createOrUpdateAsOther(foreign); err != nil {
		return nil, fmt.Errorf("the live object: %w", err)
	}
	set := f.set(desired)
	if c.headers["preserveReplicas"] == "true" {
		set.Objects = append(set.Objects, f.object(fmt.Sprintf(`{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: h, namespace: NS},
  spec: {minReplicas: 1, maxReplicas: 9, scaleTargetRef: {apiVersion: apps/v1, kind: %s, name: %s}}}`, desired.GetKind(), desired.GetName())))
	}
	set.ForceOverwriteLabels = c.headers["forceOverwriteLabels"] == "true"
	set.ForceOverwriteAnnotations = c.headers["forceOverwriteAnnotations"] == "true"
	set.InjectLabels = c.strings(t, "injectLabels")
	if len(labels)+len(annotations) > 0 {
		ours := &unstructured.Unstructured{Object: map[string]any{}}
		ours.SetGroupVersionKind(live.GroupVersionKind())
		ours.SetName(live.GetName())
		ours.SetNamespace(live.GetNamespace())
		ours.SetLabels(commonEntries(live.GetLabels(), labels))
		ours.SetAnnotations(commonEntries(live.GetAnnotations(), annotations))
		_, err := f.resource(live).Apply(f.ctx, live.GetName(), ours, metav1.ApplyOptions{FieldManager: set.FieldManager, Force: true})
		require.NoError(t, err)
		require.NoError(t, f.inv.Save(f.ctx, []Entry{{Ref: RefOf(live), Labels: labels, Annotations: annotations, AppliedDigest: "before"}}))
	}
	if _, err := f.e.Apply(f.ctx, f.cluster(), set, f.inv, ApplyOptions{}); err != nil {
		return nil, err
	}
	if c.objects["expected"] == nil {
		return nil, nil
	}
	result := f.get(live)
	dropBookkeeping(result)
	expected := f.acceptable(c.objects["expected"])
	dropBookkeeping(expected)
	var lost []string
	for _, field := range redact.Compare(expected.Object, result.Object) {
		if list, ok := field.Old.([]any); ok && len(list) == 0 || field.Old == nil && !field.Hidden || field.Old == "" || field.Old == int64(0) {
			continue
		}
		if field.Path == "metadata.finalizers" && subset(expected.GetFinalizers(), result.GetFinalizers()) {
			continue // finalizers of others stay
		}
		lost = append(lost, fmt.Sprintf("%s: want %v, have %v", field.Path, field.Old, field.New))
	}
	for k := range labels {
		if _, wanted := expected.GetLabels()[k]; !wanted && result.GetLabels()[k] != "" {
			lost = append(lost, "label "+k+" should be gone")
		}
	}
	for k := range annotations {
		if _, wanted := expected.GetAnnotations()[k]; !wanted && result.GetAnnotations()[k] != "" {
			lost = append(lost, "annotation "+k+" should be gone")
		}
	}
	return lost, nil
}

// takeoverManagerName is a manager that wrote objects before us; the manager "somebody" is
// unrelated to us.
const takeoverManagerName = "gardener-resource-manager"

// withTakeoverFields returns a live object with only the fields that the former manager writes.
func withTakeoverFields(live *unstructured.Unstructured) *unstructured.Unstructured {
	out := live.DeepCopy()
	for _, path := range [][]string{{"metadata", "finalizers"}, {"metadata", "annotations"}, {"metadata", "generateName"}, {"metadata", "ownerReferences"}, {"secrets"},
		{"spec", "template", "metadata", "annotations", "kubectl.kubernetes.io/restartedAt"}} {
		unstructured.RemoveNestedField(out.Object, path...)
	}
	out.SetLabels(map[string]string{gardenerKeys().ManagedByLabel: "gardener"})
	return out
}

func subset(part, all []string) bool {
	return !slices.ContainsFunc(part, func(s string) bool { return !slices.Contains(all, s) })
}

// unchangedEntries returns the keys of the last apply that still have its value: no one else owns
// them.
func unchangedEntries(applied, live map[string]string) map[string]string {
	out := map[string]string{}
	for k, v := range applied {
		if live[k] == v {
			out[k] = v
		}
	}
	return out
}

func withoutKeys(m, keys map[string]string) map[string]string {
	out := map[string]string{}
	for k, v := range m {
		if _, drop := keys[k]; !drop {
			out[k] = v
		}
	}
	return out
}

func commonEntries(m, keys map[string]string) map[string]string {
	out := map[string]string{}
	for k, v := range m {
		if _, keep := keys[k]; keep {
			out[k] = v
		}
	}
	return out
}
