package gardendeletion

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/landscape"
)

// world is every object of the runtime cluster, by kind, namespace and name.
type world map[string]*unstructured.Unstructured

// unstored are kinds that only exist while they are asked for.
var unstored = []string{"ComponentStatus", "APIService"}

func (s *stage) world() world {
	s.Helper()
	client, err := discovery.NewDiscoveryClientForConfig(env.configs[landscape.Runtime])
	require.NoError(s, err)
	lists, err := client.ServerPreferredResources()
	require.NoError(s, err)
	out := world{}
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		require.NoError(s, err)
		for _, r := range list.APIResources {
			if strings.Contains(r.Name, "/") || !slices.Contains(r.Verbs, "list") || slices.Contains(unstored, r.Kind) {
				continue
			}
			objects, err := s.api[landscape.Runtime].Resource(gv.WithResource(r.Name)).List(s.context(), metav1.ListOptions{})
			if apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) {
				continue
			}
			require.NoError(s, err, r.Name)
			for i := range objects.Items {
				o := &objects.Items[i]
				out[o.GetKind()+"."+o.GroupVersionKind().Group+" "+strings.TrimPrefix(o.GetNamespace()+"/"+o.GetName(), "/")] = o
			}
		}
	}
	return out
}

// stays tells what may be left of a Garden: Events, Leases, claims that are retained with their volumes, and what Pergola's own chart and bootstrap bring, which
// are no part of the Garden.
func stays(o *unstructured.Unstructured) bool {
	ref := apply.RefOf(o)
	switch ref.Kind {
	case "Event", "Lease", "PersistentVolumeClaim", "PersistentVolume":
		return true
	case "Namespace":
		return ref.Name == "garden"
	case "PriorityClass": // of the chart, which keeps it, too
		return ref.Name == "gardener-garden-system-critical"
	case "CustomResourceDefinition":
		return strings.HasSuffix(ref.Name, ".operator.gardener.cloud")
	case "ConfigMap":
		return ref.Namespace == "garden" && (ref.Name == "kube-root-ca.crt" || ref.Name == "pergola-inventory.landscape-bootstrap")
	case "ServiceAccount":
		return ref.Namespace == "garden" && ref.Name == "default"
	}
	return false
}

// but gives the objects that are in w and not in other.
func (w world) but(other world) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(w)) {
		if other[name] == nil && !stays(w[name]) {
			out = append(out, name)
		}
	}
	return out
}

// changed gives the objects that are in both worlds and say something else: labels, annotations, finalizers, or content.
func (w world) changed(before world) []string {
	said := func(o *unstructured.Unstructured) string {
		content := map[string]any{"labels": o.GetLabels(), "annotations": o.GetAnnotations(), "finalizers": o.GetFinalizers()}
		for field, value := range o.Object {
			if field != "metadata" && field != "status" {
				content[field] = value
			}
		}
		text, err := json.Marshal(content)
		if err != nil {
			return err.Error()
		}
		return string(text)
	}
	var out []string
	for _, name := range slices.Sorted(maps.Keys(w)) {
		o := w[name]
		if before[name] == nil || slices.Contains([]string{"Event", "Lease", "Node", "Endpoints", "EndpointSlice"}, o.GetKind()) {
			continue
		}
		if a, b := said(before[name]), said(o); a != b {
			out = append(out, name+"\n  "+a+"\n  "+b)
		}
	}
	return out
}
