// SPDX-License-Identifier: Apache-2.0

package schemas

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestRemovedFields checks that the message about a removed field names its replacement, and
// suggests no other field.
func TestRemovedFields(t *testing.T) {
	const (
		core       = "apiVersion: core.gardener.cloud/v1beta1\nmetadata: {name: a, namespace: b}\nkind: "
		shoot      = core + "Shoot\nspec: "
		seed       = core + "Seed\nspec: "
		management = "apiVersion: seedmanagement.gardener.cloud/v1alpha1\nmetadata: {name: a, namespace: garden}\nkind: "
		operator   = "apiVersion: operator.gardener.cloud/v1alpha1\nmetadata: {name: a}\nkind: Garden\nspec: "
	)
	for name, test := range map[string]struct{ object, field, words string }{
		"OpenID Connect of a Shoot":         {shoot + "{kubernetes: {kubeAPIServer: {oidcConfig: {issuerURL: a}}}}", "spec.kubernetes.kubeAPIServer.oidcConfig", "use structuredAuthentication,"},
		"OpenID Connect of a Garden":        {operator + "{virtualCluster: {kubernetes: {kubeAPIServer: {oidcConfig: {}}}}}", "spec.virtualCluster.kubernetes.kubeAPIServer.oidcConfig", "use structuredAuthentication,"},
		"in a template":                     {management + "ManagedSeedSet\nspec: {shootTemplate: {spec: {kubernetes: {kubeAPIServer: {oidcConfig: {}}}}}}", "spec.shootTemplate.spec.kubernetes.kubeAPIServer.oidcConfig", "use structuredAuthentication,"},
		"a static token":                    {shoot + "{kubernetes: {enableStaticTokenKubeconfig: false}}", "spec.kubernetes.enableStaticTokenKubeconfig", "shoots/adminkubeconfig"},
		"privileged containers":             {shoot + "{kubernetes: {allowPrivilegedContainers: true}}", "spec.kubernetes.allowPrivilegedContainers", "admission plugin PodSecurity"},
		"reserved for the system":           {shoot + "{kubernetes: {kubelet: {systemReserved: {cpu: 1}}}}", "spec.kubernetes.kubelet.systemReserved", "use kubeReserved"},
		"reserved on the nodes of a pool":   {shoot + "{provider: {workers: [{kubernetes: {kubelet: {systemReserved: {cpu: 1}}}}]}}", "spec.provider.workers[0].kubernetes.kubelet.systemReserved", "use kubeReserved"},
		"credentials of backups":            {seed + "{backup: {secretRef: {name: a}}}", "spec.backup.secretRef", "use credentialsRef"},
		"credentials of DNS":                {seed + "{dns: {provider: {secretRef: {name: a}}}}", "spec.dns.provider.secretRef", "use credentialsRef"},
		"domains of DNS":                    {seed + "{dns: {provider: {domains: {}}}}", "spec.dns.provider.domains", "no successor"},
		"zones of DNS":                      {seed + "{dns: {provider: {zones: {}}}}", "spec.dns.provider.zones", "no successor"},
		"domain of ingresses":               {seed + "{dns: {ingressDomain: a}}", "spec.dns.ingressDomain", "use spec.ingress.domain and spec.dns.provider"},
		"the Secret of a Seed":              {seed + "{secretRef: {name: a}}", "spec.secretRef", "ServiceAccount"},
		"the watchdog of endpoints":         {seed + "{settings: {dependencyWatchdog: {endpoint: {enabled: true}}}}", "spec.settings.dependencyWatchdog.endpoint", "use weeder"},
		"the watchdog that probes":          {seed + "{settings: {dependencyWatchdog: {probe: {enabled: true}}}}", "spec.settings.dependencyWatchdog.probe", "use prober"},
		"the domain of a runtime cluster":   {operator + "{runtimeCluster: {ingress: {domain: a}}}", "spec.runtimeCluster.ingress.domain", "use domains"},
		"credentials of a BackupBucket":     {core + "BackupBucket\nspec: {secretRef: {name: a}}", "spec.secretRef", "use credentialsRef"},
		"the template of a ManagedSeed":     {management + "ManagedSeed\nspec: {seedTemplate: {}}", "spec.seedTemplate", "use spec.gardenlet.config"},
		"the template of a ManagedSeedSet":  {management + "ManagedSeedSet\nspec: {template: {spec: {seedTemplate: {}}}}", "spec.template.spec.seedTemplate", "use gardenlet.config"},
		"credentials in a gardenlet's Seed": {management + "ManagedSeed\nspec: {gardenlet: {config: {seedConfig: {spec: {backup: {secretRef: {name: a}}}}}}}", "spec.gardenlet.config.seedConfig.spec.backup.secretRef", "use credentialsRef"},
	} {
		t.Run(name, func(t *testing.T) {
			violations, err := Validate(t.Context(), []Input{{Object: parseObject(t, test.object)}}, Options{})
			require.NoError(t, err)
			var found []string
			for _, v := range violations {
				if v.Field == test.field {
					found = append(found, v.Message)
				}
			}
			require.Len(t, found, 1, "%v", formatViolations(violations))
			assert.Contains(t, found[0], "no longer exists; ")
			assert.Contains(t, found[0], test.words)
		})
	}
}
