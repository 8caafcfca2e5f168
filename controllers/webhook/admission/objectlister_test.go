// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pergola-dev/pergola/api/crds"
	"github.com/pergola-dev/pergola/schemas"
	"github.com/pergola-dev/pergola/schemas/crosscheck"
)

const sparseShoot = `apiVersion: core.gardener.cloud/v1beta1
kind: Shoot
metadata: {name: sparse, namespace: garden-local}
spec:
  cloudProfile: {name: local}
  credentialsBindingName: local
  region: local
  seedName: local
  kubernetes: {version: "1.34"}
  networking: {type: calico, nodes: 10.20.0.0/16}
  provider: {type: local, workers: [{name: a, machine: {type: local}, minimum: 1, maximum: 1, zones: ["0"]}]}
`

// TestRelatedObjects: an API server with the webhooks mutates and rejects objects like upstream's,
// depending on its other objects.
func TestRelatedObjects(t *testing.T) {
	w := newTestServerWith(t, func(ctx context.Context, config *rest.Config) (ObjectLister, error) {
		return NewWatchedObjects(ctx, config)
	})
	shoot := func(change string) *unstructured.Unstructured {
		return mergeYAML(t, decodeObject(t, sparseShoot), change)
	}
	create := func(object *unstructured.Unstructured) []string { return causesOf(t, w.api.Create(w.ctx, object)) }

	assert.Equal(t, []string{
		`metadata.namespace FieldValueInvalid no Project in this landscape has spec.namespace "garden-local"`,
		`spec.cloudProfile.name FieldValueInvalid no CloudProfile "local" in this landscape`,
		`spec.credentialsBindingName FieldValueInvalid there is no CredentialsBinding "local" in namespace garden-local in this landscape; declare it, or list it in landscape.yaml under spec.external`,
		`spec.provider.workers[0].machine.image FieldValueRequired must be set, unless the cloud profile is part of the landscape`,
		`spec.seedName FieldValueInvalid no Seed "local" in this landscape`,
	}, create(shoot("")))

	// Created immediately after another: the test does not wait for stale caches.
	for _, object := range []*unstructured.Unstructured{
		landscapeObject(t, "projects/local/project.yaml", "Project"), landscapeObject(t, "gardenconfig/cloudprofile.yaml", "CloudProfile"),
		landscapeObject(t, "seeds/local.yaml", "Seed"), landscapeObject(t, "projects/local/credentials.yaml", "CredentialsBinding"),
	} {
		require.Empty(t, create(object), object.GetKind())
	}
	live := shoot("")
	require.Empty(t, create(live))
	for field, want := range map[string]any{
		"kubernetes.version": "1.34.1", "networking.pods": "100.96.0.0/11", "networking.services": "100.72.0.0/13",
		"dns.domain": "sparse.local.external.local.gardener.cloud", "cloudProfile.kind": "CloudProfile", "purpose": "evaluation",
		"kubernetes.kubelet.kubeReserved.cpu": "80m", "kubernetes.verticalPodAutoscaler.enabled": true, "kubernetes.verticalPodAutoscaler.evictionRateBurst": int64(1),
		"maintenance.autoRotation.credentials.etcdEncryptionKey.rotationPeriod": "672h0m0s",
	} {
		assert.Equal(t, want, fieldOf(live, "spec."+field), field)
	}
	worker := fieldOf(live, "spec.provider.workers").([]any)[0].(map[string]any)
	assert.Equal(t, map[string]any{"type": "local", "architecture": "amd64", "image": map[string]any{"name": "local", "version": "1.0.0"}}, worker["machine"])
	for _, label := range []string{"name.seed.gardener.cloud/local", "provider.extensions.gardener.cloud/local", "operatingsystemconfig.extensions.gardener.cloud/local"} {
		assert.Equal(t, "true", live.GetLabels()[label], label)
	}

	assert.Equal(t, []string{`spec.dns.domain FieldValueDuplicate the domain "sparse.local.external.local.gardener.cloud" already belongs to Shoot garden-local/sparse (spec.dns.domain); choose another one`,
		`spec.dns.domain FieldValueInvalid "sparse.local.external.local.gardener.cloud" is below the default domain "external.local.gardener.cloud" of the Seed, so it must be "other.local.external.local.gardener.cloud"; leave it out, or use another domain with a provider`,
	}, create(shoot("metadata: {name: other}\nspec: {dns: {domain: sparse.local.external.local.gardener.cloud}}")))

	t.Run("a version that has expired", func(t *testing.T) {
		expired := mergeYAML(t, landscapeObject(t, "gardenconfig/cloudprofile.yaml", "CloudProfile"),
			"metadata: {name: dated}\nspec: {kubernetes: {versions: [{version: 1.34.1}, {version: 1.33.5, expirationDate: \"2020-01-01T00:00:00Z\"}]}}")
		require.Empty(t, create(expired))
		causes := create(shoot("metadata: {name: dated}\nspec: {cloudProfile: {name: dated}, kubernetes: {version: 1.33.5}}"))
		require.Len(t, causes, 1)
		assert.Contains(t, causes[0], "has expired at 2020-01-01")
	})
	t.Run("an update", func(t *testing.T) {
		changed := live.DeepCopy()
		changed.SetLabels(map[string]string{"a": "b"})
		require.NoError(t, w.api.Update(w.ctx, changed))
		assert.Equal(t, "true", changed.GetLabels()["name.seed.gardener.cloud/local"], "the API keeps its labels")
		require.NoError(t, unstructured.SetNestedField(changed.Object, "1.34", "spec", "kubernetes", "version"))
		require.NoError(t, w.api.Update(w.ctx, changed))
		assert.Equal(t, "1.34.1", fieldOf(changed, "spec.kubernetes.version"), "the previous version stays")
		require.NoError(t, unstructured.SetNestedField(changed.Object, "none", "spec", "credentialsBindingName"))
		assert.Contains(t, causesOf(t, w.api.Update(w.ctx, changed)), `spec.credentialsBindingName FieldValueInvalid there is no CredentialsBinding "none" in namespace garden-local in this landscape; declare it, or list it in landscape.yaml under spec.external`)
	})
	t.Run("an exposure class", func(t *testing.T) {
		require.Empty(t, create(decodeObject(t, "apiVersion: core.gardener.cloud/v1beta1\nkind: ExposureClass\nmetadata: {name: internet}\nhandler: internet\nscheduling: {tolerations: [{key: exposed}]}")))
		assert.Equal(t, []string{"spec.tolerations[0].key FieldValueForbidden ExposureClass internet adds the toleration exposed; leave it out"},
			create(shoot("metadata: {name: exposed}\nspec: {exposureClassName: internet, tolerations: [{key: exposed}]}")))
		exposed := shoot("metadata: {name: exposed}\nspec: {exposureClassName: internet}")
		require.Empty(t, create(exposed))
		assert.Equal(t, []any{map[string]any{"key": "exposed"}}, fieldOf(exposed, "spec.tolerations"))
	})
	t.Run("what Shoots use stays", func(t *testing.T) {
		current := func(file, kind string) *unstructured.Unstructured {
			object := landscapeObject(t, file, kind)
			require.NoError(t, w.api.Get(w.ctx, client.ObjectKeyFromObject(object), object))
			return object
		}
		profile := current("gardenconfig/cloudprofile.yaml", "CloudProfile")
		versions := fieldOf(profile, "spec.kubernetes.versions").([]any)
		without := func(gone string) *unstructured.Unstructured {
			less := profile.DeepCopy()
			kept := slices.DeleteFunc(slices.Clone(versions), func(v any) bool { return v.(map[string]any)["version"] == gone })
			require.Len(t, kept, len(versions)-1)
			require.NoError(t, unstructured.SetNestedSlice(less.Object, kept, "spec", "kubernetes", "versions"))
			return less
		}
		w.eventually("the Shoot is seen", func() (bool, error) {
			err := w.api.Update(w.ctx, without("1.34.1"), client.DryRunAll)
			return apierrors.IsInvalid(err), ignoreInvalid(err)
		})
		assert.Equal(t, []string{`spec.kubernetes.versions FieldValueForbidden lost the Kubernetes version "1.34.1", which is used by Shoot garden-local/exposed and Shoot garden-local/sparse`},
			causesOf(t, w.api.Update(w.ctx, without("1.34.1"), client.DryRunAll)))
		require.NoError(t, w.api.Update(w.ctx, without("1.33.5"), client.DryRunAll), "nobody uses that one")

		seed := current("seeds/local.yaml", "Seed")
		require.NoError(t, unstructured.SetNestedStringSlice(seed.Object, []string{"other"}, "spec", "provider", "zones"))
		assert.Contains(t, causesOf(t, w.api.Update(w.ctx, seed, client.DryRunAll)), `spec.provider.zones FieldValueForbidden lost the zone "0", and Shoots are on the seed: Shoot garden-local/exposed and Shoot garden-local/sparse`)
	})
	t.Run("what stands around goes", func(t *testing.T) {
		require.NoError(t, w.unvalidated.Delete(w.ctx, landscapeObject(t, "projects/local/credentials.yaml", "CredentialsBinding")))
		current := &unstructured.Unstructured{}
		current.SetGroupVersionKind(live.GroupVersionKind())
		require.NoError(t, w.api.Get(w.ctx, client.ObjectKeyFromObject(live), current))
		current.SetAnnotations(map[string]string{"note": "a"})
		require.NoError(t, w.api.Update(w.ctx, current), "nothing of the content changes")
		require.NoError(t, unstructured.SetNestedField(current.Object, "testing", "spec", "purpose"))
		w.eventually("the binding is missed", func() (bool, error) {
			err := w.api.Update(w.ctx, current.DeepCopy(), client.DryRunAll)
			return apierrors.IsInvalid(err), client.IgnoreNotFound(ignoreInvalid(err))
		})
	})
	// Other kinds get the fields of their Shoot.
	managed := decodeObject(t, "apiVersion: seedmanagement.gardener.cloud/v1alpha1\nkind: ManagedSeed\nmetadata: {name: sparse, namespace: garden}\nspec: {shoot: {name: sparse}, gardenlet: {config: {}}}")
	assert.Contains(t, create(managed), `spec.shoot.name FieldValueInvalid there is no Shoot "sparse" in namespace garden in this landscape; declare it, or list it in landscape.yaml under spec.external`)
}

