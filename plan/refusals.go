package plan

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/internal/jsonvalue"
)

type schemaKind = schema.GroupKind

// refusals are the changes that API servers refuse, by kind. Source: Validate*Update in kubernetes,
// pkg/apis/*/validation, and the strategies in pkg/registry; a test uses an API server. Other kinds
// accept all changes.
var refusals = joinedRules(map[schemaKind][]rule{
	{Group: "apps", Kind: "Deployment"}: {fixed("spec.selector")},
	{Group: "apps", Kind: "DaemonSet"}:  {fixed("spec.selector")},
	{Group: "apps", Kind: "ReplicaSet"}: {fixed("spec.selector")},
	{Group: "apps", Kind: "StatefulSet"}: {allBut("spec", "spec.replicas", "spec.ordinals", "spec.template", "spec.updateStrategy",
		"spec.revisionHistoryLimit", "spec.persistentVolumeClaimRetentionPolicy", "spec.minReadySeconds")},
	{Group: "apps", Kind: "ControllerRevision"}: {fixed("data")},

	{Group: "batch", Kind: "Job"}: {fixed("spec.selector", "spec.completionMode", "spec.podFailurePolicy", "spec.backoffLimitPerIndex",
		"spec.managedBy", "spec.successPolicy"), completions, jobTemplate},

	{Kind: "Pod"}:     {podSpec, deadline},
	{Kind: "Service"}: {serviceAddresses},
	{Kind: "PersistentVolumeClaim"}: {allBut("spec", "spec.resources.requests.storage", "spec.volumeAttributesClassName"),
		notLess("spec.resources.requests.storage"), staysSet("spec.volumeAttributesClassName"),
		fixedAnnotation("volume.beta.kubernetes.io/storage-class")},
	{Kind: "PersistentVolume"}: {volumeSource, fixed("spec.volumeMode"), setOnce("spec.nodeAffinity"), staysSet("spec.volumeAttributesClassName")},
	{Kind: "Node"}:             {setOnce("spec.providerID", "spec.podCIDR", "spec.podCIDRs"), fixed("spec.externalID")},
	{Kind: "ResourceQuota"}:    {fixed("spec.scopes")},
	{Kind: "Secret"}:           {fixed("type")},

	{Group: "rbac.authorization.k8s.io", Kind: "RoleBinding"}:        {fixed("roleRef")},
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRoleBinding"}: {fixed("roleRef")},

	{Group: "networking.k8s.io", Kind: "IngressClass"}: {fixed("spec.controller")},
	{Group: "networking.k8s.io", Kind: "IPAddress"}:    {fixed("spec.parentRef")},
	{Group: "networking.k8s.io", Kind: "ServiceCIDR"}:  {serviceRanges},
	{Group: "discovery.k8s.io", Kind: "EndpointSlice"}: {fixed("addressType")},

	{Group: "scheduling.k8s.io", Kind: "PriorityClass"}: {fixed("value", "preemptionPolicy")},
	{Group: "node.k8s.io", Kind: "RuntimeClass"}:        {fixed("handler")},

	{Group: "storage.k8s.io", Kind: "StorageClass"}:          {fixed("provisioner", "parameters", "reclaimPolicy", "volumeBindingMode")},
	{Group: "storage.k8s.io", Kind: "CSIDriver"}:             {fixed("spec.attachRequired", "spec.volumeLifecycleModes")},
	{Group: "storage.k8s.io", Kind: "CSIStorageCapacity"}:    {fixed("nodeTopology", "storageClassName")},
	{Group: "storage.k8s.io", Kind: "VolumeAttributesClass"}: {fixed("driverName", "parameters")},
	{Group: "storage.k8s.io", Kind: "VolumeAttachment"}:      {fixed("spec")},

	{Group: "coordination.k8s.io", Kind: "LeaseCandidate"}:              {fixed("spec.leaseName")},
	{Group: "certificates.k8s.io", Kind: "ClusterTrustBundle"}:          {fixed("spec.signerName")},
	{Group: "resource.k8s.io", Kind: "ResourceClaim"}:                   {fixed("spec")},
	{Group: "resource.k8s.io", Kind: "ResourceClaimTemplate"}:           {fixed("spec")},
	{Group: "resource.k8s.io", Kind: "ResourceSlice"}:                   {fixed("spec.pool.name", "spec.driver", "spec.nodeName")},
	{Group: "storagemigration.k8s.io", Kind: "StorageVersionMigration"}: {fixed("spec")},

	{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}: {fixed("spec.group", "spec.scope", "spec.names.kind", "spec.names.plural"),
		storedVersions, when(func(e edit) bool { return e.is("spec.preserveUnknownFields") == true }, fixed("spec.preserveUnknownFields"))},
}, gardenerRefusals)

