// SPDX-License-Identifier: Apache-2.0

package recovery

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pergola-dev/pergola/controllers/landscape"
	"github.com/pergola-dev/pergola/hack/apiserver"
)

// rewriteArchive writes and reads an archive.
func rewriteArchive(t *testing.T, a *Archive) *Archive {
	t.Helper()
	id := newIdentity(t)
	var file bytes.Buffer
	require.NoError(t, Seal(&file, a, id.Recipient()))
	out, err := Open(&file, id)
	require.NoError(t, err)
	return out
}

func entryNames(a *Archive, sort Origin) []string {
	var out []string
	for _, e := range a.Entries {
		if e.Item.Origin == sort {
			out = append(out, e.Item.Kind+" "+e.Item.Name)
		}
	}
	slices.Sort(out)
	return out
}

// TestRecovery loses a runtime cluster during a rotation and restores it with the same CAs, keys
// and names. The steps build on each other.
func TestRecovery(t *testing.T) {
	apiserver.SkipIfUnavailable(t)
	before := newSiteToLose(t)
	uid := string(before.garden().GetUID())
	ctx := t.Context()

	a := before.collect()
	assert.Equal(t, Landscape{Name: "lost", Revision: "abc"}, a.Manifest.Landscape)
	assert.Equal(t, uid, a.Manifest.Garden.UID)
	assert.Equal(t, "lost", a.Manifest.Garden.ClusterIdentity)
	assert.Equal(t, []string{"Secret by-hand", "Secret wildcard"}, entryNames(a, OriginReferenced), "what Git declares is not in it, nor what nobody refers to")
	assert.Equal(t, []string{"ConfigMap " + recordsName}, entryNames(a, OriginRecorded))
	generated := before.generated()
	assert.Len(t, entryNames(a, OriginGenerated), len(generated))
	manifest, err := json.Marshal(a.Manifest)
	require.NoError(t, err)
	assert.NotContains(t, string(manifest), hiddenValue)
	a = rewriteArchive(t, a)

	after := newSite(t, apiserver.Start(t))
	p, err := after.restorer(a).Plan(ctx)
	require.NoError(t, err)
	assert.True(t, p.HasWrites())
	assert.Empty(t, p.RefusedSteps())
	_, err = after.client.CoreV1().Namespaces().Get(ctx, "garden", metav1.GetOptions{})
	require.Error(t, err, "a plan writes nothing")

	t.Log("a restore that is interrupted")
	interrupted, cancel := context.WithCancel(ctx)
	r := after.restorer(a)
	r.OnStep = func(Step) { cancel() }
	_, err = r.Restore(interrupted)
	require.ErrorIs(t, err, context.Canceled)
	after.connect()
	assert.Less(t, len(after.generated()), len(generated))
	err = after.apply()
	require.ErrorContains(t, err, "backup "+a.Manifest.ID+" is not restored completely")
	assert.Less(t, len(after.generated()), len(generated), "nothing was generated anew")
	_, err = Collect(ctx, Source{Landscape: after.landscape, Clusters: siteClusters(after)})
	require.ErrorContains(t, err, "is being restored")
	other := rewriteArchive(t, before.collect())
	p, err = after.restorer(other).Plan(ctx)
	require.NoError(t, err)
	require.Len(t, p.RefusedSteps(), 1, "another backup has to wait")
	assert.Contains(t, p.RefusedSteps()[0].Reason, "backup "+a.Manifest.ID+" is being restored to it")

	t.Log("and gone on with")
	after.connect()
	p, err = after.restorer(a).Restore(ctx)
	require.NoError(t, err)
	assert.True(t, p.HasWrites())
	assert.Equal(t, generated, after.generated())
	byHand, err := after.client.CoreV1().Secrets("garden").Get(ctx, "by-hand", metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, hiddenValue, string(byHand.Data["a"]))
	assert.NotContains(t, byHand.Annotations, lastApplied)
	maps := after.client.CoreV1().ConfigMaps("garden")
	record, err := maps.Get(ctx, recordsName, metav1.GetOptions{})
	require.NoError(t, err)
	assert.Len(t, record.Data, 2)
	garden := after.garden()
	assert.NotContains(t, garden.GetAnnotations(), landscape.AnnotationRestoreUnfinished)
	assert.NotEqual(t, uid, string(garden.GetUID()))
	assert.Equal(t, gardenCredentials(before.garden()), gardenCredentials(garden))
	p, err = after.restorer(a).Restore(ctx)
	require.NoError(t, err)
	assert.False(t, p.HasWrites(), "%+v", p.Steps)

	_, err = maps.Patch(ctx, recordsName, types.MergePatchType, []byte(`{"data":{"op.first":null,"op.second":"{}"}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	_, err = after.restorer(a).Restore(ctx)
	require.NoError(t, err)
	record, err = maps.Get(ctx, recordsName, metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, map[string]string{"op.first": executedRecord, "op.second": "{}"}, record.Data, "what was recorded since stays")

	t.Log("apply comes up with all of it")
	require.NoError(t, after.apply())
	assert.Equal(t, generated, after.generated(), "nothing was generated anew, and nothing is of no use")
	assert.Equal(t, before.componentData(), after.componentData())
	assert.Equal(t, uid, after.componentData()["uid"])
	assert.Equal(t, gardenCredentials(before.garden()), gardenCredentials(after.garden()))
	for _, f := range after.garden().GetManagedFields() {
		if f.Manager == fieldManager && f.Subresource == "" {
			assert.NotContains(t, f.FieldsV1.GetRawString(), "f:spec", "what Git declares is Git's alone")
		}
	}

	t.Log("the rotation goes on")
	after.patchGarden(`{"metadata":{"annotations":{"gardener.cloud/operation":"rotate-ca-complete"}}}`, "")
	require.NoError(t, after.apply())
	assert.Less(t, len(after.generated()), len(generated))
	p, err = after.restorer(a).Plan(ctx)
	require.NoError(t, err)
	assert.False(t, p.HasWrites(), "a CA that was taken away is not brought back into a Garden that lives: %+v", p.Steps)
	again := after.collect()
	assert.Equal(t, uid, again.Manifest.Garden.UID, "the backup of what was restored can be restored again")
}

func gardenCredentials(garden *unstructured.Unstructured) any {
	out, _, _ := unstructured.NestedMap(garden.Object, "status", "credentials")
	return out
}

// loseGarden deletes the Garden without its cleanup, as the loss of a cluster does: it removes the
// finalizers.
func (s *site) loseGarden() {
	s.Helper()
	secrets, err := s.client.CoreV1().Secrets("garden").List(s.Context(), metav1.ListOptions{})
	require.NoError(s, err)
	free := []byte(`{"metadata":{"finalizers":null}}`)
	for _, secret := range secrets.Items {
		_, err := s.client.CoreV1().Secrets("garden").Patch(s.Context(), secret.Name, types.MergePatchType, free, metav1.PatchOptions{})
		require.NoError(s, err)
	}
	_, err = s.gardens().Patch(s.Context(), "lost", types.MergePatchType, free, metav1.PatchOptions{})
	require.NoError(s, err)
	require.NoError(s, s.gardens().Delete(s.Context(), "lost", metav1.DeleteOptions{}))
}

// TestRefusedRestore: conflicting objects prevent a restore and are named; then nothing is written.
func TestRefusedRestore(t *testing.T) {
	apiserver.SkipIfUnavailable(t)
	config := apiserver.Start(t)
	before := newSite(t, config)
	_, err := Collect(t.Context(), Source{Landscape: before.landscape, Clusters: siteClusters(before)})
	require.ErrorContains(t, err, "cluster runtime has no Garden")
	require.NoError(t, before.apply())
	before.patchGarden(`{"status":{"credentials":{"encryptionAtRest":{"resources":[],"provider":{"type":"aescbc"}}}}}`, "status")
	require.NoError(t, before.apply())
	a := rewriteArchive(t, before.collect())
	ctx := t.Context()

	t.Log("the same one that lives")
	p, err := before.restorer(a).Restore(ctx)
	require.NoError(t, err)
	assert.False(t, p.HasWrites())

	for name, test := range map[string]struct {
		change func(*Archive, *Restorer)
		want   string
	}{
		"another landscape":    {func(_ *Archive, r *Restorer) { r.Landscape = "other" }, `the backup belongs to landscape "lost", not to "other"`},
		"another Garden":       {func(a *Archive, _ *Restorer) { a.Manifest.Garden.Name = "other" }, `the backup belongs to Garden "other", but the landscape declares "lost"`},
		"another identity":     {func(a *Archive, _ *Restorer) { a.Manifest.Garden.ClusterIdentity = "x" }, `with the cluster identity "x"`},
		"a cluster it has not": {func(_ *Archive, r *Restorer) { r.OnlyClusters = []string{"seed"} }, `--cluster seed: there is no cluster in the backup "seed"; want one of runtime`},
	} {
		t.Run(name, func(t *testing.T) {
			copied := *a
			r := before.restorer(&copied)
			test.change(&copied, r)
			_, err := r.Restore(ctx)
			require.ErrorContains(t, err, test.want)
		})
	}

	t.Log("another one that lives")
	foreign := *a
	foreign.Manifest.Garden.UID = "of-another-cluster"
	_, err = before.restorer(&foreign).Restore(ctx)
	var refused *RefusedError
	require.ErrorAs(t, err, &refused)
	require.ErrorContains(t, err, "runtime: Garden lost: it is another Garden")

	t.Log("no Garden, but other Secrets")
	before.loseGarden()
	var name string
	for _, e := range a.Entries {
		if strings.HasPrefix(e.Item.Name, "ca-") && !strings.HasPrefix(e.Item.Name, "ca-bundle") {
			name = e.Item.Name
		}
	}
	require.NotEmpty(t, name)
	secrets := before.client.CoreV1().Secrets("garden")
	ca, err := secrets.Get(ctx, name, metav1.GetOptions{})
	require.NoError(t, err)
	require.NoError(t, secrets.Delete(ctx, name, metav1.DeleteOptions{}))
	fresh := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: ca.Labels}, StringData: map[string]string{"ca.crt": "another"}}
	_, err = secrets.Create(ctx, fresh, metav1.CreateOptions{})
	require.NoError(t, err)
	more := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "more", Labels: ca.Labels}, StringData: map[string]string{"ca.crt": "another"}}
	_, err = secrets.Create(ctx, more, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = before.restorer(a).Restore(ctx)
	require.ErrorAs(t, err, &refused)
	var named []string
	for _, s := range refused.Steps {
		named = append(named, s.Name)
	}
	assert.ElementsMatch(t, []string{name, "more"}, named)
	list, err := before.gardens().List(ctx, metav1.ListOptions{})
	require.NoError(t, err)
	assert.Empty(t, list.Items)
}
