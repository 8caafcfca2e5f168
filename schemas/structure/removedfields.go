// SPDX-License-Identifier: Apache-2.0

package structure

import (
	"strings"

	"github.com/pergola-dev/pergola/schemas/fieldpath"
)

// removedField is a field of an older upstream API.
type removedField struct {
	// kind is the field's only kind; it is "" for any, because kinds share structures.
	kind string
	// path is the end of the field's path, without indices.
	path string
	// replacement is the replacement in the words of the release notes.
	replacement string
}

// removedFields are fields whose release notes name a successor or exclude one. Rules such as
// shoot/fields-removed cover fields that remain for old Kubernetes versions.
var removedFields = [...]removedField{
	{"", "kubeAPIServer.oidcConfig", "use structuredAuthentication, which names a ConfigMap with an AuthenticationConfiguration"},
	{"", "kubernetes.allowPrivilegedContainers", "use the admission plugin PodSecurity, in kubeAPIServer.admissionPlugins or by labels of namespaces"},
	{"", "kubernetes.enableStaticTokenKubeconfig", "remove it, and request a kubeconfig from the subresource shoots/adminkubeconfig"},
	{"", "kubelet.systemReserved", "use kubeReserved"},
	{"", "backup.secretRef", "use credentialsRef"},
	{"", "dns.provider.secretRef", "use credentialsRef"},
	{"", "dns.provider.domains", "remove it; it has no successor"},
	{"", "dns.provider.zones", "remove it; it has no successor"},
	{"", "dns.ingressDomain", "use spec.ingress.domain and spec.dns.provider"},
	{"", "dependencyWatchdog.endpoint", "use weeder"},
	{"", "dependencyWatchdog.probe", "use prober"},
	{"", "runtimeCluster.ingress.domain", "use domains, a list"},
	{"BackupBucket", "spec.secretRef", "use credentialsRef"},
	{"ManagedSeed", "spec.seedTemplate", "use spec.gardenlet.config"},
	{"ManagedSeedSet", "template.spec.seedTemplate", "use gardenlet.config"},
	{"Seed", "spec.secretRef", "remove it; the gardenlet runs in the cluster of the Seed and uses its ServiceAccount"},
}

// replacementOf returns the replacement of a removed field, or "" if the API never had it.
func replacementOf(kind string, path fieldpath.Path) string {
	var names []string
	for _, step := range path {
		if name, ok := step.(string); ok {
			names = append(names, name)
		}
	}
	whole := "." + strings.Join(names, ".")
	for _, field := range removedFields {
		if (field.kind == "" || field.kind == kind) && strings.HasSuffix(whole, "."+field.path) {
			return field.replacement
		}
	}
	return ""
}
