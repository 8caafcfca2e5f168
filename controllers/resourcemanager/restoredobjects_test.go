// SPDX-License-Identifier: Apache-2.0

package resourcemanager

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	resourcesv1alpha1 "github.com/pergola-dev/pergola/api/resources/v1alpha1"
)

// configMapData returns the data of a ConfigMap.
func (s *testEnv) configMapData(name string) map[string]any {
	o, err := s.get("ConfigMap", name)
	if err != nil {
		return nil
	}
	data, _ := o.Object["data"].(map[string]any)
	return data
}

// TestRestoredObjects: an object that was restored from a backup, or lost its managedFields, stays
// ours. Changes of its declaration are applied, and removed fields are deleted.
func TestRestoredObjects(t *testing.T) {
	for name, restore := range map[string]func(s *testEnv){
		"from a backup, while nobody looks": func(s *testEnv) {
			o, err := s.get("ConfigMap", "one")
			require.NoError(s, err)
			require.NoError(s, s.resource(o).Delete(s.ctx, "one", metav1.DeleteOptions{}))
			o.SetResourceVersion("")
			o.SetUID("")
			o.SetManagedFields(nil)
			_, err = s.resource(o).Create(s.ctx, o, metav1.CreateOptions{FieldManager: "velero"})
			require.NoError(s, err)
		},
		"wiped": func(s *testEnv) { s.patch("ConfigMap", "one", "{metadata: {managedFields: [{}]}}") },
	} {
		t.Run(name, func(t *testing.T) {
			s := newTestEnv(t)
			_, stop := s.startClass("")
			s.createManagedResource("thing", strings.ReplaceAll(configMap("one"), "a: b", "a: b, gone: x"))
			s.waitForConditions("thing", healthyConditions...)
			stop()
			restore(s)
			_, stop = s.startClass("")
			defer stop()
			s.eventually("it is ours again", func() bool {
				o, err := s.get("ConfigMap", "one")
				if err != nil {
					return false
				}
				for _, m := range o.GetManagedFields() {
					if m.Manager != "pergola" && m.FieldsV1 != nil && strings.Contains(m.FieldsV1.String(), "f:gone") {
						return false
					}
				}
				return len(o.GetManagedFields()) > 0
			})
			s.writeDataSecret("thing", strings.ReplaceAll(configMap("one"), "a: b", "a: c"))
			s.eventually("the change arrives, and what left it goes", func() bool {
				data := s.configMapData("one")
				return data["a"] == "c" && data["gone"] == nil
			})
			s.waitForConditions("thing", healthyConditions...)
		})
	}
}

// TestDriftOfIgnoredObject: changes of an object while it was ignored are repaired as soon as it is
// not ignored.
func TestDriftOfIgnoredObject(t *testing.T) {
	s := newTestEnv(t)
	_, stop := s.startClass("")
	defer stop()
	s.createManagedResource("thing", configMap("one"))
	s.waitForConditions("thing", healthyConditions...)
	described := func() bool {
		o, err := s.get("ConfigMap", "one")
		return err == nil && o.GetAnnotations()[resourcesv1alpha1.Description] != ""
	}
	s.patch("ConfigMap", "one", `{metadata: {annotations: {resources.gardener.cloud/ignore: "true"}}}`)
	s.eventually("the description goes", func() bool { return !described() })
	s.patch("ConfigMap", "one", "{data: {a: mine}}")
	s.waitForConditions("thing", healthyConditions...)
	assert.Equal(t, "mine", s.configMapData("one")["a"])
	s.patch("ConfigMap", "one", "{metadata: {annotations: {resources.gardener.cloud/ignore: null}}}")
	s.eventually("it is as declared", func() bool { return s.configMapData("one")["a"] == "b" && described() })
}
