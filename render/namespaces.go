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

// clusterScoped are the kinds of Kubernetes' own API and of ours that have no namespace, by group;
// all other kinds of these have one. Tests compare them with what an API server says, and with our
// definitions, which take too long to read for this.
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

// namespacedGroups are APIs that the catalogue installs or expects, whose kinds have a namespace
// unless they are above.
var namespacedGroups = []string{
	"autoscaling.gardener.cloud", "autoscaling.k8s.io", "extensions.istio.io", "fluentbit.fluent.io", "monitoring.coreos.com", "networking.istio.io",
	"opentelemetry.io", "operator.victoriametrics.com", "perses.dev", "security.istio.io", "telemetry.istio.io",
	"core.gardener.cloud", "dashboard.gardener.cloud", "druid.gardener.cloud", "extensions.gardener.cloud", "landscape.pergola.dev", "operations.gardener.cloud",
	"resources.gardener.cloud", "security.gardener.cloud", "seedmanagement.gardener.cloud",
}

// isNamespaced tells whether objects of a kind have a namespace, where that can be known without a
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

// giveNamespaces gives the objects of a bundle that need a namespace and name none the one that is
// meant.
func (b *Bundle) giveNamespaces() {
	defined := scopesIn(b.Objects)
	for _, o := range b.Objects {
		if o.GetNamespace() == "" {
			o.SetNamespace(b.namespaceFor(o, defined))
		}
	}
}

// namespaceFor is the namespace of an object that names none, empty where its kind has none or is
// not known. In a cluster that many owners share it is that of the bundle: an overlay for all
// Shoots cannot name it, and "default" would be one for all of them. In a cluster of its owner it
// is "default", where upstream's resource-manager puts such objects.
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

// isShared is true for a bundle in a cluster that is not the owner's alone.
func (b *Bundle) isShared() bool { return b.Cluster == ClusterSeed || b.Cluster == ClusterRuntime }

// scopesIn are the kinds that objects define, true for those with a namespace.
func scopesIn(objects []Object) map[schema.GroupKind]bool {
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

// sharedByShoots says what is wrong with an object that an overlay adds for every Shoot under one
// name in the cluster of their seed: the second Shoot there would have the object of the first.
// Empty if nothing is.
func (b *Bundle) sharedByShoots(o Object, defined map[schema.GroupKind]bool) string {
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
		what, remedy = " in namespace "+namespace, "leave metadata.namespace out, then each Shoot has it in the namespace of its control plane, or "+remedy
	} else if _, known := isNamespaced(o.GroupVersionKind()); !known {
		remedy += ", or give it the namespace of an object of the component by a replacement, if its kind has one"
	}
	return fmt.Sprintf("the overlay adds %s %s%s for every Shoot: it would be one object for all Shoots of a seed, and only one of them can have it; %s",
		o.GetKind(), o.GetName(), what, remedy)
}

// twinOf is the object of the bundle that another one without a namespace would be; nil if there is
// none.
func (b *Bundle) twinOf(o Object, defined map[schema.GroupKind]bool) *Object {
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
