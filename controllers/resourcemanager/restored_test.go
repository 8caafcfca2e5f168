package resourcemanager

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	resourcesv1alpha1 "github.com/pergola-dev/pergola/api/resources/v1alpha1"
)

// dataOf returns the data of a ConfigMap.
func (s *site) dataOf(name string) map[string]any {
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
	for name, restore := range map[string]func(s *site){
		"from a backup, while nobody looks": func(s *site) {
			o, err := s.get("ConfigMap", "one")
			require.NoError(s, err)
			require.NoError(s, s.resource(o).Delete(s.ctx, "one", metav1.DeleteOptions{}))
			o.SetResourceVersion("")
			o.SetUID("")
			o.SetManagedFields(nil)
			_, err = s.resource(o).Create(s.ctx, o, metav1.CreateOptions{FieldManager: "velero"})
			require.NoError(s, err)
		},
		"wiped": func(s *site) { s.patch("ConfigMap", "one", "{metadata: {managedFields: [{}]}}") },
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			_, stop := s.start("")
			s.managed("thing", strings.ReplaceAll(configMap("one"), "a: b", "a: b, gone: x"))
			s.becomes("thing", good...)
			stop()
			restore(s)
			_, stop = s.start("")
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
			s.contents("thing", strings.ReplaceAll(configMap("one"), "a: b", "a: c"))
			s.eventually("the change arrives, and what left it goes", func() bool {
				data := s.dataOf("one")
				return data["a"] == "c" && data["gone"] == nil
			})
			s.becomes("thing", good...)
		})
	}
}

// TestIgnoredForAWhile: changes of an object while it was ignored are repaired as soon as it is not
// ignored.
func TestIgnoredForAWhile(t *testing.T) {
	s := newSite(t)
	_, stop := s.start("")
	defer stop()
	s.managed("thing", configMap("one"))
	s.becomes("thing", good...)
	described := func() bool {
		o, err := s.get("ConfigMap", "one")
		return err == nil && o.GetAnnotations()[resourcesv1alpha1.Description] != ""
	}
	s.patch("ConfigMap", "one", `{metadata: {annotations: {resources.gardener.cloud/ignore: "true"}}}`)
	s.eventually("the description goes", func() bool { return !described() })
	s.patch("ConfigMap", "one", "{data: {a: mine}}")
	s.becomes("thing", good...)
	assert.Equal(t, "mine", s.dataOf("one")["a"])
	s.patch("ConfigMap", "one", "{metadata: {annotations: {resources.gardener.cloud/ignore: null}}}")
	s.eventually("it is as declared", func() bool { return s.dataOf("one")["a"] == "b" && described() })
}
