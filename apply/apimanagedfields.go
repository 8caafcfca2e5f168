// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The API fills in some fields of a manifest. The API server overwrites the declared value, or the
// documentation of the field reserves it for a controller. Manifests contain them because someone
// copied them from a cluster, or because a chart writes an empty value. Pergola never sends them:
// it would conflict with that controller forever, or claim a field that it does not get.

// apiManagedFields is a group of such fields. Fields that the API only defaults, such as the
// addresses of a Service or the volume of a claim, do not belong here.
type apiManagedFields struct {
	kind schema.GroupKind
	// when selects objects of the kind; nil selects all.
	when   func(*unstructured.Unstructured) bool
	fields [][]string
}

var apiManagedFieldSets = []apiManagedFields{
	// "the Rules are controller managed and direct changes to Rules will be stomped by the
	// controller" (k8s.io/api/rbac/v1: ClusterRole)
	{
		kind:   schema.GroupKind{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"},
		when:   fieldPredicate("aggregationRule"),
		fields: [][]string{{"rules"}},
	},
	// set on creation and by the subresource finalize (pkg/registry/core/namespace/strategy.go);
	// the label by defaulting
	{
		// (pkg/apis/core/v1/defaults.go: SetDefaults_Namespace)
		kind:   namespaceKind,
		fields: [][]string{{"spec", "finalizers"}, {"metadata", "labels", "kubernetes.io/metadata.name"}},
	},
	// the requester, "populated by the API server on creation" (k8s.io/api/certificates/v1:
	// CertificateSigningRequestSpec)
	{
		kind:   schema.GroupKind{Group: "certificates.k8s.io", Kind: "CertificateSigningRequest"},
		fields: [][]string{{"spec", "username"}, {"spec", "uid"}, {"spec", "groups"}, {"spec", "extra"}},
	},
	// the binder writes which instance of the claim a volume is bound to
	// (pkg/controller/volume/persistentvolume: BindVolumeToClaim)
	{
		kind:   schema.GroupKind{Kind: "PersistentVolume"},
		fields: append([][]string{{"spec", "claimRef", "uid"}, {"spec", "claimRef", "resourceVersion"}}, boundAnnotations...),
	},
	{
		kind: schema.GroupKind{Kind: "PersistentVolumeClaim"},
		fields: append([][]string{annotationPath("volume.kubernetes.io/storage-provisioner"), annotationPath("volume.beta.kubernetes.io/storage-provisioner"),
			annotationPath("volume.kubernetes.io/selected-node")}, boundAnnotations...),
	},
	// "populated with a token" by the control plane (k8s.io/api/core/v1:
	// SecretTypeServiceAccountToken)
	{
		kind: secretKind,
		when: func(o *unstructured.Unstructured) bool {
			return o.Object["type"] == "kubernetes.io/service-account-token"
		},
		fields: [][]string{annotationPath("kubernetes.io/service-account.uid"), {"data", "token"}, {"data", "ca.crt"}, {"data", "namespace"},
			{"stringData", "token"}, {"stringData", "ca.crt"}, {"stringData", "namespace"}},
	},
	{ // pkg/controller/deployment/util: RevisionAnnotation and its siblings
		kind: deploymentKind,
		fields: [][]string{annotationPath("deployment.kubernetes.io/revision"), annotationPath("deployment.kubernetes.io/revision-history"),
			annotationPath("deployment.kubernetes.io/desired-replicas"), annotationPath("deployment.kubernetes.io/max-replicas")},
	},
	{ // apps/v1 stores a field of an older version here (pkg/apis/apps/v1/conversion.go)
		kind:   schema.GroupKind{Group: "apps", Kind: "DaemonSet"},
		fields: [][]string{annotationPath("deprecated.daemonset.template.generation")},
	},
	// autoscaling/v1 stores the status of newer versions here
	// (pkg/apis/autoscaling/v1/conversion.go)
	{
		kind:   hpaKind,
		fields: [][]string{annotationPath("autoscaling.alpha.kubernetes.io/conditions"), annotationPath("autoscaling.alpha.kubernetes.io/current-metrics")},
	},
	{ // written with every change of the addresses (pkg/controller/endpoint)
		kind:   schema.GroupKind{Kind: "Endpoints"},
		fields: [][]string{annotationPath("endpoints.kubernetes.io/last-change-trigger-time")},
	},
}

// boundAnnotations are set by the volume binder (k8s.io/component-helpers/storage/volume:
// AnnBindCompleted, AnnBoundByController).
var boundAnnotations = [][]string{annotationPath("pv.kubernetes.io/bind-completed"), annotationPath("pv.kubernetes.io/bound-by-controller")}

func annotationPath(name string) []string { return []string{"metadata", "annotations", name} }

func fieldPredicate(path ...string) func(*unstructured.Unstructured) bool {
	return func(o *unstructured.Unstructured) bool {
		v, found, _ := unstructured.NestedFieldNoCopy(o.Object, path...)
		return found && v != nil
	}
}

// serverFields are metadata of every kind that only the server sets.
var serverFields = []string{"managedFields", "resourceVersion", "uid", "creationTimestamp", "generation", "selfLink",
	"deletionTimestamp", "deletionGracePeriodSeconds"}

// dropAPIManagedFields removes the fields that the API fills in.
func dropAPIManagedFields(o *unstructured.Unstructured) {
	for _, f := range serverFields {
		unstructured.RemoveNestedField(o.Object, "metadata", f)
	}
	unstructured.RemoveNestedField(o.Object, "status")
	for _, a := range apiManagedFieldSets {
		if a.kind != groupKindOf(o) || a.when != nil && !a.when(o) {
			continue
		}
		for _, path := range a.fields {
			unstructured.RemoveNestedField(o.Object, path...)
		}
	}
}
