// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

var networkPolicyKind = schema.GroupKind{Group: "networking.k8s.io", Kind: "NetworkPolicy"}

// writePolicyTypes declares the policyTypes of a NetworkPolicy. The server derives them from the
// rules only at creation, and no one owns them, so an apply leaves them. Egress rules that are
// added later would have no effect.
func writePolicyTypes(send, live *unstructured.Unstructured, owned *fieldpath.Set) {
	if _, declared, _ := unstructured.NestedFieldNoCopy(send.Object, "spec", "policyTypes"); declared || send.Object["spec"] == nil {
		return
	}
	types := []any{"Ingress"}
	if egress, _, _ := unstructured.NestedSlice(send.Object, "spec", "egress"); len(egress) > 0 {
		types = append(types, "Egress")
	}
	now, _, _ := unstructured.NestedSlice(live.Object, "spec", "policyTypes")
	if !reflect.DeepEqual(now, types) || hasAnyBelow(owned, fieldpath.MakePathOrDie("spec", "policyTypes")) {
		_ = unstructured.SetNestedSlice(send.Object, types, "spec", "policyTypes")
	}
}
