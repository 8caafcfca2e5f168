// SPDX-License-Identifier: Apache-2.0

package schemas

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/pergola-dev/pergola/schemas/requests"
)

// requestGoRules lists warnings about groups, resources and subjects that do not exist. The API
// accepts any.
func requestGoRules() []goRule {
	const (
		shootServer    = "spec.kubernetes.kubeAPIServer"
		gardenServer   = "spec.virtualCluster.kubernetes.kubeAPIServer"
		gardener       = "spec.virtualCluster.gardener."
		gardenerServer = gardener + "gardenerAPIServer"
	)
	encrypted := func(kind, server string) goRule {
		return newGoWarning(kind, "encrypted-resources", "Resources that are encrypted exist",
			"A resource without a dot belongs to the core group. An entry that does not exist encrypts nothing. The rule is in Go because the message names the intended resource.",
			"ours", encryptionResourcesCheck(server)).withFields(server + ".encryptionConfig")
	}
	named := func(kind string, lists ...resourceList) goRule {
		fields := make([]string, len(lists))
		for i, list := range lists {
			fields[i] = list.at
		}
		return newGoWarning(kind, "named-resources", "Resources of caches, limits and stores exist",
			"An entry for another resource has no effect. The rule is in Go because the message names the intended resource.",
			"ours", namedResourcesCheck(lists)).withFields(fields...)
	}
	return []goRule{
		encrypted("Shoot", shootServer),
		encrypted("Garden", gardenServer),
		named("Shoot", resourceList{shootServer + ".watchCacheSizes.resources", "apiGroup", "resource"}),
		named("Garden", resourceList{gardenServer + ".watchCacheSizes.resources", "apiGroup", "resource"},
			resourceList{gardenServer + ".resourcesToStoreInETCDEvents", "group", "resource"},
			resourceList{gardenerServer + ".watchCacheSizes.resources", "apiGroup", "resource"},
			resourceList{gardener + "gardenerAdmissionController.resourceAdmissionConfiguration.limits", "apiGroups", "resources"}),
		newGoWarning("Garden", "quota-resources", "Quotas for projects are ResourceQuotas that count existing resources",
			"A count of another resource limits nothing. The rule is in Go because the resources come from the schemas.",
			"ours", checkQuotaResources).withFields(gardener + "gardenerControllerManager.defaultProjectQuotas"),
		newGoWarning("Garden", "known-subjects", "Users and groups of the system have an existing name",
			"A misspelt name of the system matches no user. The rule is in Go because the message names the intended one.",
			"ours", checkSubjects).withFields(gardener + "gardenerAdmissionController.resourceAdmissionConfiguration.unrestrictedSubjects"),
	}
}

// resourceList is a list whose items name resources, in fields that hold one or several groups and
// resources.
type resourceList struct{ at, groups, resources string }

func namedResourcesCheck(lists []resourceList) func(ruleInput) []finding {
	return func(in ruleInput) []finding {
		r := &findingCollector{}
		for _, list := range lists {
			for _, item := range (fieldValue{value: in.object}).lookup(strings.Split(list.at, ".")...).items() {
				r.checkResources(item.lookup(list.groups), item.lookup(list.resources))
				r.checkVersions(item.lookup(list.groups), item.lookup(list.resources), item.lookup("apiVersions"))
				if size, ok := item.lookup("size").quantity(); ok && list.groups == "apiGroups" && size.Sign() > 0 && size.CmpInt64(1000) < 0 {
					r.add(item.lookup("size"), TypeInvalid, "%v is %s bytes; write a unit, such as k or Mi", item.lookup("size").value, size.AsDec())
				}
			}
		}
		return r.findings
	}
}

// checkResources checks the resources of groups. Both fields hold one or several; no group means
// the core group.
func (r *findingCollector) checkResources(groups, resources fieldValue) {
	names, wrong := []string{}, false
	for _, group := range itemsOrSelf(groups) {
		if words := requests.CheckGroup(group.text()); words != "" {
			r.add(group, TypeNotSupported, "%s", words)
			wrong = true
		}
		names = append(names, group.text())
	}
	if len(names) == 0 {
		names = []string{""}
	}
	if wrong {
		return
	}
	for _, resource := range itemsOrSelf(resources) {
		if name := resource.text(); name != "" && !strings.Contains(name, "*") {
			if words := requests.CheckResource(name, names, resourcePlurals); words != "" {
				r.add(resource, TypeNotSupported, "%s", words)
			}
		}
	}
}

