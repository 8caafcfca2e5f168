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

// TestClusterIDChanges: the cluster ID may be set, changed and removed during a downtime; only
// objects that left the ManagedResources meanwhile are deleted.
func TestClusterIDChanges(t *testing.T) {
	s := newTestEnv(t)
	with := func(id string) (stop func()) {
		_, stop = s.startManager(s.newManager(Options{Namespace: s.ns, ClusterID: id}))
		return stop
	}
	origin := func(name string) string {
		o, err := s.get("ConfigMap", name)
		if err != nil {
			return ""
		}
		return o.GetAnnotations()[resourcesv1alpha1.Origin]
	}
	last := ""
	for _, id := range []string{"", "one", "two", ""} {
		if last != "" {
			s.writeDataSecret("thing", configMap("stays"))
			mr, err := s.get("ManagedResource", "whole")
			require.NoError(t, err)
			require.NoError(t, s.resource(mr).Delete(s.ctx, "whole", metav1.DeleteOptions{}))
		}
		stop := with(id)
		if last != "" {
			s.waitForDeletion("ConfigMap", last)
			s.waitForDeletion("ConfigMap", "whole-"+last)
			s.waitForDeletion("ManagedResource", "whole")
		}
		last = "goes-" + id
		if id == "" {
			last = "goes-none"
		}
		s.createManagedResource("whole", configMap("whole-"+last))
		if _, err := s.get("ManagedResource", "thing"); err != nil {
			s.createManagedResource("thing", configMap("stays"), configMap(last))
		} else {
			s.writeDataSecret("thing", configMap("stays"), configMap(last))
		}
		s.waitForObject("ConfigMap", last)
		s.waitForConditions("thing", healthyConditions...)
		s.waitForConditions("whole", healthyConditions...)
		want := s.ns + "/thing"
		if id != "" {
			want = id + ":" + want
		}
		s.eventually("the origin is "+want, func() bool { return origin("stays") == want })
		stop()
	}
}

// TestObjectOfOtherCluster: an object stays if a ManagedResource of the same name in another source
// has taken it over.
func TestObjectOfOtherCluster(t *testing.T) {
	s := newTestEnv(t)
	_, stop := s.startManager(s.newManager(Options{Namespace: s.ns, ClusterID: "mine"}))
	defer stop()
	s.createManagedResource("thing", configMap("one"), configMap("two"))
	s.waitForConditions("thing", healthyConditions...)
	// Another source takes it by force, as upstream does.
	o := s.object(strings.ReplaceAll(strings.ReplaceAll(configMap("one"), "name: one", "name: one, annotations: {"+resourcesv1alpha1.Origin+": \"theirs:NS/thing\"}"), "NS", s.ns))
	_, err := s.resource(o).Apply(s.ctx, "one", o, metav1.ApplyOptions{FieldManager: "pergola/other", Force: true})
	require.NoError(t, err)
	s.writeDataSecret("thing", configMap("two"))
	s.waitForConditions("thing", healthyConditions...)
	s.eventually("it is given up", func() bool {
		mr, err := s.get("ManagedResource", "thing")
		if err != nil {
			return false
		}
		resources, _ := mr.Object["status"].(map[string]any)["resources"].([]any)
		return len(resources) == 1
	})
	_, err = s.get("ConfigMap", "one")
	assert.NoError(t, err)
}
