// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/internal/jsonvalue"
)

type schemaKind = schema.GroupKind

// updateRules are the changes that API servers refuse, by kind. Source: Validate*Update in
// kubernetes, pkg/apis/*/validation, and the strategies in pkg/registry; a test uses an API server.
// Other kinds accept all changes.
var updateRules = joinedRules(map[schemaKind][]updateRule{
	{Group: "apps", Kind: "Deployment"}: {immutableFields("spec.selector")},
	{Group: "apps", Kind: "DaemonSet"}:  {immutableFields("spec.selector")},
	{Group: "apps", Kind: "ReplicaSet"}: {immutableFields("spec.selector")},
	{Group: "apps", Kind: "StatefulSet"}: {immutableExcept("spec", "spec.replicas", "spec.ordinals", "spec.template", "spec.updateStrategy",
		"spec.revisionHistoryLimit", "spec.persistentVolumeClaimRetentionPolicy", "spec.minReadySeconds")},
	{Group: "apps", Kind: "ControllerRevision"}: {immutableFields("data")},

	{Group: "batch", Kind: "Job"}: {immutableFields("spec.selector", "spec.completionMode", "spec.podFailurePolicy", "spec.backoffLimitPerIndex",
		"spec.managedBy", "spec.successPolicy"), jobCompletions, jobTemplate},

	{Kind: "Pod"}:     {podSpec, podDeadline},
	{Kind: "Service"}: {serviceAddresses},
	{Kind: "PersistentVolumeClaim"}: {immutableExcept("spec", "spec.resources.requests.storage", "spec.volumeAttributesClassName"),
		notDecreasing("spec.resources.requests.storage"), notRemovable("spec.volumeAttributesClassName"),
		fixedAnnotation("volume.beta.kubernetes.io/storage-class")},
	{Kind: "PersistentVolume"}: {volumeSource, immutableFields("spec.volumeMode"), immutableOnceSet("spec.nodeAffinity"), notRemovable("spec.volumeAttributesClassName")},
	{Kind: "Node"}:             {immutableOnceSet("spec.providerID", "spec.podCIDR", "spec.podCIDRs"), immutableFields("spec.externalID")},
	{Kind: "ResourceQuota"}:    {immutableFields("spec.scopes")},
	{Kind: "Secret"}:           {immutableFields("type")},

	{Group: "rbac.authorization.k8s.io", Kind: "RoleBinding"}:        {immutableFields("roleRef")},
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRoleBinding"}: {immutableFields("roleRef")},

	{Group: "networking.k8s.io", Kind: "IngressClass"}: {immutableFields("spec.controller")},
	{Group: "networking.k8s.io", Kind: "IPAddress"}:    {immutableFields("spec.parentRef")},
	{Group: "networking.k8s.io", Kind: "ServiceCIDR"}:  {serviceRanges},
	{Group: "discovery.k8s.io", Kind: "EndpointSlice"}: {immutableFields("addressType")},

	{Group: "scheduling.k8s.io", Kind: "PriorityClass"}: {immutableFields("value", "preemptionPolicy")},
	{Group: "node.k8s.io", Kind: "RuntimeClass"}:        {immutableFields("handler")},

	{Group: "storage.k8s.io", Kind: "StorageClass"}:          {immutableFields("provisioner", "parameters", "reclaimPolicy", "volumeBindingMode")},
	{Group: "storage.k8s.io", Kind: "CSIDriver"}:             {immutableFields("spec.attachRequired", "spec.volumeLifecycleModes")},
	{Group: "storage.k8s.io", Kind: "CSIStorageCapacity"}:    {immutableFields("nodeTopology", "storageClassName")},
	{Group: "storage.k8s.io", Kind: "VolumeAttributesClass"}: {immutableFields("driverName", "parameters")},
	{Group: "storage.k8s.io", Kind: "VolumeAttachment"}:      {immutableFields("spec")},

	{Group: "coordination.k8s.io", Kind: "LeaseCandidate"}:              {immutableFields("spec.leaseName")},
	{Group: "certificates.k8s.io", Kind: "ClusterTrustBundle"}:          {immutableFields("spec.signerName")},
	{Group: "resource.k8s.io", Kind: "ResourceClaim"}:                   {immutableFields("spec")},
	{Group: "resource.k8s.io", Kind: "ResourceClaimTemplate"}:           {immutableFields("spec")},
	{Group: "resource.k8s.io", Kind: "ResourceSlice"}:                   {immutableFields("spec.pool.name", "spec.driver", "spec.nodeName")},
	{Group: "storagemigration.k8s.io", Kind: "StorageVersionMigration"}: {immutableFields("spec")},

	{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}: {immutableFields("spec.group", "spec.scope", "spec.names.kind", "spec.names.plural"),
		storedVersions, conditionalRules(func(e objectChange) bool { return e.newValue("spec.preserveUnknownFields") == true }, immutableFields("spec.preserveUnknownFields"))},
}, gardenerUpdateRules)

