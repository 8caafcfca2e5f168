// SPDX-License-Identifier: Apache-2.0

package adoption

// This file completes what a recording omits or what differs between clusters.

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/andybalholm/brotli"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/pergola-dev/pergola/controllers/landscape"
	"github.com/pergola-dev/pergola/render"
)

// copyUIDSchedules copies the schedules of defragmentation and backup, which depend on the Garden's
// UID.
func (u *upstream) copyUIDSchedules(o, rendered *unstructured.Unstructured) {
	u.Helper()
	if o.GetKind() != "Etcd" {
		return
	}
	for _, path := range [][]string{{"spec", "etcd", "defragmentationSchedule"}, {"spec", "backup", "fullSnapshotSchedule"}} {
		if schedule := stringField(rendered, path...); schedule != "" {
			require.NotEmpty(u, stringField(o, path...))
			require.NoError(u, unstructured.SetNestedField(o.Object, schedule, path...))
		}
	}
}

// applyNextReconciliation applies upstream's next reconciliation to an object. In the recorded
// first one no VirtualService existed when the basic auth server was deployed. The server mounts a
// password for each, and its gateway calls it for each.
func (u *upstream) applyNextReconciliation(o, rendered *unstructured.Unstructured) {
	u.Helper()
	const server = "virtual-garden-istio-basic-auth-server"
	switch {
	case rendered == nil:
	case o.GetKind() == "Deployment" && o.GetName() == server:
		pod := func(o *unstructured.Unstructured) (pod, container map[string]any) {
			pod, _, _ = unstructured.NestedMap(o.Object, "spec", "template", "spec")
			containers, _, _ := unstructured.NestedSlice(pod, "containers")
			require.Len(u, containers, 1)
			return pod, containers[0].(map[string]any)
		}
		have, container := pod(o)
		want, wanted := pod(rendered)
		have["volumes"], container["volumeMounts"] = want["volumes"], wanted["volumeMounts"]
		have["containers"] = []any{container}
		require.NoError(u, unstructured.SetNestedMap(o.Object, have, "spec", "template", "spec"))
	case o.GetKind() == "EnvoyFilter" && o.GetName() == "garden-"+server:
		o.Object["spec"] = rendered.DeepCopy().Object["spec"]
	}
}

// findRenamed finds objects named after their content whose rendered content is the same here:
// upstream would have used that name.
func (u *upstream) findRenamed(dir string) bool {
	u.Helper()
	found := false
	for _, r := range readRecording(u.T, dir, u.replacer()).objects {
		beside := u.rendered[r.cluster+" "+r.key()]
		if beside == nil || !hashSuffix.MatchString(r.GetName()) || beside.GetName() == r.GetName() || u.replacements[r.GetName()] != "" {
			continue
		}
		data := func(o *unstructured.Unstructured) map[string]any {
			values, _, _ := unstructured.NestedMap(o.Object, "data")
			return values
		}
		want, have := data(r.Unstructured), data(beside)
		same := len(want) == len(have)
		for key, value := range want {
			written, _ := value.(string)
			same = same && have[key] != nil && (strings.Contains(written, "REDACTED") || strings.TrimRight(written, "\n") == strings.TrimRight(fmt.Sprint(have[key]), "\n"))
		}
		if same {
			u.replacements[r.GetName()], found = beside.GetName(), true
		}
	}
	return found
}

// completeRecorded returns a recorded object with the omitted values, in the form in which
// gardener-resource-manager applies it from its ManagedResource.
func (u *upstream) completeRecorded(r recordedObject, carriers map[string]recordedObject) recordedObject {
	u.Helper()
	o := r.Unstructured
	if strings.HasSuffix(o.GetKind(), "WebhookConfiguration") {
		o.SetNamespace("") // a mistake of upstream that its resource manager corrects
	}
	beside := u.rendered[r.cluster+" "+r.key()]
	unstructured.RemoveNestedField(o.Object, "status")
	unstructured.RemoveNestedField(o.Object, "metadata", "creationTimestamp")
	unstructured.RemoveNestedField(o.Object, "metadata", "ownerReferences")
	updateReferenceKeys(o.Object)
	if beside == nil {
		o.Object = fillOmittedValues(o.Object, nil).(map[string]any)
	} else {
		o.Object = fillOmittedValues(o.Object, beside.Object).(map[string]any)
		u.copyUIDSchedules(o, beside)
		u.applyNextReconciliation(o, beside)
		if beside.GetName() == o.GetName() && hashSuffix.MatchString(o.GetName()) && o.GetKind() == "ConfigMap" {
			// the hash in the name proves equal data; the recording lost line breaks
			o.Object["data"] = beside.DeepCopy().Object["data"]
		}
	}
	switch {
	case o.GetKind() == "Secret":
		u.fillSecretData(o, beside)
	case strings.HasSuffix(o.GetKind(), "WebhookConfiguration") && beside == nil:
		makeWebhooksOptional(o)
	}
	carrier, is := carriers[r.managedResource]
	if !is {
		return r
	}
	inject, _, _ := unstructured.NestedStringMap(carrier.Object, "spec", "injectLabels")
	inject = mergeMaps(inject, map[string]string{"resources.gardener.cloud/managed-by": "gardener"})
	o.SetLabels(mergeMaps(o.GetLabels(), inject))
	o.SetAnnotations(mergeMaps(o.GetAnnotations(), map[string]string{
		"resources.gardener.cloud/origin": r.managedResource, "resources.gardener.cloud/description": "DO NOT EDIT - managed by gardener-resource-manager",
	}))
	if slices.Contains(workloads, o.GetKind()) {
		labels, _, _ := unstructured.NestedStringMap(o.Object, "spec", "template", "metadata", "labels")
		require.NoError(u, unstructured.SetNestedStringMap(o.Object, mergeMaps(labels, inject), "spec", "template", "metadata", "labels"))
		claims, _, _ := unstructured.NestedSlice(o.Object, "spec", "volumeClaimTemplates")
		for _, claim := range claims {
			c := &unstructured.Unstructured{Object: claim.(map[string]any)}
			c.SetLabels(mergeMaps(c.GetLabels(), inject))
		}
		if len(claims) > 0 {
			require.NoError(u, unstructured.SetNestedSlice(o.Object, claims, "spec", "volumeClaimTemplates"))
		}
	}
	return r
}