func ignoreInvalid(err error) error {
	if apierrors.IsInvalid(err) {
		return nil
	}
	return err
}

// causesOf returns the findings in an error: field, type and message.
func causesOf(t testing.TB, err error) []string {
	t.Helper()
	if err == nil {
		return nil
	}
	var status *apierrors.StatusError
	require.ErrorAs(t, err, &status)
	require.NotNil(t, status.ErrStatus.Details, err.Error())
	var out []string
	for _, cause := range status.ErrStatus.Details.Causes {
		out = append(out, cause.Field+" "+string(cause.Type)+" "+cause.Message)
	}
	return out
}

func fieldOf(object *unstructured.Unstructured, path string) any {
	value, _, _ := unstructured.NestedFieldNoCopy(object.Object, strings.Split(path, ".")...)
	return value
}

// emptyLister is a cluster that serves none of the kinds, or does not answer.
type emptyLister struct{ err error }

func (n emptyLister) Objects(context.Context, schema.GroupVersionKind, bool) ([]*unstructured.Unstructured, bool, error) {
	return nil, false, n.err
}

func TestUnservedKinds(t *testing.T) {
	h, err := New(t.Context(), Options{ObjectLister: emptyLister{}})
	require.NoError(t, err)
	shoot := landscapeObject(t, "projects/local/shoot.yaml", "Shoot")
	found, err := h.validateObject(t.Context(), shoot, nil)
	require.NoError(t, err)
	assert.False(t, schemas.HasErrors(found), "what refers to a kind that is not served is taken to be right: %v", found)

	// Unused fields are not reported, since defaults set them.
	full := h.defaults.withDefaults(shoot)
	around, err := h.readRelatedObjects(t.Context(), full, false)
	require.NoError(t, err)
	unread := func(v schemas.Violation) bool { return crosscheck.IsUnreadRule(v.Rule) }
	require.True(t, slices.ContainsFunc(h.crossCheck(around, full, nil), unread))
	found, err = h.validateObject(t.Context(), full, nil)
	require.NoError(t, err)
	assert.False(t, slices.ContainsFunc(found, unread), found)

	h.objectLister = emptyLister{errors.New("no answer")}
	_, err = h.validateObject(t.Context(), shoot, nil)
	assert.ErrorContains(t, err, "no answer")
	garden := landscapeObject(t, "garden/garden.yaml", "Garden")
	found, err = h.validateObject(t.Context(), garden, nil)
	require.NoError(t, err, "kinds of the runtime cluster have no surroundings")
	assert.False(t, schemas.HasErrors(found))
}