func joinedRules(maps ...map[schemaKind][]rule) map[schemaKind][]rule {
	out := map[schemaKind][]rule{}
	for _, m := range maps {
		for k, rules := range m {
			out[k] = rules
		}
	}
	return out
}

// completions of a Job change only in indexed mode, together with the parallelism.
func completions(e edit) []string {
	if e.is("spec.completionMode") == "Indexed" && jsonvalue.Equal(e.is("spec.completions"), e.is("spec.parallelism")) {
		return nil
	}
	return fixed("spec.completions")(e)
}

// jobTemplate is a rule for a Job's template: a suspended Job may change its scheduling. Removed
// labels keep their live value (keeping).
func jobTemplate(e edit) []string {
	if e.was("spec.suspend") == true {
		return allBut("spec.template", "spec.template.metadata.labels", "spec.template.metadata.annotations", "spec.template.spec.nodeSelector",
			"spec.template.spec.tolerations", "spec.template.spec.schedulingGates", "spec.template.spec.affinity.nodeAffinity")(e)
	}
	return fixed("spec.template")(e)
}

// podSpec is a rule for Pods: only images, deadline, new tolerations and removed gates change.
func podSpec(e edit) []string {
	var out []string
	for _, f := range e.fields {
		container := strings.HasPrefix(f.Path, "spec.containers[") || strings.HasPrefix(f.Path, "spec.initContainers[")
		switch {
		case !within(f.Path, "spec"),
			container && strings.HasSuffix(f.Path, "].image"),
			within(f.Path, "spec.tolerations") && f.Old == nil,
			within(f.Path, "spec.schedulingGates") && f.New == nil,
			f.Path == "spec.activeDeadlineSeconds":
		default:
			out = append(out, f.Path)
		}
	}
	return out
}

// deadline of a Pod may only decrease.
func deadline(e edit) []string {
	const path = "spec.activeDeadlineSeconds"
	if !e.changed(path) || e.was(path) == nil || e.is(path) != nil && !less(e.was(path), e.is(path)) {
		return nil
	}
	return []string{path}
}

// holdsItsPlace reports whether a recreated Service needs the address or a node port that it still
// has. The engine's dry run before the deletion then fails.
func holdsItsPlace(e edit) bool {
	if ip := addressOf(e.new); ip != "" && ip != headless && ip == addressOf(e.old) {
		return true
	}
	taken := map[any]bool{}
	ports, _ := e.was("spec.ports").([]any)
	for _, p := range ports {
		taken[nestedIn(p, "nodePort")] = true
	}
	ports, _ = e.is("spec.ports").([]any)
	return slices.ContainsFunc(ports, func(p any) bool { n := nestedIn(p, "nodePort"); return n != nil && taken[n] })
}

// less compares numbers; it returns true if either is not a number.
func less(a, b any) bool {
	x, ok := jsonvalue.Number(a)
	y, ok2 := jsonvalue.Number(b)
	return !ok || !ok2 || x.Cmp(y) < 0
}

