package landscapes

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pergola-dev/pergola/schemas"
)

// knownKinds are the kinds that a landscape may declare, by group and version. Garden, Seed, Shoot, Project and
// CloudProfile are fully checked (see schemas.Known); the others are accepted as they are.
func knownKinds() map[schema.GroupVersion][]string {
	return map[schema.GroupVersion][]string{
		{Version: "v1"}: {"ConfigMap", "Namespace", "Secret"},
		{Group: "operator.gardener.cloud", Version: "v1alpha1"}: {"Extension", "Garden"},
		{Group: "core.gardener.cloud", Version: "v1beta1"}: {
			"BackupBucket", "BackupEntry", "CloudProfile", "ControllerDeployment", "ControllerInstallation",
			"ControllerRegistration", "ExposureClass", "InternalSecret", "NamespacedCloudProfile", "Project", "Quota",
			"SecretBinding", "Seed", "Shoot", "ShootState",
		},
		{Group: "core.gardener.cloud", Version: "v1"}:                 {"ControllerDeployment"},
		{Group: "seedmanagement.gardener.cloud", Version: "v1alpha1"}: {"Gardenlet", "ManagedSeed", "ManagedSeedSet"},
		{Group: "operations.gardener.cloud", Version: "v1alpha1"}:     {"Bastion"},
		{Group: "security.gardener.cloud", Version: "v1alpha1"}:       {"CredentialsBinding", "WorkloadIdentity"},
		{Group: "resources.gardener.cloud", Version: "v1alpha1"}:      {"ManagedResource"},
		{Group: "extensions.gardener.cloud", Version: "v1alpha1"}: {
			"BackupBucket", "BackupEntry", "Bastion", "Cluster", "ContainerRuntime", "ControlPlane", "DNSRecord", "Extension",
			"Infrastructure", "Network", "OperatingSystemConfig", "SelfHostedShootExposure", "Worker",
		},
		{Group: "landscape.pergola.dev", Version: "v1alpha1"}: {"Landscape"},
	}
}

// checkKind gives the field and the words about a kind that a landscape may not declare, or empty text.
func checkKind(gvk schema.GroupVersionKind) (field string, typ schemas.Type, message string) {
	known := knownKinds()
	if slices.Contains(known[gvk.GroupVersion()], gvk.Kind) {
		return "", "", ""
	}
	var elsewhere, kinds []string
	for gv, names := range known {
		if slices.Contains(names, gvk.Kind) {
			elsewhere = append(elsewhere, gv.String())
		}
		kinds = append(kinds, names...)
	}
	if len(elsewhere) > 0 {
		slices.Sort(elsewhere)
		return "apiVersion", schemas.TypeNotSupported, fmt.Sprintf("%q has no kind %s; it is served by %s",
			gvk.GroupVersion().String(), gvk.Kind, strings.Join(elsewhere, " and "))
	}
	slices.Sort(kinds)
	kinds = slices.Compact(kinds)
	hint := ""
	if better := schemas.Suggest(gvk.Kind, kinds); better != "" {
		hint = fmt.Sprintf("; did you mean %s?", better)
	} else if gvk.Kind == "Kustomization" {
		hint = "; overlays belong to components/OWNER/COMPONENT/kustomization.yaml"
	}
	return "kind", schemas.TypeNotSupported, fmt.Sprintf("unknown kind %q%s; a landscape may declare %s", gvk.Kind, hint, strings.Join(kinds, ", "))
}
