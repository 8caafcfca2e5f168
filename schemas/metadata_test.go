// SPDX-License-Identifier: Apache-2.0

package schemas

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"
)

// TestOwnersAndFinalizers checks findings for everything that the API server refuses, and for
// duplicates, which server-side apply refuses.
func TestOwnersAndFinalizers(t *testing.T) {
	const owner = "apiVersion: v1, kind: ConfigMap, name: "
	for name, test := range map[string]struct {
		metadata string
		want     []string
		// accepted: the API server's validation accepts it and relies on server-side apply.
		accepted bool
	}{
		"a finalizer twice":             {"finalizers: [a/b, a/b]", []string{"metadata.finalizers[1] Duplicate"}, true},
		"a finalizer three times":       {"finalizers: [a/b, c/d, a/b, a/b]", []string{"metadata.finalizers[2] Duplicate", "metadata.finalizers[3] Duplicate"}, true},
		"finalizers that contradict":    {"finalizers: [orphan, a/b, foregroundDeletion]", []string{"metadata.finalizers[2] Invalid"}, false},
		"the other way round":           {"finalizers: [foregroundDeletion, orphan]", []string{"metadata.finalizers[1] Invalid"}, false},
		"a UID twice":                   {"ownerReferences: [{" + owner + "a, uid: u}, {" + owner + "b, uid: u}]", []string{"metadata.ownerReferences[1].uid Duplicate"}, true},
		"the whole owner twice":         {"ownerReferences: [{" + owner + "a, uid: u}, {" + owner + "b, uid: v}, {" + owner + "a, uid: u}]", []string{"metadata.ownerReferences[2].uid Duplicate"}, true},
		"two controllers":               {"ownerReferences: [{" + owner + "a, uid: u, controller: true}, {" + owner + "b, uid: v}, {" + owner + "c, uid: w, controller: true}]", []string{"metadata.ownerReferences[2].controller Invalid"}, false},
		"two controllers with one UID":  {"ownerReferences: [{" + owner + "a, uid: u, controller: true}, {" + owner + "a, uid: u, controller: true}]", []string{"metadata.ownerReferences[1].controller Invalid", "metadata.ownerReferences[1].uid Duplicate"}, false},
		"an owner that cannot be one":   {"ownerReferences: [{apiVersion: v1, kind: Event, name: a, uid: u}]", []string{"metadata.ownerReferences[0].kind Invalid"}, false},
		"a version that is none":        {"ownerReferences: [{apiVersion: a/b/c, kind: A, name: a, uid: u}]", []string{"metadata.ownerReferences[0].apiVersion Invalid"}, false},
		"a group without a version":     {"ownerReferences: [{apiVersion: apps/, kind: A, name: a, uid: u}]", []string{"metadata.ownerReferences[0].apiVersion Invalid"}, false},
		"an owner without a UID":        {"ownerReferences: [{" + owner + "a}]", []string{"metadata.ownerReferences[0].uid Required"}, false},
		"different finalizers":          {"finalizers: [a/b, a/c, orphan]", nil, true},
		"one controller of two owners":  {"ownerReferences: [{" + owner + "a, uid: u, controller: true}, {" + owner + "b, uid: v, controller: false}]", nil, true},
		"an Event of a group":           {"ownerReferences: [{apiVersion: events.k8s.io/v1, kind: Event, name: a, uid: u}]", nil, true},
		"two owners of the same name":   {"ownerReferences: [{" + owner + "a, uid: u}, {apiVersion: v1, kind: Secret, name: a, uid: v}]", nil, true},
		"finalizers in a known order":   {"finalizers: [z/z, a/a]", nil, true},
		"a namespace owned by a Secret": {"ownerReferences: [{apiVersion: v1, kind: Secret, name: a, uid: u, blockOwnerDeletion: true}]", nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			text := "{name: a, namespace: b, " + test.metadata + "}"
			var metadata metav1.ObjectMeta
			require.NoError(t, yaml.UnmarshalStrict([]byte(text), &metadata))
			refused := validation.ValidateObjectMeta(&metadata, true, validation.NameIsDNSSubdomain, field.NewPath("metadata"))
			assert.Equal(t, test.accepted, len(refused) == 0, "%v", refused)

			in := Input{Object: parseObject(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: "+text), Positions: pathPositioner{}}
			violations, err := Validate(t.Context(), []Input{in}, Options{})
			require.NoError(t, err)
			var found []string
			for _, v := range violations {
				found = append(found, v.File+" "+string(v.Type))
			}
			assert.Equal(t, test.want, found, "%v", formatViolations(violations))
		})
	}
}