func joinedRules(maps ...map[schemaKind][]updateRule) map[schemaKind][]updateRule {
	out := map[schemaKind][]updateRule{}
	for _, m := range maps {
		for k, rules := range m {
			out[k] = rules
		}
	}
	return out
}

// jobCompletions of a Job change only in indexed mode, together with the parallelism.
func jobCompletions(e objectChange) []string {
	if e.newValue("spec.completionMode") == "Indexed" && jsonvalue.Equal(e.newValue("spec.completions"), e.newValue("spec.parallelism")) {
		return nil
	}
	return immutableFields("spec.completions")(e)
}

// jobTemplate is a rule for a Job's template: a suspended Job may change its scheduling. Removed
// labels keep their live value (keeping).
func jobTemplate(e objectChange) []string {
	if e.oldValue("spec.suspend") == true {
		return immutableExcept("spec.template", "spec.template.metadata.labels", "spec.template.metadata.annotations", "spec.template.spec.nodeSelector",
			"spec.template.spec.tolerations", "spec.template.spec.schedulingGates", "spec.template.spec.affinity.nodeAffinity")(e)
	}
	return immutableFields("spec.template")(e)
}

// podSpec is a rule for Pods: only images, deadline, new tolerations and removed gates change.
func podSpec(e objectChange) []string {
	var out []string
	for _, f := range e.fields {
		container := strings.HasPrefix(f.Path, "spec.containers[") || strings.HasPrefix(f.Path, "spec.initContainers[")
		switch {
		case !isWithin(f.Path, "spec"),
			container && strings.HasSuffix(f.Path, "].image"),
			isWithin(f.Path, "spec.tolerations") && f.Old == nil,
			isWithin(f.Path, "spec.schedulingGates") && f.New == nil,
			f.Path == "spec.activeDeadlineSeconds":
		default:
			out = append(out, f.Path)
		}
	}
	return out
}

// podDeadline of a Pod may only decrease.
func podDeadline(e objectChange) []string {
	const path = "spec.activeDeadlineSeconds"
	if !e.hasChanged(path) || e.oldValue(path) == nil || e.newValue(path) != nil && !isLess(e.oldValue(path), e.newValue(path)) {
		return nil
	}
	return []string{path}
}

// hasAddressConflict reports whether a recreated Service needs the address or a node port that it
// still has. The engine's dry run before the deletion then fails.
func hasAddressConflict(e objectChange) bool {
	if ip := addressOf(e.new); ip != "" && ip != headlessClusterIP && ip == addressOf(e.old) {
		return true
	}
	taken := map[any]bool{}
	ports, _ := e.oldValue("spec.ports").([]any)
	for _, p := range ports {
		taken[fieldOf(p, "nodePort")] = true
	}
	ports, _ = e.newValue("spec.ports").([]any)
	return slices.ContainsFunc(ports, func(p any) bool { n := fieldOf(p, "nodePort"); return n != nil && taken[n] })
}

// isLess compares numbers; it returns true if either is not a number.
func isLess(a, b any) bool {
	x, ok := jsonvalue.Number(a)
	y, ok2 := jsonvalue.Number(b)
	return !ok || !ok2 || x.Cmp(y) < 0
}

