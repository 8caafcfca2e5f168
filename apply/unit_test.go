// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/change"
)

func refFor(apiVersion, kind, namespace, name string) Ref {
	return Ref{APIVersion: apiVersion, Kind: kind, Namespace: namespace, Name: name}
}

func configMapAt(version, value string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": "c", "namespace": "n", "resourceVersion": version}, "data": map[string]any{"v": value}}}
}

// TestStoreKeepsTheNewest: answers to our writes and the watch arrive in any order; the newest
// object must win.
func TestStoreKeepsTheNewest(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(s *store)
		want string // data.v, empty if deleted
	}{
		"watch after answer":       {func(s *store) { s.storeResponse(configMapAt("12", "b")); _ = s.Add(configMapAt("11", "a")) }, "b"},
		"answer after watch":       {func(s *store) { _ = s.Add(configMapAt("12", "b")); s.storeResponse(configMapAt("11", "a")) }, "b"},
		"answer after deletion":    {func(s *store) { _ = s.Delete(configMapAt("12", "")); s.storeResponse(configMapAt("11", "a")) }, ""},
		"answer is the deletion":   {func(s *store) { _ = s.Delete(configMapAt("12", "")); s.storeResponse(configMapAt("12", "a")) }, ""},
		"deletion of a former one": {func(s *store) { s.storeResponse(configMapAt("12", "b")); _ = s.Delete(configMapAt("11", "")) }, "b"},
		"made again":               {func(s *store) { _ = s.Delete(configMapAt("12", "")); _ = s.Add(configMapAt("13", "c")) }, "c"},
		"list older than the write": {func(s *store) {
			s.storeResponse(configMapAt("12", "b"))
			_ = s.Replace([]any{configMapAt("9", "a")}, "11")
		}, "b"},
		"list without what we wrote": {func(s *store) { s.storeResponse(configMapAt("12", "b")); _ = s.Replace(nil, "11") }, "b"},
		"list after it was deleted":  {func(s *store) { s.storeResponse(configMapAt("12", "b")); _ = s.Replace(nil, "13") }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			seen := map[nsName]*unstructured.Unstructured{}
			s := &store{selector: labels.Everything(), onList: func() {}, objects: map[nsName]*unstructured.Unstructured{},
				emit: func(e ChangeEvent) { seen[nsName{e.Ref.Namespace, e.Ref.Name}] = e.New }}
			_ = s.Add(configMapAt("10", "start"))
			c.do(s)
			got := ""
			if o := s.get(nsName{"n", "c"}); o != nil {
				got = nested(o, "data", "v").(string)
			}
			assert.Equal(t, c.want, got)
			assert.Equal(t, s.get(nsName{"n", "c"}), seen[nsName{"n", "c"}], "the last event tells the same")
		})
	}
}

func TestVerbs(t *testing.T) {
	for request, want := range map[string]string{
		"GET /api": "discovery", "GET /apis/apps/v1": "discovery", "GET /version": "discovery",
		"GET /api/v1/namespaces": "list", "GET /api/v1/namespaces/x": "get", "GET /api/v1/namespaces/x/pods": "list",
		"GET /apis/apps/v1/namespaces/x/deployments/d": "get", "GET /apis/apps/v1/deployments": "list",
		"GET /apis/apps/v1/deployments?watch=true": "watch", "POST /api/v1/pods?dryRun=All": "create-dry-run",
		"PUT /api/v1/pods": "update", "DELETE /api/v1/pods": "delete", "PATCH /api/v1/pods": "patch-apply",
	} {
		method, url, _ := strings.Cut(request, " ")
		req, err := http.NewRequest(method, "https://x"+url, nil)
		require.NoError(t, err)
		req.Header.Set("Content-Type", "application/apply-patch+yaml")
		assert.Equal(t, want, verbOf(req), request)
	}
}