// checkVersions checks the versions of groups that have schemas here, and that each resource has
// one of them.
func (r *findingCollector) checkVersions(groups, resources, versions fieldValue) {
	known, of := map[string]bool{}, map[string]map[string]bool{}
	for _, group := range itemsOrSelf(groups) {
		here := false
		for _, gvk := range embeddedKinds().gvks {
			if gvk.Group != group.text() || gvk.Group == "" {
				continue
			}
			here, known[gvk.Version] = true, true
			plural, _ := meta.UnsafeGuessKindToResource(gvk)
			if of[plural.Resource] == nil {
				of[plural.Resource] = map[string]bool{}
			}
			of[plural.Resource][gvk.Version] = true
		}
		if !here {
			return
		}
	}
	written := versions.texts()
	for _, version := range itemsOrSelf(versions) {
		if len(known) > 0 && version.text() != "*" && version.text() != "" && !known[version.text()] {
			r.add(version, TypeNotSupported, "%q is not a version of these APIs; use %s", version.text(), strings.Join(slices.Sorted(maps.Keys(known)), ", "))
			return
		}
	}
	for _, resource := range itemsOrSelf(resources) {
		has := of[resource.text()]
		if len(has) > 0 && len(written) > 0 && !slices.ContainsFunc(written, func(version string) bool { return version == "*" || has[version] }) {
			r.add(versions, TypeNotSupported, "%s are not served in %s, but in %s", resource.text(), strings.Join(written, ", "), strings.Join(slices.Sorted(maps.Keys(has)), ", "))
		}
	}
}

// itemsOrSelf returns the items of a list, or the value itself.
func itemsOrSelf(t fieldValue) []fieldValue {
	if !t.isSet() {
		return nil
	}
	if isList(t) {
		return t.items()
	}
	return []fieldValue{t}
}

func checkSubjects(in ruleInput) []finding {
	r := &findingCollector{}
	for _, subject := range gardenComponent(in.object, "gardenerAdmissionController").lookup("resourceAdmissionConfiguration", "unrestrictedSubjects").items() {
		if words := requests.CheckSubject(subject.lookup("name").text()); words != "" {
			r.add(subject.lookup("name"), TypeNotSupported, "%s", words)
		}
	}
	return r.findings
}

func encryptionResourcesCheck(server string) func(ruleInput) []finding {
	return func(in ruleInput) []finding {
		r := &findingCollector{}
		for _, item := range (fieldValue{value: in.object}).lookup(strings.Split(server, ".")...).lookup("encryptionConfig", "resources").items() {
			name, group, _ := strings.Cut(item.text(), ".")
			wrong := requests.CheckResource(name, []string{group}, resourcePlurals)
			switch {
			case name == "" || strings.Contains(name, "*") || strings.ToLower(item.text()) != item.text():
				// another rule reports an error
			case wrong != "":
				r.add(item, TypeNotSupported, "%s; write NAME, or NAME.GROUP for one of another group", wrong)
			case in.kind.GVK.Kind == "Garden" && strings.HasSuffix(group, "gardener.cloud") && hasAggregatedAPI(in.landscape):
				r.add(item, TypeInvalid, "kube-apiserver does not store %s, since spec.gardenAPI of landscape.yaml is aggregated; list it in spec.virtualCluster.gardener.gardenerAPIServer.encryptionConfig", item.text())
			case group == "" && !hasResource("", name):
				r.add(item, TypeNotSupported, "%q is not a resource of the core group; write NAME.GROUP for one of another group", name)
			}
		}
		return r.findings
	}
}

// hasAggregatedAPI reports whether gardener-apiserver serves and stores the API of the garden,
// according to the landscape.
func hasAggregatedAPI(landscape *landscapeIndex) bool {
	if landscape == nil {
		return false
	}
	for _, object := range landscape.objects("Landscape") {
		if (fieldValue{value: object}).lookup("spec", "gardenAPI").text() == "aggregated" {
			return true
		}
	}
	return false
}

