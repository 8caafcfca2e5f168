// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"context"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	confirmation = "{metadata: {annotations: {confirmation.gardener.cloud/deletion: 'true'}}}"
	anExtension  = "{apiVersion: extensions.gardener.cloud/v1alpha1, kind: Extension, metadata: {name: a}, spec: {type: a}}"
	anEtcd       = "{apiVersion: druid.gardener.cloud/v1alpha1, kind: Etcd, metadata: {name: main}, spec: {selector: {matchLabels: {a: b}}, labels: {a: b}, replicas: 1, etcd: {}, backup: {}, sharedConfig: {}}}"
)

// assertDeletionDenied checks that an error is the denial of the webhook.
func assertDeletionDenied(t *testing.T, err error) {
	t.Helper()
	require.Error(t, err)
	assert.ErrorContains(t, err, `must have a "confirmation.gardener.cloud/deletion" annotation to delete`)
	assert.Equal(t, metav1.StatusReasonForbidden, apierrors.ReasonForError(err))
}

func testDeletionIsConfirmed(t *testing.T, w *testServer) {
	s := newTestNamespace(t, w, "{labels: {a: b}}")
	for _, text := range []string{anExtension, anEtcd} {
		object := s.create(text)
		assertDeletionDenied(t, w.api.Delete(s.ctx, object))
		assertDeletionDenied(t, w.api.Delete(s.ctx, object, client.DryRunAll))
		require.NoError(t, s.patch(object, "{metadata: {annotations: {confirmation.gardener.cloud/deletion: 'no'}}}"))
		assertDeletionDenied(t, w.api.Delete(s.ctx, object))
		require.NoError(t, s.patch(object, confirmation))
		require.NoError(t, w.api.Delete(s.ctx, object))
		assert.True(t, apierrors.IsNotFound(w.api.Get(s.ctx, client.ObjectKeyFromObject(object), object)))
	}
	for _, text := range []string{
		"{apiVersion: extensions.gardener.cloud/v1alpha1, kind: Bastion, metadata: {name: a}, spec: {type: a, userData: YQ==, ingress: [{ipBlock: {cidr: 1.2.3.4/32}}]}}",
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}",
	} {
		require.NoError(t, w.api.Delete(s.ctx, s.create(text)))
	}
}

func testCollectionsAreConfirmed(t *testing.T, w *testServer) {
	s := newTestNamespace(t, w, "{labels: {a: b}}")
	first, second := s.create(anExtension), parseObject(anExtension)
	second.SetName("b")
	second.SetNamespace(s.ns)
	require.NoError(t, w.api.Create(s.ctx, second))
	require.NoError(t, s.patch(first, confirmation))
	kind := &unstructured.Unstructured{}
	kind.SetGroupVersionKind(first.GroupVersionKind())
	assertDeletionDenied(t, w.api.DeleteAllOf(s.ctx, kind, client.InNamespace(s.ns)))
	require.NoError(t, w.api.Get(s.ctx, client.ObjectKeyFromObject(second), second), "what was not confirmed stays")

	// If an API server does not send the deleted objects, the webhook reads the collection.
	request := &admissionv1.AdmissionRequest{Kind: metav1.GroupVersionKind(first.GroupVersionKind()), Operation: admissionv1.Delete, Namespace: s.ns}
	protection := deletionProtection{w.api}
	_, err := protection.respond(s.ctx, request)
	assert.ErrorContains(t, err, "Extension "+s.ns+"/b must have")
	require.NoError(t, s.patch(second, confirmation))
	response, err := protection.respond(s.ctx, request)
	require.NoError(t, err)
	assert.True(t, response.Allowed)
	require.NoError(t, w.api.DeleteAllOf(s.ctx, kind, client.InNamespace(s.ns)))
	assert.True(t, apierrors.IsNotFound(w.api.Get(s.ctx, client.ObjectKeyFromObject(second), second)))

	// If a request only names the object, the webhook reads it.
	request.Name = "gone"
	response, err = protection.respond(s.ctx, request)
	require.NoError(t, err)
	assert.True(t, response.Allowed)
	s.create(anExtension)
	request.Name = "a"
	_, err = protection.respond(s.ctx, request)
	assert.ErrorContains(t, err, "Extension "+s.ns+"/a must have")
	// If the objects are unreadable, nothing is deleted.
	ctx, cancel := context.WithCancel(s.ctx)
	cancel()
	for _, name := range []string{"", "a"} {
		request.Name = name
		_, err = protection.respond(ctx, request)
		assert.ErrorIs(t, err, context.Canceled)
	}
}

