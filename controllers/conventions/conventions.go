// SPDX-License-Identifier: Apache-2.0

package conventions

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/plan"
)

// NewEngine returns an engine with these conventions. Options that are set take precedence.
func NewEngine(o apply.Options) *apply.Engine {
	if o.Keys == (apply.Keys{}) {
		o.Keys = ManagedResourceKeys()
	}
	if o.Protected == nil {
		o.Protected = ProtectedKinds()
	}
	if o.TakeoverManagers == nil {
		o.TakeoverManagers = takeoverManagers()
	}
	if o.ExplainItem == nil {
		o.ExplainItem = plan.AddConsequences
	}
	return apply.NewEngine(o)
}

// NewCluster prepares the access to a cluster. Without a selector in the options its live cache
// selects the objects that an engine of NewEngine applies.
func NewCluster(name string, config *rest.Config, o apply.ClusterOptions) (*apply.Cluster, error) {
	if o.Selector == "" {
		o.Selector = ManagedResourceKeys().Selector()
	}
	return apply.NewCluster(name, config, o)
}

// ManagedResourceKeys are the keys of upstream's ManagedResource contract
// (pkg/apis/resources/v1alpha1).
func ManagedResourceKeys() apply.Keys {
	const p = "resources.gardener.cloud/"
	return apply.Keys{
		ManagedByLabel:  p + "managed-by",
		ManagedByValue:  "gardener",
		Origin:          p + "origin",
		Description:     p + "description",
		DescriptionText: "Managed by Pergola. Changes made by hand are reverted; change the declaration in Git instead.",
		Ignore:          p + "ignore",
		Mode:            p + "mode",
		// Pergola's own: upstream always overwrites.
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

// ProtectedKinds are the kinds whose deletion loses data or clusters that an apply does not bring
// back.
func ProtectedKinds() []schema.GroupKind {
	return []schema.GroupKind{
		{Kind: "PersistentVolumeClaim"}, {Kind: "PersistentVolume"}, {Kind: "Namespace"},
		{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"},
		{Group: "druid.gardener.cloud", Kind: "Etcd"},
		{Group: "operator.gardener.cloud", Kind: "Garden"},
		{Group: "core.gardener.cloud", Kind: "Seed"},
		{Group: "core.gardener.cloud", Kind: "Shoot"},
		{Group: "core.gardener.cloud", Kind: "Project"},
		{Group: "core.gardener.cloud", Kind: "BackupBucket"},
		{Group: "core.gardener.cloud", Kind: "BackupEntry"},
		{Group: "core.gardener.cloud", Kind: "ShootState"},
		{Group: "extensions.gardener.cloud", Kind: "BackupBucket"},
		{Group: "extensions.gardener.cloud", Kind: "BackupEntry"},
		{Group: "extensions.gardener.cloud", Kind: "Infrastructure"},
		{Group: "extensions.gardener.cloud", Kind: "Worker"},
	}
}

// AdoptionManager is the field manager of `pergola adopt` in objects that Pergola does not own yet.
const AdoptionManager = "pergola-adopt"

// takeoverManagers are client-side kubectl apply, Helm, and the Gardener components that write with
// Update. Objects older than managed fields belong to "before-first-apply", objects of old kubectls
// to "kubectl". kubectl's annotation says that they were applied as a whole.
func takeoverManagers() []apply.TakeoverManager {
	const update, applied = metav1.ManagedFieldsOperationUpdate, metav1.ManagedFieldsOperationApply
	return []apply.TakeoverManager{
		{Name: "kubectl-client-side-apply", Operation: update},
		{Name: "kubectl", Operation: update, Annotation: apply.LastAppliedAnnotation},
		{Name: "before-first-apply", Operation: update, Annotation: apply.LastAppliedAnnotation},
		{Name: "helm", Operation: update}, {Name: "helm", Operation: applied},
		{Name: "gardener-resource-manager", Operation: update, HasInventories: true},
		{Name: "gardener-operator", Operation: update, HasInventories: true},
		{Name: "gardenlet", Operation: update, HasInventories: true},
		{Name: AdoptionManager, Operation: update},
	}
}
