// SPDX-License-Identifier: Apache-2.0

package managedresource

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	resourcesv1alpha1 "github.com/pergola-dev/pergola/api/resources/v1alpha1"
	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/conventions"
)

// fakeAPIServer imitates an API server with one ManagedResource; it rejects a patch with an old
// version.
type fakeAPIServer struct {
	version    string
	finalizers []string
	patches    int
}

func (p *fakeAPIServer) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	answer := func(code int, v any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(v)
	}
	const group = "resources.gardener.cloud"
	switch {
	case req.URL.Path == "/api":
		answer(200, metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}})
		return
	case req.URL.Path == "/apis":
		v := metav1.GroupVersionForDiscovery{GroupVersion: group + "/v1alpha1", Version: "v1alpha1"}
		answer(200, metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList"}, Groups: []metav1.APIGroup{{Name: group, Versions: []metav1.GroupVersionForDiscovery{v}, PreferredVersion: v}}})
		return
	case strings.HasSuffix(req.URL.Path, "/v1alpha1"):
		answer(200, metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList"}, GroupVersion: group + "/v1alpha1",
			APIResources: []metav1.APIResource{{Name: "managedresources", Kind: "ManagedResource", Namespaced: true, Verbs: []string{"get", "patch"}}}})
		return
	case req.Method == http.MethodPatch:
		p.patches++
		var patch struct {
			Metadata struct {
				Finalizers      []string
				ResourceVersion string
			}
		}
		_ = json.NewDecoder(req.Body).Decode(&patch)
		if patch.Metadata.ResourceVersion != p.version {
			answer(409, metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure", Reason: metav1.StatusReasonConflict, Code: 409})
			return
		}
		p.finalizers = patch.Metadata.Finalizers
	}
	answer(200, map[string]any{"apiVersion": group + "/v1alpha1", "kind": "ManagedResource",
		"metadata": map[string]any{"namespace": "n", "name": "m", "uid": "1", "resourceVersion": p.version, "finalizers": p.finalizers}})
}

// TestFinalizersOfAnObjectThatChanged: finalizers that others added since the object was read stay.
func TestFinalizersOfAnObjectThatChanged(t *testing.T) {
	for name, c := range map[string]struct {
		have, want []string
		do         func(*Reconciler, *resourcesv1alpha1.ManagedResource) error
	}{
		"added": {[]string{"other"}, []string{"other", "resources.gardener.cloud/gardener-resource-manager-seed"},
			func(r *Reconciler, mr *resourcesv1alpha1.ManagedResource) error {
				return r.ensureFinalizer(context.Background(), mr)
			}},
		"removed": {[]string{"other", "resources.gardener.cloud/gardener-resource-manager-seed"}, []string{"other"},
			func(r *Reconciler, mr *resourcesv1alpha1.ManagedResource) error {
				mr.Finalizers = []string{r.finalizer()}
				return r.dropFinalizer(context.Background(), mr, nil)
			}},
	} {
		t.Run(name, func(t *testing.T) {
			server := &fakeAPIServer{version: "2", finalizers: c.have}
			h := httptest.NewServer(server)
			defer h.Close()
			cluster, err := conventions.NewCluster("seed", &rest.Config{Host: h.URL}, apply.ClusterOptions{})
			require.NoError(t, err)
			defer cluster.Close()
			r := &Reconciler{Source: cluster, Target: cluster, Class: "seed"}
			mr := &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "m", UID: "1", ResourceVersion: "1"}}
			require.NoError(t, c.do(r, mr))
			assert.Equal(t, c.want, server.finalizers)
			assert.Equal(t, 2, server.patches)
		})
	}
}
