// SPDX-License-Identifier: Apache-2.0

package adoption

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/yaml"

	"github.com/pergola-dev/pergola/controllers/landscape"
	"github.com/pergola-dev/pergola/controllers/owner"
)

var (
	gardens                  = schema.GroupVersionResource{Group: "operator.gardener.cloud", Version: "v1alpha1", Resource: "gardens"}
	deployments              = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	managedResourcesResource = schema.GroupVersionResource{Group: "resources.gardener.cloud", Version: "v1alpha1", Resource: "managedresources"}
	validatingWebhooks       = schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingwebhookconfigurations"}
	leases                   = schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}
	configMaps               = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	namespaces               = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
)

// clusterObject is an object of a cluster and its resource.
type clusterObject struct {
	*unstructured.Unstructured
	resource schema.GroupVersionResource
}

// clusterObjects returns all objects of a cluster by kind, namespace and name.
func (s *stage) clusterObjects(cluster string) map[string]clusterObject {
	s.Helper()
	client, err := discovery.NewDiscoveryClientForConfig(s.world.configs[cluster])
	require.NoError(s, err)
	lists, err := client.ServerPreferredResources()
	require.NoError(s, err)
	out := map[string]clusterObject{}
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		require.NoError(s, err)
		for _, r := range list.APIResources {
			if strings.Contains(r.Name, "/") || !slices.Contains(r.Verbs, "patch") || slices.Contains([]string{"ComponentStatus", "Event", "Lease", "EndpointSlice", "Endpoints", "Node", "Pod", "ReplicaSet"}, r.Kind) {
				continue
			}
			objects, err := s.api[cluster].Resource(gv.WithResource(r.Name)).List(s.context(), metav1.ListOptions{})
			if apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) {
				continue
			}
			require.NoError(s, err, r.Name)
			for i := range objects.Items {
				o := &objects.Items[i]
				out[o.GetKind()+"."+o.GroupVersionKind().Group+" "+strings.TrimPrefix(o.GetNamespace()+"/"+o.GetName(), "/")] = clusterObject{o, gv.WithResource(r.Name)}
			}
		}
	}
	return out
}

// imitateUpstream rewrites the field managers of applied objects to upstream's and deletes our
// inventories.
func (s *stage) imitateUpstream(cluster string) {
	s.Helper()
	for name, o := range s.clusterObjects(cluster) {
		r := s.api[cluster].Resource(o.resource).Namespace(o.GetNamespace())
		if strings.HasPrefix(o.GetName(), owner.InventoryPrefix) {
			require.NoError(s, r.Delete(s.context(), o.GetName(), metav1.DeleteOptions{}))
			continue
		}
		managers, changed := []metav1.ManagedFieldsEntry{}, false
		for _, m := range o.GetManagedFields() {
			switch {
			case m.Operation == metav1.ManagedFieldsOperationApply && m.Manager == "pergola/seed":
				m.Manager, m.Operation, changed = "gardener-resource-manager", metav1.ManagedFieldsOperationUpdate, true
			case m.Operation == metav1.ManagedFieldsOperationApply && strings.HasPrefix(m.Manager, "pergola"):
				m.Manager, m.Operation, changed = "gardener-operator", metav1.ManagedFieldsOperationUpdate, true
			case strings.HasPrefix(m.Manager, "pergola"):
				m.Manager, changed = "gardener-operator", true
			}
			managers = append(managers, m)
		}
		if !changed {
			continue
		}
		patch := []map[string]any{{"op": "replace", "path": "/metadata/managedFields", "value": managers}}
		for _, key := range slices.Sorted(maps.Keys(o.GetAnnotations())) {
			if strings.Contains(key, "pergola.dev") {
				patch = append(patch, map[string]any{"op": "remove", "path": "/metadata/annotations/" + strings.ReplaceAll(key, "/", "~1")})
			}
		}
		body, err := json.Marshal(patch)
		require.NoError(s, err)
		_, err = r.Patch(s.context(), o.GetName(), types.JSONPatchType, body, metav1.PatchOptions{FieldManager: "gardener-operator"})
		require.NoError(s, err, name)
	}
}