func testDefinitionsAreProtected(t *testing.T, w *testServer) {
	s := newTestNamespace(t, w, "{labels: {a: b}}")
	made := func(name string, labels map[string]string) *apiextensionsv1.CustomResourceDefinition {
		d := permissiveDefinition(s.ns+".example.com", "A"+name, "a"+name+"s")
		d.Annotations, d.Labels = nil, labels
		d.Spec.Names.Singular = "a" + name
		require.NoError(t, w.api.Create(s.ctx, d))
		return d
	}
	plain, protected := made("plain", nil), made("protected", map[string]string{DeletionProtected: "true"})
	require.NoError(t, w.api.Delete(s.ctx, plain))
	assertDeletionDenied(t, w.api.Delete(s.ctx, protected))
	assertDeletionDenied(t, w.api.DeleteAllOf(s.ctx, &apiextensionsv1.CustomResourceDefinition{}, client.MatchingLabels{DeletionProtected: "true"}))
	s.eventually("it is confirmed", func() bool {
		if err := w.api.Get(s.ctx, client.ObjectKeyFromObject(protected), protected); err != nil {
			return false
		}
		protected.Annotations = map[string]string{"confirmation.gardener.cloud/deletion": "true"}
		return w.api.Update(s.ctx, protected) == nil
	})
	require.NoError(t, w.api.Delete(s.ctx, protected))
}

func testExtensionsAreValidated(t *testing.T, w *testServer) {
	s := newTestNamespace(t, w, "{labels: {a: b}}")
	_, err := s.tryCreate("{apiVersion: extensions.gardener.cloud/v1alpha1, kind: Extension, metadata: {name: a}, spec: {type: ''}}")
	assert.ErrorContains(t, err, "validation.extensions.extensions.resources.gardener.cloud")
	var status *apierrors.StatusError
	require.ErrorAs(t, err, &status)
	assert.Equal(t, int32(http.StatusUnprocessableEntity), status.ErrStatus.Code)
	assert.ErrorContains(t, err, "spec.type")

	extension := s.create(anExtension)
	assert.ErrorContains(t, s.patch(extension.DeepCopy(), "{spec: {type: b}}"), "spec.type")
	require.NoError(t, s.patch(extension, "{spec: {providerConfig: {a: b}}, metadata: {finalizers: [a.example.com/b]}}"))
	require.NoError(t, s.patch(extension, confirmation))
	require.NoError(t, w.api.Delete(s.ctx, extension))
	require.NoError(t, w.api.Get(s.ctx, client.ObjectKeyFromObject(extension), extension))
	assert.Error(t, s.patch(extension.DeepCopy(), "{spec: {providerConfig: {a: c}}}"), "it is being deleted")
	require.NoError(t, s.patch(extension, "{metadata: {finalizers: null}}"))

	const record = "{apiVersion: extensions.gardener.cloud/v1alpha1, kind: DNSRecord, metadata: {name: a}, spec: {type: a, secretRef: {name: a, namespace: b}, name: a.example.com, recordType: A, values: [VALUE]}}"
	_, err = s.tryCreate(record)
	assert.ErrorContains(t, err, "spec.values[0]")

	_, err = s.tryCreate("{apiVersion: druid.gardener.cloud/v1alpha1, kind: Etcd, metadata: {name: main}, spec: {selector: {matchLabels: {a: b}}, labels: {a: b}, replicas: 1, etcd: {}, backup: {store: {prefix: other}}, sharedConfig: {}}}")
	assert.ErrorContains(t, err, "spec.backup.store.prefix")
	etcd := s.create("{apiVersion: druid.gardener.cloud/v1alpha1, kind: Etcd, metadata: {name: main}, spec: {selector: {matchLabels: {a: b}}, labels: {a: b}, replicas: 1, etcd: {}, backup: {store: {prefix: " + s.ns + "/main}}, sharedConfig: {}}}")
	assert.ErrorContains(t, s.patch(etcd.DeepCopy(), "{spec: {backup: {store: {prefix: "+s.ns+"/main/2}}}}"), "the backups are under the old prefix")
	require.NoError(t, s.patch(etcd, "{spec: {replicas: 3}}"))
}