func TestKindOrder(t *testing.T) {
	kinds := []Ref{refFor("example.com/v1", "Service", "", "not the core one"), refFor("apps/v1", "Deployment", "n", "d"), refFor("v1", "Secret", "n", "s"),
		refFor("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "", "w"), refFor("v1", "ServiceAccount", "n", "a"),
		refFor("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "c"), refFor("v1", "Namespace", "", "n"), refFor("v1", "Service", "n", "s"),
		refFor("rbac.authorization.k8s.io/v1", "RoleBinding", "n", "b"), refFor("rbac.authorization.k8s.io/v1", "Role", "n", "r"), refFor("v1", "ConfigMap", "n", "c")}
	var got [][]string
	for _, phase := range splitIntoPhases(kinds, func(r Ref) Ref { return r }) {
		var names []string
		for _, r := range phase {
			names = append(names, r.Kind)
		}
		got = append(got, names)
	}
	assert.Equal(t, [][]string{{"Namespace", "CustomResourceDefinition"}, {"ServiceAccount"}, {"Secret", "ConfigMap", "Role"},
		{"RoleBinding", "Service"}, {"Deployment"}, {"ValidatingWebhookConfiguration"}, {"Service"}}, got)
}

func invalidError(causes ...metav1.StatusCause) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: "Failure", Code: 422, Reason: metav1.StatusReasonInvalid,
		Message: "it is immutable, says a value", Details: &metav1.StatusDetails{Causes: causes}}}
}

func TestReasons(t *testing.T) {
	c, err := newCluster("seed", &rest.Config{Host: "https://seed.example.com"}, ClusterOptions{})
	require.NoError(t, err)
	defer c.Close()
	status := func(code int32, reason metav1.StatusReason, message string) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Status: "Failure", Code: code, Reason: reason, Message: message}}
	}
	for name, test := range map[string]struct {
		err  error
		want Reason
		hint string
	}{
		"server certificate": {&UnreachableError{Cause: x509.CertificateInvalidError{Reason: x509.Expired}}, ReasonCertificateExpired, "renew"},
		"no connection":      {&UnreachableError{Host: "h", Cause: errors.New("refused")}, ReasonUnreachable, "network"},
		"canceled":           {context.Canceled, ReasonCanceled, "run again"},
		"webhook said no":    {status(403, metav1.StatusReasonForbidden, `admission webhook "w.example.com" denied the request: no`), ReasonWebhookDenied, "w.example.com"},
		"webhook is away":    {status(500, metav1.StatusReasonInternalError, `failed calling webhook "w.example.com": dial`), ReasonWebhookDenied, "does not answer"},
		"policy":             {status(422, metav1.StatusReasonInvalid, `ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no`), ReasonWebhookDenied, "p "},
		"immutable":          {invalidError(metav1.StatusCause{Field: "spec.x", Message: "field is immutable"}), ReasonImmutable, "recreated"},
		"roleRef":            {invalidError(metav1.StatusCause{Field: "roleRef", Message: `Invalid value: {}: cannot change roleRef`}), ReasonImmutable, "recreated"},
		"StatefulSet":        {invalidError(metav1.StatusCause{Field: "spec", Message: "Forbidden: updates to statefulset spec for fields other than 'replicas' are forbidden"}), ReasonImmutable, "recreated"},
		"typo beside it":     {invalidError(metav1.StatusCause{Field: "spec.x", Message: "field is immutable"}, metav1.StatusCause{Field: "spec.y", Message: "Unsupported value"}), ReasonInvalid, "correct"},
		"typo":               {invalidError(metav1.StatusCause{Field: "spec.type", Message: "Unsupported value"}), ReasonInvalid, "correct"},
		"overload":           {status(429, metav1.StatusReasonTooManyRequests, "busy"), ReasonTimeout, "overloaded"},
		"anything":           {errors.New("surprise"), ReasonOther, ""},
	} {
		t.Run(name, func(t *testing.T) {
			e := c.objectErrorFor(Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "n", Name: "c"}, "apply", test.err)
			assert.Equal(t, test.want, e.Reason)
			assert.Contains(t, e.Hint, test.hint)
			assert.Contains(t, e.Error(), "cluster seed: ConfigMap n/c: apply")
			assert.ErrorIs(t, e, test.err)
		})
	}
}