// deployGardenerOperator deploys gardener-operator to the runtime cluster, with its webhook and its
// lease.
func (s *stage) deployGardenerOperator() {
	s.Helper()
	r := s.api[landscape.Runtime]
	_, err := r.Resource(gardens).Patch(s.context(), "local", types.MergePatchType,
		[]byte(`{"status":{"gardener":{"id":"o","name":"gardener-operator-1","version":"v1.150.0"}}}`), metav1.PatchOptions{FieldManager: "gardener-operator"}, "status")
	require.NoError(s, err)
	for _, o := range []struct {
		resource schema.GroupVersionResource
		text     string
	}{
		{deployments, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: gardener-operator, namespace: garden}, spec: {replicas: 2, selector: {matchLabels: {app: gardener-operator}},
  template: {metadata: {labels: {app: gardener-operator}}, spec: {containers: [{name: operator, image: "europe-docker.pkg.dev/gardener-project/releases/gardener/operator:v1.150.0"}]}}}}`},
		{validatingWebhooks, `{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: gardener-operator}, webhooks: [{name: validation.operator.gardener.cloud,
  admissionReviewVersions: [v1], sideEffects: None, failurePolicy: Ignore, timeoutSeconds: 1, clientConfig: {service: {name: gardener-operator, namespace: garden, path: /v}},
  rules: [{apiGroups: [operator.gardener.cloud], apiVersions: [v1alpha1], operations: [DELETE], resources: [gardens]}]}]}`},
		{validatingWebhooks, `{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: somebody}, webhooks: [{name: a.somebody.example,
  admissionReviewVersions: [v1], sideEffects: None, failurePolicy: Ignore, timeoutSeconds: 1, clientConfig: {service: {name: somebody, namespace: garden}},
  rules: [{apiGroups: [somebody.example], apiVersions: [v1], operations: [DELETE], resources: [things]}]}]}`},
	} {
		object := &unstructured.Unstructured{}
		require.NoError(s, yaml.Unmarshal([]byte(o.text), &object.Object))
		_, err := r.Resource(o.resource).Namespace(object.GetNamespace()).Create(s.context(), object, metav1.CreateOptions{FieldManager: "helm"})
		require.NoError(s, err)
	}
	// the names of upstream
	for _, claim := range []string{"main-virtual-garden-etcd-virtual-garden-etcd-main-0", "virtual-garden-etcd-events-virtual-garden-etcd-events-0"} {
		object := &unstructured.Unstructured{}
		require.NoError(s, yaml.Unmarshal([]byte("{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: "+claim+", namespace: garden}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}"), &object.Object))
		_, err := r.Resource(schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumeclaims"}).Namespace("garden").Create(s.context(), object, metav1.CreateOptions{})
		require.NoError(s, err)
	}
	s.holdLease("gardener-operator-leader-election", "gardener-operator-7d4b9-x_0815", 1)
}

// holdLease lets another holder have a lease of the runtime cluster, for some seconds without
// renewal.
func (s *stage) holdLease(name, holder string, seconds int) {
	s.Helper()
	now := time.Now().UTC().Format("2006-01-02T15:04:05.000000Z")
	patch := map[string]any{"spec": map[string]any{"holderIdentity": holder, "leaseDurationSeconds": seconds, "renewTime": now, "acquireTime": now}}
	body, err := json.Marshal(patch)
	require.NoError(s, err)
	r := s.api[landscape.Runtime].Resource(leases).Namespace("garden")
	_, err = r.Patch(s.context(), name, types.MergePatchType, body, metav1.PatchOptions{FieldManager: "gardener-operator"})
	if apierrors.IsNotFound(err) {
		lease := &unstructured.Unstructured{Object: patch}
		lease.SetGroupVersionKind(schema.GroupVersionKind{Group: "coordination.k8s.io", Version: "v1", Kind: "Lease"})
		lease.SetName(name)
		lease.Object["spec"].(map[string]any)["leaseDurationSeconds"] = int64(seconds)
		_, err = r.Create(s.context(), lease, metav1.CreateOptions{FieldManager: "gardener-operator"})
	}
	require.NoError(s, err)
}
