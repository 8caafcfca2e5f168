// SPDX-License-Identifier: Apache-2.0

package apply

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/plan"
)

// These tests define their own conventions; controllers/conventions has the real ones.

// gardenerKeys returns upstream's keys.
func gardenerKeys() Keys {
	const p = "resources.gardener.cloud/"
	return Keys{
		ManagedByLabel:  p + "managed-by",
		ManagedByValue:  "gardener",
		Origin:          p + "origin",
		Description:     p + "description",
		DescriptionText: "Managed by Pergola. Manual changes are reverted; change the declaration in Git instead.",
		Ignore:          p + "ignore",
		Mode:            p + "mode",
		// our own annotation: upstream always overwrites
		ForceConflicts:        "landscape.pergola.dev/force-conflicts",
		KeepObject:            p + "keep-object",
		DeleteOnInvalidUpdate: p + "delete-on-invalid-update",
		InvalidUpdateDeletion: p + "deletion-propagation-on-invalid-update",
		PreserveReplicas:      p + "preserve-replicas",
		PreserveResources:     p + "preserve-resources",
		GarbageCollectable:    p + "garbage-collectable-reference",
		FinalizeDeletionAfter: p + "finalize-deletion-after",
	}
}

// newEngine makes an engine with these conventions.
func newEngine(o Options) *Engine {
	const update, applied = metav1.ManagedFieldsOperationUpdate, metav1.ManagedFieldsOperationApply
	o.Keys, o.ExplainItem = gardenerKeys(), plan.AddConsequences
	o.Protected = []schema.GroupKind{{Kind: "PersistentVolumeClaim"}, namespaceKind, crdKind}
	o.TakeoverManagers = []TakeoverManager{
		{Name: "kubectl-client-side-apply", Operation: update},
		{Name: "kubectl", Operation: update, Annotation: LastAppliedAnnotation},
		{Name: "before-first-apply", Operation: update, Annotation: LastAppliedAnnotation},
		{Name: "helm", Operation: update}, {Name: "helm", Operation: applied},
		{Name: "gardener-resource-manager", Operation: update, HasInventories: true},
		{Name: "gardener-operator", Operation: update, HasInventories: true},
		{Name: "gardenlet", Operation: update, HasInventories: true},
		{Name: "pergola-adopt", Operation: update},
	}
	return NewEngine(o)
}

// newCluster prepares a cluster whose live cache selects the objects of such an engine.
func newCluster(name string, config *rest.Config, o ClusterOptions) (*Cluster, error) {
	o.Selector = gardenerKeys().Selector()
	return NewCluster(name, config, o)
}

// holdReason returns a reason to hold a recreation, or nil.
func holdReason(holds bool, text string) *change.Reason {
	if !holds {
		return nil
	}
	return &change.Reason{Detail: text}
}