func TestProjectionIgnoresWhatOthersAdd(t *testing.T) {
	live := parse(t, "n", `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: d
  labels: {ours: a, theirs: b}
  finalizers: [z, ours/f]
  managedFields:
  - manager: pergola
    operation: Apply
    apiVersion: apps/v1
    fieldsType: FieldsV1
    fieldsV1: {"f:metadata": {"f:labels": {"f:ours": {}}, "f:finalizers": {'v:"ours/f"': {}}},
      "f:spec": {"f:template": {"f:spec": {"f:containers": {'k:{"name":"app"}': {".": {}, "f:name": {}, "f:image": {}, "f:args": {}}}}}}}
spec: {replicas: 3, template: {spec: {containers: [{name: app, image: i, args: [x], env: []}]}}}
`)
	base := liveDigest(live, "pergola", nil)
	change := func(f func(o *unstructured.Unstructured)) string {
		o := live.DeepCopy()
		f(o)
		return liveDigest(o, "pergola", nil)
	}
	container := func(o *unstructured.Unstructured) (list []any, c map[string]any) {
		list = nested(o, "spec", "template", "spec", "containers").([]any)
		return list, list[0].(map[string]any)
	}
	for name, f := range map[string]func(o *unstructured.Unstructured){
		"foreign label":     func(o *unstructured.Unstructured) { o.SetLabels(map[string]string{"ours": "a", "new": "x"}) },
		"foreign finalizer": func(o *unstructured.Unstructured) { o.SetFinalizers([]string{"ours/f"}) },
		"sidecar in front": func(o *unstructured.Unstructured) {
			list, _ := container(o)
			_ = unstructured.SetNestedSlice(o.Object, append([]any{map[string]any{"name": "sidecar"}}, list...), "spec", "template", "spec", "containers")
		},
		"foreign field": func(o *unstructured.Unstructured) { _, c := container(o); c["workingDir"] = "/" },
	} {
		assert.Equal(t, base, change(f), name)
	}
	for name, f := range map[string]func(o *unstructured.Unstructured){
		"our label":       func(o *unstructured.Unstructured) { o.SetLabels(map[string]string{"ours": "changed"}) },
		"our finalizer":   func(o *unstructured.Unstructured) { o.SetFinalizers([]string{"z"}) },
		"our image":       func(o *unstructured.Unstructured) { _, c := container(o); c["image"] = "j" },
		"our list":        func(o *unstructured.Unstructured) { _, c := container(o); c["args"] = []any{"x", "y"} },
		"container gone":  func(o *unstructured.Unstructured) { _, c := container(o); c["name"] = "other" },
		"ownership taken": func(o *unstructured.Unstructured) { o.SetManagedFields(nil) },
	} {
		assert.NotEqual(t, base, change(f), name)
	}
}

func TestInventoryInAConfigMap(t *testing.T) {
	c, err := newCluster("x", &rest.Config{Host: "https://x.example.com"}, ClusterOptions{})
	require.NoError(t, err)
	defer c.Close()
	inv := NewConfigMapInventory(c, "garden", "i", map[string]string{"a": "b"}).(*configMapInventory)
	for _, size := range []int{0, 1, 6000} {
		var entries []Entry
		for range size {
			entries = append(entries, Entry{Ref: refFor("v1", "ConfigMap", "n", strings.Repeat("x", 60)), AppliedDigest: "1", LiveDigest: "2", CreateOnlyFields: []string{createOnlyReplicas}})
		}
		o, err := inv.object(entries)
		require.NoError(t, err)
		assert.Equal(t, map[string]string{"a": "b", "resources.gardener.cloud/managed-by": "gardener"}, o.GetLabels())
		raw, err := json.Marshal(o)
		require.NoError(t, err)
		assert.Less(t, len(raw), 1<<20)
		back, err := decodeEntries(o)
		require.NoError(t, err)
		assert.Equal(t, entries, back)
	}
	former := `{"kind":"ConfigMap","name":"a","held":"too many"}` + "\n" + `{"kind":"ConfigMap","name":"b","heldFor":{"code":"NotReviewed"}}`
	back, err := decodeEntries(&unstructured.Unstructured{Object: map[string]any{"data": map[string]any{inventoryKey: former}}})
	require.NoError(t, err)
	assert.Equal(t, map[Ref]change.Reason{{Kind: "ConfigMap", Name: "a"}: {Detail: "too many"}, {Kind: "ConfigMap", Name: "b"}: {Code: landscapev1alpha1.HeldNotReviewed}}, HeldReasons(back),
		"nothing that a former version held is forgotten")
	_, err = decodeEntries(&unstructured.Unstructured{Object: map[string]any{"data": map[string]any{inventoryKey: "{broken"}}})
	assert.ErrorContains(t, err, "line 1 is damaged")
}

