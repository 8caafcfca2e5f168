// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestTrackedObjectState: every input of drift changes the state.
func TestTrackedObjectState(t *testing.T) {
	live := func(kind, version, uid string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": kind, "metadata": map[string]any{"resourceVersion": version, "uid": uid}}}
	}
	tracked := func(manager, sum string, createOnly ...string) *trackedObject {
		return &trackedObject{manager: manager, entry: Entry{LiveDigest: sum, CreateOnlyFields: createOnly}}
	}
	clean := tracked("m", "sum").fingerprint(live("ConfigMap", "7", "u"))
	assert.NotEmpty(t, clean)
	assert.Equal(t, clean, tracked("m", "sum").fingerprint(live("ConfigMap", "7", "u")))
	assert.NotEqual(t, clean, tracked("m", "sum").fingerprint(live("ConfigMap", "8", "u")), "it was written")
	assert.NotEqual(t, clean, tracked("m", "sum").fingerprint(live("ConfigMap", "7", "v")), "it was made anew")
	assert.NotEqual(t, clean, tracked("m", "other").fingerprint(live("ConfigMap", "7", "u")), "something else was applied")
	assert.NotEqual(t, clean, tracked("n", "sum").fingerprint(live("ConfigMap", "7", "u")), "by another manager")
	assert.NotEqual(t, clean, tracked("m", "sum", "spec.a").fingerprint(live("ConfigMap", "7", "u")), "a field counts no more")
	assert.Empty(t, tracked("m", "sum").fingerprint(live("Secret", "7", "u")), "values are compared")
	assert.Empty(t, tracked("m", "sum").fingerprint(live("ConfigMap", "", "u")))
}
