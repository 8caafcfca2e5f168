package owner

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	operatorv1alpha1 "github.com/pergola-dev/pergola/api/operator/v1alpha1"
	"github.com/pergola-dev/pergola/render"
)

// secretGenericKubeconfig is the request whose Secret says how pods beside the virtual garden reach it.
const secretGenericKubeconfig = "generic-token-kubeconfig"

// nameKubeconfig says in an annotation of a Garden which Secret its generic kubeconfig is in: extensions of the garden find it so, as those of a Shoot find it by
// its Cluster. The name is another one after each rotation.
func (r *run) nameKubeconfig(ctx context.Context, made map[string]render.SecretFact) error {
	o, name := r.owner, made[secretGenericKubeconfig].Name
	if o.Input.Owner.Kind != Garden || name == "" {
		return nil
	}
	live, _, err := o.readStatus(ctx)
	if err != nil {
		return err
	}
	if live.GetAnnotations()[gardencorev1beta1.GenericTokenKubeconfigSecretName] == name {
		return nil
	}
	annotations := map[string]any{gardencorev1beta1.GenericTokenKubeconfigSecretName: name}
	_, err = o.Home.MergePatch(ctx, o.Ref, map[string]any{"metadata": map[string]any{"annotations": annotations}}, kinds[Garden].role, "")
	return o.Home.Explain(o.Ref, "write the name of its generic kubeconfig to", err)
}

// advertised are the addresses of a Garden: its API server is at the first of its domains.
func advertised(garden map[string]any) []operatorv1alpha1.AdvertisedAddress {
	domains, _, _ := unstructured.NestedSlice(garden, "spec", "virtualCluster", "dns", "domains")
	if len(domains) == 0 {
		return nil
	}
	first, _ := domains[0].(map[string]any)
	name, _ := first["name"].(string)
	if name == "" {
		return nil
	}
	return []operatorv1alpha1.AdvertisedAddress{{Name: operatorv1alpha1.AdvertisedAddressVirtualGarden, URL: "https://api." + name}}
}
