// SPDX-License-Identifier: Apache-2.0

package crds_test

import (
	"bufio"
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	gardencorev1 "github.com/pergola-dev/pergola/api/core/v1"
	"github.com/pergola-dev/pergola/api/crds"
	"github.com/pergola-dev/pergola/hack/apiserver"
	"github.com/pergola-dev/pergola/hack/corpus"
)

// TestDefinitionsOnAPIServer creates all definitions, and objects of their kinds, on a real API
// server.
func TestDefinitionsOnAPIServer(t *testing.T) {
	config := apiserver.Start(t)

	scheme := newScheme(t)
	require.NoError(t, apiextensionsv1.AddToScheme(scheme))
	require.NoError(t, clientgoscheme.AddToScheme(scheme))
	plain, err := client.New(config, client.Options{Scheme: scheme})
	require.NoError(t, err)
	c := client.WithFieldValidation(plain, "Strict")
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()

	for _, crd := range crds.All() {
		require.NoError(t, c.Create(ctx, crd), crd.Name)
	}
	for _, crd := range crds.All() {
		require.NoError(t, wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(ctx context.Context) (bool, error) {
			live := &apiextensionsv1.CustomResourceDefinition{}
			if err := c.Get(ctx, client.ObjectKeyFromObject(crd), live); err != nil {
				return false, err
			}
			return isServed(live), nil
		}), "%s is not served", crd.Name)
	}
	t.Run("versions of ControllerDeployment", func(t *testing.T) { checkOtherVersionPreservesFields(ctx, t, c) })
	t.Run("upstream's manifests", func(t *testing.T) { createUpstreamManifests(ctx, t, c) })
}

func isServed(crd *apiextensionsv1.CustomResourceDefinition) bool {
	for _, condition := range crd.Status.Conditions {
		switch condition.Type {
		case apiextensionsv1.Established:
			if condition.Status != apiextensionsv1.ConditionTrue {
				return false
			}
		case apiextensionsv1.NonStructuralSchema:
			return false
		}
	}
	return len(crd.Status.Conditions) > 0
}

func decodeObject(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal([]byte(text), &object.Object))
	return object
}

// checkOtherVersionPreservesFields checks that reading and writing a ControllerDeployment in the
// other version loses no field, without a conversion webhook.
func checkOtherVersionPreservesFields(ctx context.Context, t *testing.T, c client.Client) {
	old := decodeObject(t, "apiVersion: core.gardener.cloud/v1beta1\nkind: ControllerDeployment\nmetadata: {name: old}\ntype: helm\nproviderConfig: {chart: Zm9v, values: {a: 1}}")
	require.NoError(t, c.Create(ctx, old))
	written := old.DeepCopy().Object

	read := &gardencorev1.ControllerDeployment{}
	require.NoError(t, c.Get(ctx, client.ObjectKey{Name: "old"}, read))
	helm, err := read.HelmDeployment()
	require.NoError(t, err)
	assert.Equal(t, []byte("foo"), helm.RawChart)
	assert.JSONEq(t, `{"a": 1}`, string(helm.Values.Raw))
	read.Finalizers = nil
	read.Labels = map[string]string{"a": "b"}
	require.NoError(t, c.Update(ctx, read))

	require.NoError(t, c.Get(ctx, client.ObjectKey{Name: "old"}, old))
	assert.Equal(t, written["type"], old.Object["type"])
	assert.Equal(t, written["providerConfig"], old.Object["providerConfig"])
	assert.Equal(t, map[string]string{"a": "b"}, old.GetLabels())

	current := decodeObject(t, "apiVersion: core.gardener.cloud/v1\nkind: ControllerDeployment\nmetadata: {name: new}\nhelm: {rawChart: Zm9v}")
	require.NoError(t, c.Create(ctx, current))
	seen := &unstructured.Unstructured{}
	seen.SetGroupVersionKind(schema.GroupVersionKind{Group: "core.gardener.cloud", Version: "v1beta1", Kind: "ControllerDeployment"})
	require.NoError(t, c.Get(ctx, client.ObjectKey{Name: "new"}, seen))
	assert.Equal(t, map[string]any{"rawChart": "Zm9v"}, seen.Object["helm"])

	wrong := decodeObject(t, "apiVersion: core.gardener.cloud/v1\nkind: ControllerDeployment\nmetadata: {name: wrong}\nhelm: {chart: Zm9v}")
	assert.ErrorContains(t, c.Create(ctx, wrong), `unknown field "helm.chart"`)
}

// createUpstreamManifests creates upstream's complete manifests.
func createUpstreamManifests(ctx context.Context, t *testing.T, c client.Client) {
	dir := corpus.Dir(t)
	index, err := os.ReadFile(filepath.Join(dir, "valid-index.tsv"))
	require.NoError(t, err)
	created := map[string]int{}
	scanner := bufio.NewScanner(bytes.NewReader(index))
	scanner.Scan() // header
	for scanner.Scan() {
		columns := strings.Split(scanner.Text(), "\t")
		if columns[1] != "manifest" || columns[3] != "-" && !strings.HasSuffix(columns[3], ": ok") {
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir, "valid", columns[0]))
		require.NoError(t, err)
		for _, doc := range decodeDocuments(t, data) {
			object := &unstructured.Unstructured{Object: doc.decode(t)}
			if isNamespaced(doc.kind) {
				ensureNamespace(ctx, t, c, object)
			}
			assert.NoError(t, c.Create(ctx, object, client.DryRunAll), columns[0])
			created[doc.kind.Kind]++
		}
	}
	require.NoError(t, scanner.Err())
	assert.Greater(t, len(created), 15, "%v", created)
}

func isNamespaced(gvk schema.GroupVersionKind) bool {
	return crds.Get(gvk.Group, gvk.Kind).Spec.Scope == apiextensionsv1.NamespaceScoped
}

func ensureNamespace(ctx context.Context, t *testing.T, c client.Client, object *unstructured.Unstructured) {
	t.Helper()
	if object.GetNamespace() == "" {
		object.SetNamespace("garden")
	}
	namespace := &corev1.Namespace{}
	namespace.Name = object.GetNamespace()
	if err := c.Create(ctx, namespace); !apierrors.IsAlreadyExists(err) {
		require.NoError(t, err)
	}
}