func TestEquivalentKindsAreNotPruned(t *testing.T) {
	r := &setRun{set: &Set{Equivalences: [][]schema.GroupKind{{{Group: "a", Kind: "X"}, {Group: "b", Kind: "X"}}}}, entries: map[objectKey]Entry{}}
	old := refFor("extensions/v1beta1", "Deployment", "n", "d")
	r.desired = []*desiredObject{{ref: refFor("apps/v1", "Deployment", "n", "d")}, {ref: refFor("b/v1", "X", "n", "x")}}
	r.entries[objectKeyOf(old)] = Entry{Ref: old}
	wanted := r.wantedKeys()
	assert.True(t, wanted[objectKeyOf(old)])
	assert.True(t, wanted[objectKeyOf(refFor("a/v1", "X", "n", "x"))])
	assert.False(t, wanted[objectKeyOf(refFor("a/v1", "X", "n", "other"))])
	assert.Empty(t, r.entries, "the former name of the same object is forgotten")
}

// TestTakeoverKeepsFinalizers: a finalizer marks pending work, so a takeover does not remove it.
func TestTakeoverKeepsFinalizers(t *testing.T) {
	entry := func(fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: "gardener-operator", Operation: metav1.ManagedFieldsOperationUpdate, FieldsV1: metav1.NewFieldsV1(fields)}
	}
	for before, after := range map[string]string{
		`{"f:metadata":{"f:finalizers":{".":{},"v:\"gardener.cloud/operator\"":{}},"f:labels":{"f:a":{}}},"f:spec":{}}`: `{"f:metadata":{"f:labels":{"f:a":{}}},"f:spec":{}}`,
		`{"f:metadata":{"f:finalizers":{"v:\"a\"":{}}}}`:                                                                `{}`,
		`{"f:spec":{"f:finalizers":{}}}`:                                                                                `{"f:spec":{"f:finalizers":{}}}`,
	} {
		assert.JSONEq(t, after, withoutFinalizers(entry(before)).FieldsV1.String())
	}
}

// TestDriftDuringTheFirstApply: the watch may report an object that someone deletes at once before
// the answer to its first apply arrives.
func TestDriftDuringTheFirstApply(t *testing.T) {
	c, err := newCluster("x", &rest.Config{Host: "https://x.example.com"}, ClusterOptions{})
	require.NoError(t, err)
	defer c.Close()
	tracked, e := newTracker(), Entry{Ref: refFor("v1", "ConfigMap", "n", "a"), AppliedDigest: "1", LiveDigest: "2"}
	var later []ChangeEvent
	tracked.subscribe(func(_ *Cluster, ev ChangeEvent) { later = append(later, ev) })
	deleted := ChangeEvent{Ref: e.Ref}

	done := tracked.beginWrite(c, e.key())
	assert.Nil(t, tracked.detectDrift(c, deleted))
	tracked.recordApplied(c, "s", "m", e)
	done()
	assert.Equal(t, []ChangeEvent{deleted}, later)
	drift := tracked.detectDrift(c, deleted)
	require.NotNil(t, drift)
	assert.True(t, drift.Deleted)

	never := Entry{Ref: refFor("v1", "ConfigMap", "n", "b")}
	tracked.beginWrite(c, never.key())()
	assert.Nil(t, tracked.detectDrift(c, ChangeEvent{Ref: never.Ref}), "what was not applied has not drifted")
}