func hasResource(group, name string) bool {
	for _, plural := range requests.KubernetesResources(group) {
		if plural == name {
			return true
		}
	}
	return false
}

func checkQuotaResources(in ruleInput) []finding {
	r := &findingCollector{}
	quotas := gardenComponent(in.object, "gardenerControllerManager").lookup("defaultProjectQuotas").items()
	for i, quota := range quotas {
		config := quota.lookup("config")
		// findings are sorted later
		for field, want := range map[string]string{"apiVersion": "v1", "kind": "ResourceQuota"} {
			if written := config.lookup(field); config.isSet() && written.text() != want {
				r.add(written, TypeInvalid, "%s is %q, but a quota for projects is a ResourceQuota of v1", field, written.text())
			}
		}
		hard := config.lookup("spec", "hard")
		if selector := quota.lookup("projectSelector"); len(selector.keys()) == 0 && i < len(quotas)-1 {
			r.add(quota, TypeInvalid, "applies to all Projects, so later quotas never apply; put it last, or set a projectSelector")
		}
		for _, name := range hard.keys() {
			if amount, ok := hard.entry(name).quantity(); ok && (amount.Sign() < 0 || strings.Contains(name, "count/") && !amount.Equal(*resource.NewQuantity(amount.Value(), resource.DecimalSI))) {
				r.add(hard.entry(name), TypeInvalid, "%v must be a whole number that is not negative", hard.entry(name).value)
			}
			counted, is := strings.CutPrefix(name, "count/")
			if !is {
				if of, is := strings.CutPrefix(strings.TrimPrefix(name, "requests."), "limits."); (is || strings.HasPrefix(name, "requests.")) && !strings.Contains(of, "/") && !slices.Contains(quotaAmountResourceNames, of) {
					r.add(hard.entry(name), TypeNotSupported, "counts nothing: amounts are of %s; write count/NAME.GROUP for numbers of objects", strings.Join(quotaAmountResourceNames, ", "))
					continue
				}
				if strings.Contains(name, ".gardener.cloud") && !strings.Contains(name, "/") {
					r.add(hard.entry(name), TypeNotSupported, "counts nothing; write count/%s", name)
				} else if !strings.ContainsAny(name, "./") && !slices.Contains(quotaResourceNames, name) {
					r.add(hard.entry(name), TypeNotSupported, "API servers refuse a quota of %q%s; write count/NAME.GROUP", name, suggestionHint(name, quotaResourceNames))
				}
				continue
			}
			plain, group, _ := strings.Cut(counted, ".")
			if wrong := requests.CheckGroup(group); wrong != "" {
				r.add(hard.entry(name), TypeNotSupported, "%s", wrong)
			} else if wrong := requests.CheckResource(plain, []string{group}, resourcePlurals); wrong != "" {
				r.add(hard.entry(name), TypeNotSupported, "%s; write count/NAME.GROUP", wrong)
			}
		}
	}
	return r.findings
}

// quotaResourceNames lists the resources that a quota counts or limits without count/
// (https://kubernetes.io/docs/concepts/policy/resource-quotas).
var quotaResourceNames = []string{
	"configmaps", "cpu", "ephemeral-storage", "memory", "persistentvolumeclaims", "pods", "replicationcontrollers", "resourcequotas", "secrets", "services",
}

// quotaAmountResourceNames lists the resources that may follow requests. and limits.
var quotaAmountResourceNames = []string{"cpu", "ephemeral-storage", "memory", "storage"}

// resourcePlurals maps singular to plural names of the resources of a group with schemas here, or
// of Kubernetes.
func resourcePlurals(group string) map[string]string {
	out := maps.Clone(requests.KubernetesResources(group))
	if out == nil {
		out = map[string]string{}
	}
	for _, gvk := range embeddedKinds().gvks {
		if gvk.Group != group {
			continue
		}
		plural, singular := meta.UnsafeGuessKindToResource(gvk)
		out[singular.Resource] = plural.Resource
	}
	return out
}
