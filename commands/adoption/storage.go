// SPDX-License-Identifier: Apache-2.0

package adoption

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/landscape"
)

// checkStorage reports missing volume claims of etcd-druid: with another name etcd would start
// empty.
func (a *Adopter) checkStorage(ctx context.Context, r *Report) error {
	for _, place := range a.Converger.RenderedObjects() {
		if place.Cluster != landscape.Runtime {
			continue
		}
		for _, o := range place.Bundle.Objects {
			if o.GetKind() == "Etcd" {
				if err := a.checkVolumeClaims(ctx, r, o.Unstructured); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (a *Adopter) checkVolumeClaims(ctx context.Context, r *Report, etcd *unstructured.Unstructured) error {
	template := stringField(etcd, "spec", "volumeClaimTemplate")
	if template == "" {
		template = etcd.GetName()
	}
	runtime := a.Converger.Cluster(landscape.Runtime)
	live, err := readLive(ctx, runtime, apply.RefOf(etcd))
	if err != nil {
		return err
	}
	members, _, _ := unstructured.NestedInt64(objectMap(live), "spec", "replicas")
	var found []string
	for i := range max(members, 1) {
		ref := apply.Ref{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: etcd.GetNamespace(), Name: fmt.Sprintf("%s-%s-%d", template, etcd.GetName(), i)}
		claim, err := readLive(ctx, runtime, ref)
		if err != nil {
			return err
		}
		if claim != nil {
			found = append(found, ref.String())
			continue
		}
		r.add(Finding{Level: LevelBlocks, Area: AreaStorage, Cluster: landscape.Runtime, Objects: []string{ref.String()}, Text: fmt.Sprintf("Etcd %s needs this claim, which does not exist: the member would start empty", etcd.GetName()),
			Advice: "move the data to a claim of this name (docs/howto/migrate-from-gardener.md, docs/howto/back-up-and-restore.md)"})
	}
	if len(found) > 0 {
		r.add(Finding{Level: LevelNoAction, Area: AreaStorage, Cluster: landscape.Runtime, Objects: found, Text: "Etcd " + etcd.GetName() + " finds its volumes by these names"})
	}
	return nil
}

func objectMap(o *unstructured.Unstructured) map[string]any {
	if o == nil {
		return nil
	}
	return o.Object
}