// serviceAddresses is a rule for the addresses of a Service. Type ExternalName has none, so that a
// change from or to it is possible.
func serviceAddresses(e edit) []string {
	was, is := e.was("spec.type"), e.is("spec.type")
	if was == "ExternalName" || is == "ExternalName" {
		return nil
	}
	old, new := addressOf(e.old), addressOf(e.new)
	var out []string
	balanced := was == "LoadBalancer" && is == "LoadBalancer"
	switch {
	case new == headless && old != headless:
		out = append(out, "spec.clusterIP")
	case old == headless && (is == "NodePort" || is == "LoadBalancer"):
		out = append(out, "spec.type") // "None" remains, and these types need an address
	case e.is("spec.clusterIP") == nil && old != "" && new != "" && old != new:
		out = append(out, "spec.clusterIPs") // the engine keeps only the other field
	}
	if balanced {
		out = append(out, fixed("spec.loadBalancerClass")(e)...)
		if e.was("spec.externalTrafficPolicy") == "Local" && e.is("spec.externalTrafficPolicy") == "Local" && e.is("spec.healthCheckNodePort") != nil {
			out = append(out, fixed("spec.healthCheckNodePort")(e)...)
		}
	}
	before, _ := e.was("spec.ipFamilies").([]any)
	after, _ := e.is("spec.ipFamilies").([]any)
	if len(before) > 0 && len(after) > 0 && !jsonvalue.Equal(before[0], after[0]) && old != headless {
		out = append(out, "spec.ipFamilies")
	}
	return out
}

// headless is the clusterIP of a Service without an address.
const headless = "None"

// addressOf returns the declared address of a Service, empty if the API server chooses one.
func addressOf(service map[string]any) string {
	if ip := str(service, "spec", "clusterIP"); ip != "" {
		return ip
	}
	ips, _ := nestedValue(service, "spec", "clusterIPs").([]any)
	if len(ips) > 0 {
		ip, _ := ips[0].(string)
		return ip
	}
	return ""
}

// volumeSource is a rule for the type-specific fields of a PersistentVolume. Only the reference to
// credentials for expansion may be added.
func volumeSource(e edit) []string {
	return allBut("spec", "spec.capacity", "spec.accessModes", "spec.claimRef", "spec.persistentVolumeReclaimPolicy", "spec.storageClassName",
		"spec.mountOptions", "spec.volumeMode", "spec.nodeAffinity", "spec.volumeAttributesClassName")(edit{e.old, e.new,
		slices.DeleteFunc(slices.Clone(e.fields), func(f change.Field) bool {
			return f.Path == "spec.csi.controllerExpandSecretRef" && f.Old == nil && !f.Hidden
		}), e.scaled})
}

// serviceRanges may get a second range, of the other address family.
func serviceRanges(e edit) []string {
	before, _ := e.was("spec.cidrs").([]any)
	after, _ := e.is("spec.cidrs").([]any)
	if len(before) == 1 && len(after) == 2 && jsonvalue.Equal(before[0], after[0]) {
		return nil
	}
	return fixed("spec.cidrs")(e)
}

// storedVersions is a rule for definitions: the storage version must remain, since objects are
// stored in it. Former storage versions are unknown here.
func storedVersions(e edit) []string {
	versions, _ := e.was("spec.versions").([]any)
	left, _ := e.is("spec.versions").([]any)
	var out []string
	for _, v := range versions {
		version, _ := v.(map[string]any)
		stays := slices.ContainsFunc(left, func(v any) bool { return nestedIn(v, "name") == version["name"] })
		if version["storage"] == true && !stays {
			out = append(out, "spec.versions[name="+str(version, "name")+"] (objects are stored in it)")
		}
	}
	return out
}

func nestedIn(v any, key string) any {
	m, _ := v.(map[string]any)
	return m[key]
}

// fixedAnnotation is a rule for an immutable annotation.
func fixedAnnotation(name string) rule {
	return func(e edit) []string {
		if jsonvalue.Equal(nestedValue(e.old, "metadata", "annotations", name), nestedValue(e.new, "metadata", "annotations", name)) {
			return nil
		}
		return []string{"metadata.annotations[" + name + "]"}
	}
}

// unmendable are refusals that also apply to a new object.
var unmendable = map[schemaKind][]rule{
	// both are part of its name
	{Group: "apiregistration.k8s.io", Kind: "APIService"}: {fixed("spec.group", "spec.version")},
}
