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

// world is every object of every cluster, by "cluster: Kind namespace/name".
type world map[string]*unstructured.Unstructured

// unstored are kinds that exist only while they are requested, and Events.
var unstored = map[string]bool{"ComponentStatus": true, "Event": true, "APIService": true}

func (s *stage) world() world {
	s.Helper()
	out := world{}
	for _, cluster := range clusterNames {
		client, err := discovery.NewDiscoveryClientForConfig(env.configs[cluster])
		require.NoError(s, err)
		lists, err := client.ServerPreferredResources()
		require.NoError(s, err)
		for _, list := range lists {
			gv, err := schema.ParseGroupVersion(list.GroupVersion)
			require.NoError(s, err)
			for _, r := range list.APIResources {
				if strings.Contains(r.Name, "/") || !slices.Contains(r.Verbs, "list") || unstored[r.Kind] {
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

// derived are kinds that Kubernetes' own controllers create.
var derived = []string{"Pod", "ReplicaSet", "ControllerRevision", "Endpoints", "EndpointSlice", "IPAddress"}

// but returns the objects in w that are not in other, without derived ones.
func (w world) but(other world) []string {
	var out []string
	for name, o := range w {
		if other[name] == nil && !slices.Contains(derived, o.GetKind()) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// managers of the fields that Pergola writes, for itself or for upstream's controllers. A client
// without a manager is listed by its user agent.
var managers = []string{"pergola", "pergola/seed", "pergola-landscape", "pergola-inventory", "gardener-operator", "gardenlet", "gardener-resource-manager"}

// ours returns the objects that Pergola wrote to.
func (w world) ours() world {
	out := world{}
	for name, o := range w {
		for _, f := range o.GetManagedFields() {
			if slices.Contains(managers, f.Manager) {
				out[name] = o
			}
		}
	}
	return out
}

// versions returns the versions of objects with fields of Pergola, without owners and leases, whose
// changes are expected.
func (w world) versions() map[string]string {
	out := map[string]string{}
	for name, o := range w.ours() {
		switch o.GetKind() {
		case "Lease", "Garden", "Seed", "Shoot":
		default:
			// Controllers write status all the time; only Pergola's part of the object counts.
			for _, f := range o.GetManagedFields() {
				if slices.Contains(managers, f.Manager) && f.Time != nil {
					out[name+" "+f.Manager+" "+f.Subresource] = f.Time.String()
				}
			}
		}
	}
	return out
}

// resource returns a client for objects, as another user.
func (s *stage) resource(cluster, apiVersion, plural, namespace string) dynamic.ResourceInterface {
	gv, err := schema.ParseGroupVersion(apiVersion)
	require.NoError(s, err)
	if namespace == "" {
		return s.api[cluster].Resource(gv.WithResource(plural))
	}
	return s.api[cluster].Resource(gv.WithResource(plural)).Namespace(namespace)
}

func (s *stage) get(r dynamic.ResourceInterface, name string) *unstructured.Unstructured {
	s.Helper()
	o, err := r.Get(testContext(s.T), name, metav1.GetOptions{})
	require.NoError(s, err)
	return o
}

func (s *stage) delete(r dynamic.ResourceInterface, name string) {
	s.Helper()
	require.NoError(s, r.Delete(testContext(s.T), name, metav1.DeleteOptions{}))
}

// patch is a merge patch by a person with kubectl: manual edits are reverted without an approval.
func (s *stage) patch(r dynamic.ResourceInterface, name, body string) {
	s.Helper()
	_, err := r.Patch(testContext(s.T), name, types.MergePatchType, []byte(body), metav1.PatchOptions{FieldManager: "kubectl-edit"})
	require.NoError(s, err)
}

// eventually polls, since other processes decide when.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	require.Eventually(t, ok, patience, 100*time.Millisecond, what)
}

func nested(o *unstructured.Unstructured, path ...string) any {
	v, _, _ := unstructured.NestedFieldNoCopy(o.Object, path...)
	return v
}
