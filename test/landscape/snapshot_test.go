// SPDX-License-Identifier: Apache-2.0

package landscape

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"

	"github.com/pergola-dev/pergola/apply"
)

// snapshotByName is every object of every cluster, by "cluster: Kind namespace/name".
type snapshotByName map[string]*unstructured.Unstructured

// unstoredKinds are kinds that exist only while they are requested, and Events.
var unstoredKinds = map[string]bool{"ComponentStatus": true, "Event": true, "APIService": true}

func (s *testStage) snapshot() snapshotByName {
	s.Helper()
	out := snapshotByName{}
	for _, cluster := range clusterNames {
		client, err := discovery.NewDiscoveryClientForConfig(env.configs[cluster])
		require.NoError(s, err)
		lists, err := client.ServerPreferredResources()
		require.NoError(s, err)
		for _, list := range lists {
			gv, err := schema.ParseGroupVersion(list.GroupVersion)
			require.NoError(s, err)
			for _, r := range list.APIResources {
				if strings.Contains(r.Name, "/") || !slices.Contains(r.Verbs, "list") || unstoredKinds[r.Kind] {
					continue
				}
				objects, err := s.api[cluster].Resource(gv.WithResource(r.Name)).List(testContext(s.T), metav1.ListOptions{})
				if apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) {
					continue
				}
				require.NoError(s, err, "%s on %s", r.Name, cluster)
				for i := range objects.Items {
					out[cluster+": "+apply.RefOf(&objects.Items[i]).String()] = &objects.Items[i]
				}
			}
		}
	}
	return out
}

// derivedKinds are kinds that Kubernetes' own controllers create.
var derivedKinds = []string{"Pod", "ReplicaSet", "ControllerRevision", "Endpoints", "EndpointSlice", "IPAddress"}

// without returns the objects in w that are not in other, without derived ones.
func (w snapshotByName) without(other snapshotByName) []string {
	var out []string
	for name, o := range w {
		if other[name] == nil && !slices.Contains(derivedKinds, o.GetKind()) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// pergolaManagers of the fields that Pergola writes, for itself or for upstream's controllers. A
// client without a manager is listed by its user agent.
var pergolaManagers = []string{"pergola", "pergola/seed", "pergola-landscape", "pergola-inventory", "gardener-operator", "gardenlet", "gardener-resource-manager"}

// writtenByPergola returns the objects that Pergola wrote to.
func (w snapshotByName) writtenByPergola() snapshotByName {
	out := snapshotByName{}
	for name, o := range w {
		for _, f := range o.GetManagedFields() {
			if slices.Contains(pergolaManagers, f.Manager) {
				out[name] = o
			}
		}
	}
	return out
}

// fieldTimes returns the versions of objects with fields of Pergola, without owners and leases,
// whose changes are expected.
func (w snapshotByName) fieldTimes() map[string]string {
	out := map[string]string{}
	for name, o := range w.writtenByPergola() {
		switch o.GetKind() {
		case "Lease", "Garden", "Seed", "Shoot":
		default:
			// Controllers write status all the time; only Pergola's part of the object counts.
			for _, f := range o.GetManagedFields() {
				if slices.Contains(pergolaManagers, f.Manager) && f.Time != nil {
					out[name+" "+f.Manager+" "+f.Subresource] = f.Time.String()
				}
			}
		}
	}
	return out
}

// resource returns a client for objects, as another user.
func (s *testStage) resource(cluster, apiVersion, plural, namespace string) dynamic.ResourceInterface {
	gv, err := schema.ParseGroupVersion(apiVersion)
	require.NoError(s, err)
	if namespace == "" {
		return s.api[cluster].Resource(gv.WithResource(plural))
	}
	return s.api[cluster].Resource(gv.WithResource(plural)).Namespace(namespace)
}

func (s *testStage) get(r dynamic.ResourceInterface, name string) *unstructured.Unstructured {
	s.Helper()
	o, err := r.Get(testContext(s.T), name, metav1.GetOptions{})
	require.NoError(s, err)
	return o
}

func (s *testStage) delete(r dynamic.ResourceInterface, name string) {
	s.Helper()
	require.NoError(s, r.Delete(testContext(s.T), name, metav1.DeleteOptions{}))
}

// patch is a merge patch by a person with kubectl: manual edits are reverted without an approval.
func (s *testStage) patch(r dynamic.ResourceInterface, name, body string) {
	s.Helper()
	_, err := r.Patch(testContext(s.T), name, types.MergePatchType, []byte(body), metav1.PatchOptions{FieldManager: "kubectl-edit"})
	require.NoError(s, err)
}

// eventually polls, since other processes decide when.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	require.Eventually(t, ok, waitTimeout, 100*time.Millisecond, what)
}

func fieldAt(o *unstructured.Unstructured, path ...string) any {
	v, _, _ := unstructured.NestedFieldNoCopy(o.Object, path...)
	return v
}
