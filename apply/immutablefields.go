// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Some fields of a live object cannot change, but its other fields are still worth applying. So the
// live values are sent, and the outcome names the fields that are declared differently. Source:
// upstream's merge rules (pkg/resourcemanager/controller/managedresource/merger.go).

const (
	claimTemplates = "spec.volumeClaimTemplates"
	clusterIP      = "spec.clusterIP"
)

// serverSetFields lists fields that the server sets at creation, in the name of the creator, and
// then refuses to change. If we took them over with an object of another creator, they are sent: an
// apply without them would remove them.
var serverSetFields = map[schema.GroupKind][]fieldpath.Path{
	{Kind: "PersistentVolumeClaim"}: {
		fieldpath.MakePathOrDie("spec", "storageClassName"), fieldpath.MakePathOrDie("spec", "volumeName"),
		fieldpath.MakePathOrDie("spec", "dataSource"), fieldpath.MakePathOrDie("spec", "dataSourceRef"),
	},
	jobKind: {
		fieldpath.MakePathOrDie("spec", "selector"), fieldpath.MakePathOrDie("spec", "manualSelector"),
	},
}

// withLiveFields returns the object to send for an existing one. kept names the fields that get the
// live value although another one is declared.
func withLiveFields(o, live *unstructured.Unstructured, manager string, createOnly []string) (send *unstructured.Unstructured, kept []string) {
	gk := groupKindOf(o)
	ip, _, _ := unstructured.NestedString(o.Object, "spec", "clusterIP")
	if len(createOnly) == 0 && gk != statefulSet && (gk != serviceKind || ip == "") && serverSetFields[gk] == nil && gk != networkPolicyKind {
		return o, nil
	}
	send = o.DeepCopy()
	owned := ownedFields(live, manager)
	for _, f := range createOnly {
		createOnlyFields[f].sendLive(send, live, owned)
	}
	for _, path := range serverSetFields[gk] {
		sendLiveField(send, live, owned, path)
	}
	if gk == networkPolicyKind {
		writePolicyTypes(send, live, owned)
	}
	if gk == jobKind {
		sendLiveTemplateLabels(send, live, owned)
	}
	if gk == statefulSet && sendLiveClaims(send, live) {
		kept = append(kept, claimTemplates)
	}
	if gk == serviceKind && sendLiveClusterIP(send, live) {
		kept = append(kept, clusterIP)
	}
	return send, kept
}

// sendLiveTemplateLabels sends the live labels of a Job's pod template: the server adds some, and
// none can change.
func sendLiveTemplateLabels(send, live *unstructured.Unstructured, owned *fieldpath.Set) {
	labels, _, _ := unstructured.NestedStringMap(live.Object, "spec", "template", "metadata", "labels")
	for name := range labels {
		sendLiveField(send, live, owned, fieldpath.MakePathOrDie("spec", "template", "metadata", "labels", name))
	}
}

func sendLiveField(send, live *unstructured.Unstructured, owned *fieldpath.Set, path fieldpath.Path) {
	names := fieldNames(path)
	_, declared, _ := unstructured.NestedFieldNoCopy(send.Object, names...)
	v, there, _ := unstructured.NestedFieldCopy(live.Object, names...)
	if !declared && there && hasAnyBelow(owned, path) {
		_ = unstructured.SetNestedField(send.Object, v, names...)
	}
}

// hasAnyBelow reports whether a set has a field or anything in it.
func hasAnyBelow(set *fieldpath.Set, path fieldpath.Path) bool {
	if set.Has(path) {
		return true
	}
	for _, e := range path {
		deeper, ok := set.Children.Get(e)
		if !ok {
			return false
		}
		set = deeper
	}
	return !set.Empty()
}

// sendLiveClaims sends the live volume claim templates, and reports whether others are declared.
// Labels and annotations in them do not count: labels of a set are injected there, too.
func sendLiveClaims(send, live *unstructured.Unstructured) (differ bool) {
	want, _, _ := unstructured.NestedSlice(send.Object, "spec", "volumeClaimTemplates")
	have, there, _ := unstructured.NestedSlice(live.Object, "spec", "volumeClaimTemplates")
	differ = !hasSameClaims(want, have)
	switch {
	case !there && len(want) > 0:
		unstructured.RemoveNestedField(send.Object, "spec", "volumeClaimTemplates")
	case there:
		_ = unstructured.SetNestedField(send.Object, have, "spec", "volumeClaimTemplates")
	}
	return differ
}

func hasSameClaims(want, have []any) bool {
	if len(want) != len(have) {
		return false
	}
	for i := range want {
		w, _ := want[i].(map[string]any)
		h, _ := have[i].(map[string]any)
		name := func(m map[string]any) string { n, _, _ := unstructured.NestedString(m, "metadata", "name"); return n }
		if name(w) != name(h) || !isSubset(w["spec"], h["spec"]) {
			return false
		}
	}
	return true
}

// sendLiveClusterIP sends the live address of a Service, and reports whether another one is
// declared. A headless Service cannot get an address either. The server refuses to make a Service
// headless, as with upstream.
func sendLiveClusterIP(send, live *unstructured.Unstructured) (differ bool) {
	want, _, _ := unstructured.NestedString(send.Object, "spec", "clusterIP")
	have, _, _ := unstructured.NestedString(live.Object, "spec", "clusterIP")
	was, _, _ := unstructured.NestedString(live.Object, "spec", "type")
	if want == "" || want == "None" || have == "" || want == have || was == "ExternalName" {
		return false
	}
	_ = unstructured.SetNestedField(send.Object, have, "spec", "clusterIP")
	if _, declared, _ := unstructured.NestedFieldNoCopy(send.Object, "spec", "clusterIPs"); declared {
		all, _, _ := unstructured.NestedFieldCopy(live.Object, "spec", "clusterIPs")
		_ = unstructured.SetNestedField(send.Object, all, "spec", "clusterIPs")
	}
	return true
}

// isSubset reports whether have contains everything in want with the same values.
func isSubset(want, have any) bool {
	switch w := want.(type) {
	case map[string]any:
		h, ok := have.(map[string]any)
		if !ok {
			return len(w) == 0
		}
		for k, v := range w {
			if !isSubset(v, h[k]) {
				return false
			}
		}
		return true
	case []any:
		h, ok := have.([]any)
		if !ok || len(w) != len(h) {
			return false
		}
		for i := range w {
			if !isSubset(w[i], h[i]) {
				return false
			}
		}
		return true
	}
	return want == have
}
