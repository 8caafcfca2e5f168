// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

// clusterScoped are the kinds without a namespace in the APIs of Kubernetes and Pergola, by group;
// the other kinds of these groups have one. Tests compare them with an API server and with our
// definitions, which are too slow to read here.
var clusterScoped = map[string][]string{
	"":                             {"Namespace", "Node", "PersistentVolume", "ComponentStatus"},
	"admissionregistration.k8s.io": {"*"},
	"apiextensions.k8s.io":         {"*"},
	"apiregistration.k8s.io":       {"*"},
	"authentication.k8s.io":        {"TokenReview", "SelfSubjectReview"},
	"authorization.k8s.io":         {"SelfSubjectAccessReview", "SelfSubjectRulesReview", "SubjectAccessReview"},
	"certificates.k8s.io":          {"CertificateSigningRequest", "ClusterTrustBundle"},
	"flowcontrol.apiserver.k8s.io": {"*"},
	"internal.apiserver.k8s.io":    {"*"},
	"networking.k8s.io":            {"IngressClass", "IPAddress", "ServiceCIDR"},
	"node.k8s.io":                  {"*"},
	"rbac.authorization.k8s.io":    {"ClusterRole", "ClusterRoleBinding"},
	"resource.k8s.io":              {"DeviceClass", "DeviceTaintRule", "ResourcePoolStatusRequest", "ResourceSlice"},
	"scheduling.k8s.io":            {"PriorityClass"},
	"storage.k8s.io":               {"CSIDriver", "CSINode", "StorageClass", "VolumeAttachment", "VolumeAttributesClass"},
	"storagemigration.k8s.io":      {"*"},

	"core.gardener.cloud": {"BackupBucket", "CloudProfile", "ControllerDeployment", "ControllerInstallation", "ControllerRegistration", "ExposureClass",
		"Project", "Seed"},
	"extensions.gardener.cloud": {"BackupBucket", "BackupEntry", "Cluster"},
	"operator.gardener.cloud":   {"*"},

	"fluentbit.fluent.io": {"ClusterFilter", "ClusterFluentBitConfig", "ClusterInput", "ClusterMultilineParser", "ClusterOutput", "ClusterParser"},
	"perses.dev":          {"PersesGlobalDatasource"},
}

// namespacedGroups are APIs that the catalogue installs or expects. Their kinds have a namespace
// unless they are in clusterScoped.
var namespacedGroups = []string{
	"autoscaling.gardener.cloud", "autoscaling.k8s.io", "extensions.istio.io", "fluentbit.fluent.io", "monitoring.coreos.com", "networking.istio.io",
	"opentelemetry.io", "operator.victoriametrics.com", "perses.dev", "security.istio.io", "telemetry.istio.io",
	"core.gardener.cloud", "dashboard.gardener.cloud", "druid.gardener.cloud", "extensions.gardener.cloud", "landscape.pergola.dev", "operations.gardener.cloud",
	"resources.gardener.cloud", "security.gardener.cloud", "seedmanagement.gardener.cloud",
}

// isNamespaced reports whether objects of a kind have a namespace, if that is known without a
// cluster.
func isNamespaced(gvk schema.GroupVersionKind) (namespaced, known bool) {
	kinds := clusterScoped[gvk.Group]
	if slices.Contains(kinds, "*") || slices.Contains(kinds, gvk.Kind) {
		return false, true
	}
	if slices.Contains(namespacedGroups, gvk.Group) {
		return true, true
	}
	recognized := scheme.Scheme.Recognizes(gvk)
	return recognized, recognized
}

// setNamespaces sets the namespace of objects of a bundle that need one and have none.
func (b *Bundle) setNamespaces() {
	defined := definedScopes(b.Objects)
	for _, o := range b.Objects {
		if o.GetNamespace() == "" {
			o.SetNamespace(b.namespaceFor(o, defined))
		}
	}
}

// namespaceFor is the namespace of an object that names none; it is empty if its kind has none or
// is unknown. In a cluster that owners share it is the bundle's namespace. An overlay for all
// Shoots cannot name it, and "default" would be common to them. In a cluster of its owner it is
// "default", as with upstream's resource-manager.
func (b *Bundle) namespaceFor(o Object, defined map[schema.GroupKind]bool) string {
	namespaced, known := defined[o.GroupVersionKind().GroupKind()]
	if !known {
		namespaced, _ = isNamespaced(o.GroupVersionKind())
	}
	switch {
	case !namespaced:
		return ""
	case b.isShared():
		return b.Namespace
	}
	return metav1.NamespaceDefault
}

// isShared reports whether the bundle's cluster also serves other owners.
func (b *Bundle) isShared() bool { return b.Cluster == ClusterSeed || b.Cluster == ClusterRuntime }

// definedScopes returns the kinds that objects define; true means namespaced.
func definedScopes(objects []Object) map[schema.GroupKind]bool {
	out := map[schema.GroupKind]bool{}
	for _, o := range objects {
		if o.GetKind() != "CustomResourceDefinition" {
			continue
		}
		group, _, _ := unstructured.NestedString(o.Object, "spec", "group")
		kind, _, _ := unstructured.NestedString(o.Object, "spec", "names", "kind")
		scope, _, _ := unstructured.NestedString(o.Object, "spec", "scope")
		out[schema.GroupKind{Group: group, Kind: kind}] = scope == string(apiextensionsv1.NamespaceScoped)
	}
	return out
}

// shootCollision describes the fault of an object that an overlay adds for every Shoot under one
// name in the Seed's cluster. Such Shoots would share it. It is empty if there is none.
func (b *Bundle) shootCollision(o Object, defined map[schema.GroupKind]bool) string {
	if b.Owner.Kind != "shoot" || !b.isShared() || o.GetKind() == "CustomResourceDefinition" {
		return ""
	}
	namespace := o.GetNamespace()
	if namespace == "" {
		namespace = b.namespaceFor(o, defined)
	}
	if namespace == b.Namespace || strings.Contains(o.GetName()+" "+namespace, b.Owner.ControlPlaneNamespace) {
		return ""
	}
	what, remedy := "", "declare it once for the Seed, in components/seed/"
	if namespace != "" {
		what, remedy = " in namespace "+namespace, "remove metadata.namespace to use the namespace of each control plane, or "+remedy
	} else if _, known := isNamespaced(o.GroupVersionKind()); !known {
		remedy += ", or copy the namespace of an object of the component by a replacement, if its kind has one"
	}
	return fmt.Sprintf("the overlay adds %s %s%s for every Shoot, but only one Shoot of a seed can have this object; %s",
		o.GetKind(), o.GetName(), what, remedy)
}

// existingObject is the object of the bundle with the identity of o after namespaces are set; it is
// nil if there is none.
func (b *Bundle) existingObject(o Object, defined map[schema.GroupKind]bool) *Object {
	named := func(o Object) [4]string {
		namespace := o.GetNamespace()
		if namespace == "" {
			namespace = b.namespaceFor(o, defined)
		}
		gvk := o.GroupVersionKind()
		return [4]string{gvk.Group, gvk.Kind, namespace, o.GetName()}
	}
	for i := range b.Objects {
		if named(b.Objects[i]) == named(o) {
			return &b.Objects[i]
		}
	}
	return nil
}
