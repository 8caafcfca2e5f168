// SPDX-License-Identifier: Apache-2.0

package render

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	gardencorev1 "github.com/pergola-dev/pergola/api/core/v1"
	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	operatorv1alpha1 "github.com/pergola-dev/pergola/api/operator/v1alpha1"
)

// extensionType is a kind and type of extension objects.
type extensionType struct{ kind, typ string }

// MarkRequiredExtensions marks the Extensions whose objects the Garden has in the runtime cluster;
// these are installed there.
func (in *Input) MarkRequiredExtensions() {
	var garden operatorv1alpha1.Garden
	if in.Extensions == nil || runtime.DefaultUnstructuredConverter.FromUnstructured(in.Objects["garden"], &garden) != nil {
		return
	}
	used := usedExtensionTypes(&garden)
	for name, e := range in.Extensions {
		e.Required = false
		for _, r := range e.resources() {
			auto := r.Kind == "Extension" && slices.Contains(r.AutoEnable, gardencorev1beta1.ClusterTypeGarden) && !e.Deleting
			e.Required = e.Required || auto || used[extensionType{r.Kind, r.Type}]
		}
		in.Extensions[name] = e
	}
}

// usedExtensionTypes are the extension types that the Garden uses.
func usedExtensionTypes(garden *operatorv1alpha1.Garden) map[extensionType]bool {
	used := map[extensionType]bool{}
	for _, e := range garden.Spec.Extensions {
		used[extensionType{"Extension", e.Type}] = true
	}
	if backup := garden.Spec.VirtualCluster.ETCD; backup != nil && backup.Main != nil && backup.Main.Backup != nil {
		used[extensionType{"BackupBucket", backup.Main.Backup.Provider}] = true
		used[extensionType{"BackupEntry", backup.Main.Backup.Provider}] = true
	}
	if dns := garden.Spec.DNS; dns != nil {
		for _, name := range dnsProviders(garden) {
			for i, p := range dns.Providers {
				if p.Name == name || name == "" && i == 0 {
					used[extensionType{"DNSRecord", p.Type}] = true
				}
			}
		}
	}
	return used
}

// dnsProviders are the names of the providers that domains use; empty means the first one.
func dnsProviders(garden *operatorv1alpha1.Garden) []string {
	var out []string
	add := func(d operatorv1alpha1.DNSDomain) {
		if d.Provider == nil {
			out = append(out, "")
		} else {
			out = append(out, *d.Provider)
		}
	}
	for _, d := range garden.Spec.VirtualCluster.DNS.Domains {
		add(d)
	}
	for _, d := range garden.Spec.RuntimeCluster.Ingress.Domains {
		add(d)
	}
	gardener := garden.Spec.VirtualCluster.Gardener
	if d := gardener.Dashboard; d != nil && d.Domain != nil {
		add(*d.Domain)
	}
	if d := gardener.DiscoveryServer; d != nil && d.Domain != nil {
		add(*d.Domain)
	}
	return out
}

// resources are the types that an Extension supports.
func (e Extension) resources() []gardencorev1beta1.ControllerResource {
	var spec operatorv1alpha1.ExtensionSpec
	if runtime.DefaultUnstructuredConverter.FromUnstructured(e.Spec, &spec) != nil {
		return nil
	}
	return spec.Resources
}

// RequiredCharts returns the charts that the bundles of Extensions are rendered from.
func (in *Input) RequiredCharts() []gardencorev1.OCIRepository {
	var out []gardencorev1.OCIRepository
	add := func(d *operatorv1alpha1.DeploymentSpec) {
		if d != nil && d.Helm != nil && d.Helm.OCIRepository != nil {
			out = append(out, *d.Helm.OCIRepository)
		}
	}
	for _, name := range sortedKeys(in.Extensions) {
		e := in.Extensions[name]
		var spec operatorv1alpha1.ExtensionSpec
		if runtime.DefaultUnstructuredConverter.FromUnstructured(e.Spec, &spec) != nil || spec.Deployment == nil {
			continue
		}
		if spec.Deployment.ExtensionDeployment != nil && e.Required {
			add(&spec.Deployment.ExtensionDeployment.DeploymentSpec)
		}
		if admission := spec.Deployment.AdmissionDeployment; admission != nil && !e.Deleting {
			add(admission.RuntimeCluster)
			add(admission.VirtualCluster)
		}
	}
	return out
}

// RequiredResources returns the Secrets and ConfigMaps that chart values in the Garden's clusters
// use.
func (in *Input) RequiredResources() []gardencorev1.NamedResourceReference {
	var out []gardencorev1.NamedResourceReference
	for _, name := range sortedKeys(in.Extensions) {
		e := in.Extensions[name]
		deployment, _, _ := unstructured.NestedMap(e.Spec, "deployment")
		extension, _ := deployment["extension"].(map[string]any)
		admission, _ := deployment["admission"].(map[string]any)
		if !(e.Required && hasTemplates(extension["runtimeClusterValues"])) && !(!e.Deleting && hasTemplates(admission["values"])) {
			continue
		}
		var spec operatorv1alpha1.ExtensionSpec
		if runtime.DefaultUnstructuredConverter.FromUnstructured(e.Spec, &spec) == nil {
			out = append(out, spec.Deployment.Resources...)
		}
	}
	return out
}