// makeWebhooksOptional makes webhooks optional, because played pods do not answer.
func makeWebhooksOptional(configuration *unstructured.Unstructured) {
	hooks, _, _ := unstructured.NestedSlice(configuration.Object, "webhooks")
	for _, raw := range hooks {
		hook := raw.(map[string]any)
		hook["failurePolicy"] = "Ignore"
		unstructured.RemoveNestedField(hook, "clientConfig", "caBundle")
	}
	configuration.Object["webhooks"] = hooks
}

// fillSecretData fills the data of a Secret; a copy gets the data of its source.
func (u *upstream) fillSecretData(o, rendered *unstructured.Unstructured) {
	u.Helper()
	data, _, _ := unstructured.NestedMap(o.Object, "data")
	var from map[string]render.CopiedValue
	if rendered != nil {
		var err error
		from, err = render.CopiedValues(rendered)
		require.NoError(u, err)
	}
	for key := range data {
		data[key] = base64.StdEncoding.EncodeToString([]byte("value of " + o.GetName()))
		if value, is, _ := unstructured.NestedString(objectMap(rendered), "data", key); is {
			data[key] = value
		}
		if source, is := from[key]; is {
			secret, err := u.api[landscape.Runtime].Resource(secretsResource).Namespace("garden").Get(u.context(), source.Name, metav1.GetOptions{})
			require.NoError(u, err)
			data[key], _, _ = unstructured.NestedString(secret.Object, "data", source.Key)
		}
	}
	if len(data) > 0 {
		o.Object["data"] = data
	}
}

// createManagedResourceData creates the data Secret and the status of a ManagedResource, as both
// resource managers do.
func (u *upstream) createManagedResourceData(mr recordedObject, objects []recordedObject) {
	u.Helper()
	var manifests bytes.Buffer
	var resources []any
	for _, o := range objects {
		raw, err := yaml.Marshal(o.Object)
		require.NoError(u, err)
		fmt.Fprintf(&manifests, "---\n%s", raw)
		resources = append(resources, map[string]any{"apiVersion": o.GetAPIVersion(), "kind": o.GetKind(), "namespace": o.GetNamespace(), "name": o.GetName(), "labels": o.Object["metadata"].(map[string]any)["labels"]})
	}
	var packed bytes.Buffer
	w := brotli.NewWriter(&packed)
	_, err := w.Write(manifests.Bytes())
	require.NoError(u, err)
	require.NoError(u, w.Close())
	refs, _, _ := unstructured.NestedSlice(mr.Object, "spec", "secretRefs")
	require.Len(u, refs, 1)
	name := refs[0].(map[string]any)["name"].(string)
	secret := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "immutable": true,
		"metadata": map[string]any{"name": name, "namespace": mr.GetNamespace(), "labels": map[string]any{"resources.gardener.cloud/garbage-collectable-reference": "true"}},
		"data":     map[string]any{"data.yaml.br": base64.StdEncoding.EncodeToString(packed.Bytes())}}}
	finalizer := "resources.gardener.cloud/gardener-resource-manager"
	if class := stringField(mr.Unstructured, "spec", "class"); class != "" {
		finalizer += "-" + class
	}
	mr.SetFinalizers([]string{finalizer})
	u.createObjects([]recordedObject{{secret, landscape.Runtime, ""}, mr})
	r, err := u.resource(landscape.Runtime, mr.Unstructured)
	require.NoError(u, err)
	live, err := r.Get(u.context(), mr.GetName(), metav1.GetOptions{})
	require.NoError(u, err)
	sum := sha256.Sum256(packed.Bytes())
	condition := func(kind, status, reason string) map[string]any {
		return map[string]any{"type": kind, "status": status, "reason": reason, "message": reason, "lastTransitionTime": "2026-01-01T00:00:00Z", "lastUpdateTime": "2026-01-01T00:00:00Z"}
	}
	live.Object["status"] = map[string]any{
		"observedGeneration": live.GetGeneration(), "secretsDataChecksum": hex.EncodeToString(sum[:]), "resources": resources,
		"conditions": []any{condition("ResourcesApplied", "True", "ApplySucceeded"), condition("ResourcesHealthy", "True", "ResourcesHealthy"), condition("ResourcesProgressing", "False", "ResourcesRolledOut")},
	}
	_, err = r.UpdateStatus(u.context(), live, metav1.UpdateOptions{FieldManager: "gardener-resource-manager"})
	require.NoError(u, err)
}
