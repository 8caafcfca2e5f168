// SPDX-License-Identifier: Apache-2.0

package clusterobjects

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func object(kind, name, value string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": kind, "metadata": map[string]any{"namespace": "garden", "name": name},
		"data": map[string]any{"key": value}, "status": map[string]any{"counter": value}}}
}

func newObjects(objects ...*unstructured.Unstructured) Objects {
	w := Objects{}
	for _, o := range objects {
		w[o.GetKind()+" "+o.GetName()] = o
	}
	return w
}

// TestDifferencesFrom checks that objects left behind, deleted or changed are reported. Objects
// that may stay, restless kinds and status are ignored.
func TestDifferencesFrom(t *testing.T) {
	before := newObjects(object("Secret", "a", "1"), object("ConfigMap", "b", "1"), object("Lease", "l", "1"), object("Lease", "gone", "1"), object("ConfigMap", "c", "1"))
	same := newObjects(object("Secret", "a", "1"), object("ConfigMap", "b", "1"), object("Lease", "l", "2"), object("ConfigMap", "c", "1"),
		object("Event", "e", "1"), object("PersistentVolumeClaim", "p", "1"))
	same["Secret a"].Object["status"] = "other"
	assert.Empty(t, same.DifferencesFrom(before.Digests()))
	assert.Empty(t, same.MissingFrom(before))
	assert.Empty(t, same.ChangedSince(before))

	other := newObjects(object("Secret", "a", "2"), object("ConfigMap", "b", "1"), object("Secret", "d", "1"))
	assert.Equal(t, []string{"left behind: Secret d", "gone: ConfigMap c", "changed: Secret a"}, other.DifferencesFrom(before.Digests()))
	assert.Equal(t, []string{"Secret d"}, other.MissingFrom(before))
	assert.Equal(t, []string{"ConfigMap c"}, before.MissingFrom(other))
	assert.Len(t, other.ChangedSince(before), 1)
	for _, digest := range before.Digests() {
		assert.NotContains(t, digest, "key")
	}
}
