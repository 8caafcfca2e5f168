// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pergola-dev/pergola/api/crds"
	druidv1alpha1 "github.com/pergola-dev/pergola/api/druid/v1alpha1"
	extensionsv1alpha1 "github.com/pergola-dev/pergola/api/extensions/v1alpha1"
)

// TestValidatedKinds checks that every extension kind except Cluster is validated, by its resource.
func TestValidatedKinds(t *testing.T) {
	names := map[string]string{}
	for _, kind := range validatedKinds() {
		names[kind.resource+"."+kind.Group] = kind.Kind
	}
	for _, definition := range append(crds.ByGroup(extensionsv1alpha1.SchemeGroupVersion.Group), crds.Get(druidv1alpha1.SchemeGroupVersion.Group, "Etcd")) {
		if definition.Spec.Names.Kind == "Cluster" {
			continue
		}
		assert.Equal(t, definition.Spec.Names.Kind, names[definition.Name], definition.Name)
		delete(names, definition.Name)
	}
	assert.Empty(t, names)
	assert.Equal(t, "/validate-extensions-gardener-cloud-v1alpha1-backupbucket", validatedKinds()[0].path())
}

func TestValidateEtcd(t *testing.T) {
	for name, c := range map[string]struct {
		etcd, old string
		want      []string
	}{
		"no backups":    {"{metadata: {name: main, namespace: ns}}", "", nil},
		"a prefix":      {"{metadata: {name: main, namespace: ns}, spec: {backup: {store: {prefix: ns--uid/etcd-main}}}}", "", nil},
		"without name":  {"{metadata: {name: main, namespace: ns}, spec: {backup: {store: {prefix: ns--uid}}}}", "", []string{"spec.backup.store.prefix: Invalid value: \"ns--uid\": must contain"}},
		"without ns":    {"{metadata: {name: main, namespace: ns}, spec: {backup: {store: {prefix: etcd-main}}}}", "", []string{"spec.backup.store.prefix"}},
		"another place": {"{metadata: {name: main, namespace: ns}, spec: {backup: {store: {prefix: ns/main/2}}}}", "{metadata: {name: main, namespace: ns}, spec: {backup: {store: {prefix: ns/main/1}}}}", []string{"must not change"}},
		"backups now":   {"{metadata: {name: main, namespace: ns}, spec: {backup: {store: {prefix: ns/main}}}}", "{metadata: {name: main, namespace: ns}}", nil},
		"being deleted, changed": {"{metadata: {name: main, namespace: ns, deletionTimestamp: 2026-01-01T00:00:00Z}, spec: {replicas: 3}}", "{metadata: {name: main, namespace: ns}, spec: {replicas: 1}}",
			[]string{"spec: Forbidden: must not change"}},
		"being deleted, its finalizers": {"{metadata: {name: main, namespace: ns, deletionTimestamp: 2026-01-01T00:00:00Z}, spec: {backup: {store: {prefix: x}}}}",
			"{metadata: {name: main, namespace: ns, finalizers: [a]}, spec: {backup: {store: {prefix: x}}}}", nil},
	} {
		t.Run(name, func(t *testing.T) {
			var old *druidv1alpha1.Etcd
			if c.old != "" {
				old = read[druidv1alpha1.Etcd](t, c.old)
			}
			errs := validateEtcd(read[druidv1alpha1.Etcd](t, c.etcd), old)
			require.Len(t, errs, len(c.want))
			for i, want := range c.want {
				assert.ErrorContains(t, errs[i], want)
			}
		})
	}
}

func TestValidating(t *testing.T) {
	worker := validatedKinds()[len(validatedKinds())-1]
	count := 0
	respond := newValidating(worker, func(context.Context, *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		count++
		return &admissionv1.AdmissionResponse{Warnings: []string{"w"}}
	})
	response, err := respond(t.Context(), &admissionv1.AdmissionRequest{Kind: worker.GroupVersionKind, Operation: admissionv1.Create})
	require.NoError(t, err)
	assert.False(t, response.Allowed)
	assert.Equal(t, []string{"w"}, response.Warnings)
	response, err = respond(t.Context(), &admissionv1.AdmissionRequest{Kind: worker.GroupVersionKind, Operation: admissionv1.Delete})
	require.NoError(t, err)
	assert.True(t, response.Allowed)
	_, err = respond(t.Context(), &admissionv1.AdmissionRequest{Kind: podKind, Operation: admissionv1.Create})
	assert.ErrorContains(t, err, "fix the webhook configuration")
	assert.Equal(t, 1, count)
}

func TestRequireConfirmation(t *testing.T) {
	for _, c := range []struct {
		label, annotation string
		definition        bool
		ok                bool
	}{
		{"true", "", true, false}, {"true", "true", true, true}, {"true", "1", true, true}, {"true", "yes", true, false}, {"true", "false", true, false},
		{"", "", true, true}, {"false", "", true, true},
		{"", "", false, false}, {"", "true", false, true},
	} {
		object := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "ns", Labels: map[string]string{DeletionProtected: c.label},
			Annotations: map[string]string{"confirmation.gardener.cloud/deletion": c.annotation}}}
		err := requireConfirmation("Worker", object, c.definition)
		assert.Equal(t, c.ok, err == nil, "%+v", c)
		if err != nil {
			assert.EqualError(t, err, `Worker ns/a must have a "confirmation.gardener.cloud/deletion" annotation to delete it: set it to "true" first`)
			var no *denial
			require.True(t, errors.As(err, &no))
		}
	}
}

func TestIsProtected(t *testing.T) {
	answer := deletionProtection{}.respond
	for name, c := range map[string]struct {
		group, kind, subresource string
		operation                admissionv1.Operation
		refused                  bool
	}{
		"extension object": {"extensions.gardener.cloud", "Worker", "", admissionv1.Delete, true},
		"etcd":             {"druid.gardener.cloud", "Etcd", "", admissionv1.Delete, true},
		"bastion":          {"extensions.gardener.cloud", "Bastion", "", admissionv1.Delete, false},
		"cluster":          {"extensions.gardener.cloud", "Cluster", "", admissionv1.Delete, false},
		"managed resource": {"resources.gardener.cloud", "ManagedResource", "", admissionv1.Delete, false},
		"pod":              {"", "Pod", "", admissionv1.Delete, false},
		"an update":        {"extensions.gardener.cloud", "Worker", "", admissionv1.Update, false},
		"a subresource":    {"extensions.gardener.cloud", "Worker", "status", admissionv1.Delete, false},
	} {
		t.Run(name, func(t *testing.T) {
			request := &admissionv1.AdmissionRequest{Kind: metav1.GroupVersionKind{Group: c.group, Version: "v1alpha1", Kind: c.kind}, Operation: c.operation, SubResource: c.subresource}
			request.OldObject.Raw = []byte(`{"metadata":{"name":"a"}}`)
			response, err := answer(t.Context(), request)
			assert.Equal(t, c.refused, err != nil)
			assert.Equal(t, !c.refused, err == nil && response.Allowed)
		})
	}
	request := &admissionv1.AdmissionRequest{Kind: metav1.GroupVersionKind{Group: "extensions.gardener.cloud", Version: "v1alpha1", Kind: "Worker"}, Operation: admissionv1.Delete}
	request.OldObject.Raw = []byte(`{`)
	_, err := answer(t.Context(), request)
	assert.ErrorContains(t, err, "cannot be read")
	assert.False(t, strings.Contains(fmt.Sprint(err), "%!"))
}