// serviceAddresses is a rule for the addresses of a Service. Type ExternalName has none, so a
// change from or to it is possible.
func serviceAddresses(e objectChange) []string {
	was, is := e.oldValue("spec.type"), e.newValue("spec.type")
	if was == "ExternalName" || is == "ExternalName" {
		return nil
	}
	old, new := addressOf(e.old), addressOf(e.new)
	var out []string
	balanced := was == "LoadBalancer" && is == "LoadBalancer"
	switch {
	case new == headlessClusterIP && old != headlessClusterIP:
		out = append(out, "spec.clusterIP")
	case old == headlessClusterIP && (is == "NodePort" || is == "LoadBalancer"):
		out = append(out, "spec.type") // "None" remains, and these types need an address
	case e.newValue("spec.clusterIP") == nil && old != "" && new != "" && old != new:
		out = append(out, "spec.clusterIPs") // the engine keeps only the other field
	}
	if balanced {
		out = append(out, immutableFields("spec.loadBalancerClass")(e)...)
		if e.oldValue("spec.externalTrafficPolicy") == "Local" && e.newValue("spec.externalTrafficPolicy") == "Local" && e.newValue("spec.healthCheckNodePort") != nil {
			out = append(out, immutableFields("spec.healthCheckNodePort")(e)...)
		}
	}
	before, _ := e.oldValue("spec.ipFamilies").([]any)
	after, _ := e.newValue("spec.ipFamilies").([]any)
	if len(before) > 0 && len(after) > 0 && !jsonvalue.Equal(before[0], after[0]) && old != headlessClusterIP {
		out = append(out, "spec.ipFamilies")
	}
	return out
}

// headlessClusterIP is the clusterIP of a Service without an address.
const headlessClusterIP = "None"

// addressOf returns the declared address of a Service, or "" if the API server chooses one.
func addressOf(service map[string]any) string {
	if ip := nestedText(service, "spec", "clusterIP"); ip != "" {
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
func volumeSource(e objectChange) []string {
	return immutableExcept("spec", "spec.capacity", "spec.accessModes", "spec.claimRef", "spec.persistentVolumeReclaimPolicy", "spec.storageClassName",
		"spec.mountOptions", "spec.volumeMode", "spec.nodeAffinity", "spec.volumeAttributesClassName")(objectChange{e.old, e.new,
		slices.DeleteFunc(slices.Clone(e.fields), func(f change.Field) bool {
			return f.Path == "spec.csi.controllerExpandSecretRef" && f.Old == nil && !f.Hidden
		}), e.isAutoscaled})
}

// serviceRanges may get a second range, of the other address family.
func serviceRanges(e objectChange) []string {
	before, _ := e.oldValue("spec.cidrs").([]any)
	after, _ := e.newValue("spec.cidrs").([]any)
	if len(before) == 1 && len(after) == 2 && jsonvalue.Equal(before[0], after[0]) {
		return nil
	}
	return immutableFields("spec.cidrs")(e)
}

// storedVersions is a rule for definitions: the storage version must remain, because objects are
// stored in it. Former storage versions are unknown here.
func storedVersions(e objectChange) []string {
	versions, _ := e.oldValue("spec.versions").([]any)
	left, _ := e.newValue("spec.versions").([]any)
	var out []string
	for _, v := range versions {
		version, _ := v.(map[string]any)
		stays := slices.ContainsFunc(left, func(v any) bool { return fieldOf(v, "name") == version["name"] })
		if version["storage"] == true && !stays {
			out = append(out, "spec.versions[name="+nestedText(version, "name")+"] (objects are stored in it)")
		}
	}
	return out
}

func fieldOf(v any, key string) any {
	m, _ := v.(map[string]any)
	return m[key]
}

// fixedAnnotation is a rule for an immutable annotation.
func fixedAnnotation(name string) updateRule {
	return func(e objectChange) []string {
		if jsonvalue.Equal(nestedValue(e.old, "metadata", "annotations", name), nestedValue(e.new, "metadata", "annotations", name)) {
			return nil
		}
		return []string{"metadata.annotations[" + name + "]"}
	}
}

// creationRules are refusals that also apply to a new object.
var creationRules = map[schemaKind][]updateRule{
	// both are part of its name
	{Group: "apiregistration.k8s.io", Kind: "APIService"}: {immutableFields("spec.group", "spec.version")},
}