func TestRelatedKinds(t *testing.T) {
	var got []string
	docs := string(readFile(t, "../../../docs/reference/admission-webhooks.md"))
	_, docs, _ = strings.Cut(docs, "It needs to be allowed `list` and `watch`")
	var all []schema.GroupVersionKind
	for _, kind := range schemas.KnownKinds() {
		all = append(all, relatedKinds(kind.GroupKind())...)
	}
	slices.SortFunc(all, func(a, b schema.GroupVersionKind) int { return cmp.Compare(a.String(), b.String()) })
	for _, kind := range slices.Compact(all) {
		got = append(got, kind.Kind)
		assert.Regexp(t, `(?m)^\| `+kind.Group+` \|.*\b`+crds.Get(kind.Group, kind.Kind).Spec.Names.Plural+`\b`, docs)
	}
	assert.Equal(t, []string{"BackupBucket", "CloudProfile", "ControllerDeployment", "ControllerRegistration", "ExposureClass", "NamespacedCloudProfile", "Project",
		"Quota", "SecretBinding", "Seed", "Shoot", "CredentialsBinding", "WorkloadIdentity", "Gardenlet", "ManagedSeed"}, got, "no Secrets and ConfigMaps")
}

func TestPatchBetween(t *testing.T) {
	from := decodeObject(t, "a: 1\nlist: [{a: 1}]\ngone: x\nsame: {b: c}\napiVersion: v1\nkind: K").Object
	to := decodeObject(t, "a: 2\nlist: [{a: 1, b/c~: 2}, {d: 3}]\nnew: {e: false}\nsame: {b: c}\napiVersion: v1\nkind: K").Object
	var got []string
	for _, op := range patchBetween(from, to) {
		got = append(got, string(encodeJSON(t, op)))
	}
	assert.Equal(t, []string{
		`{"op":"remove","path":"/gone"}`, `{"op":"add","path":"/a","value":2}`, `{"op":"add","path":"/list/0/b~1c~0","value":2}`,
		`{"op":"add","path":"/list/-","value":{"d":3}}`, `{"op":"add","path":"/new","value":{"e":false}}`,
	}, got)
	assert.Empty(t, patchBetween(to, to))
}
