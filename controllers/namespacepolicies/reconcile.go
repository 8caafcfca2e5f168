package namespacepolicies

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
)

// reconcile applies the policies of a namespace, and sends no request while they match. It returns
// when to retry; 0 is never.
func (c *Controller) reconcile(ctx context.Context, name string) (time.Duration, error) {
	c.mu.Lock()
	known, networks := c.known, c.networks
	around := &surroundings{networks: networks}
	if c.lookedUp {
		around.servers = c.servers()
	}
	c.mu.Unlock()
	found, exists, err := c.namespaces.GetStore().GetByKey(name)
	if err == nil && !exists {
		c.repairs.forget(name)
	}
	if err != nil || !exists || !known {
		return 0, err
	}
	namespace, ok := found.(*metav1.PartialObjectMetadata)
	if !ok || namespace.DeletionTimestamp != nil {
		return 0, nil // its objects are deleted with it
	}
	var wanted []string
	if networks != nil {
		wanted = namesFor(name, labels.Set(namespace.Labels), c.o.Further)
		if err := c.addShoot(around, namespace, len(wanted) > 0); err != nil {
			return 0, err
		}
	}
	var again time.Duration
	var problems []error
	for _, policy := range names() {
		live := c.live(name, policy)
		if !slices.Contains(wanted, policy) {
			problems = append(problems, c.remove(ctx, live))
			continue
		}
		spec := around.policy(policy)
		if spec == nil || live != nil && c.isAsWanted(live, spec) {
			continue
		}
		key := types.NamespacedName{Namespace: name, Name: policy}
		if pause := c.repairs.pause(key, spec); pause > 0 {
			again = max(again, pause)
			continue
		}
		problems = append(problems, c.write(ctx, key, spec))
	}
	return again, errors.Join(problems...)
}

// servers returns rules to the API server. Callers hold c.mu.
func (c *Controller) servers() []networkingv1.NetworkPolicyEgressRule {
	var found []*discoveryv1.EndpointSlice
	for _, o := range c.endpoints.GetStore().List() {
		if slice, ok := o.(*discoveryv1.EndpointSlice); ok {
			found = append(found, slice)
		}
	}
	return serverRules(found, c.serversAt)
}

// addShoot adds the networks of the Shoot whose control plane is in the namespace.
func (c *Controller) addShoot(around *surroundings, namespace *metav1.PartialObjectMetadata, needed bool) error {
	if !needed || namespace.Labels[gardencorev1beta1.GardenRole] != gardencorev1beta1.GardenRoleShoot {
		return nil
	}
	c.watchClusters()
	found, exists, err := c.clusters.GetStore().GetByKey(namespace.Name)
	if err != nil {
		return err
	}
	cluster, ok := found.(*unstructured.Unstructured)
	if !exists || !ok {
		around.unknown = true // its event triggers a reconciliation
		return nil
	}
	around.shoot, err = ofShoot(cluster)
	return err
}

func (c *Controller) live(namespace, name string) *networkingv1.NetworkPolicy {
	found, exists, err := c.policies.GetStore().GetByKey(namespace + "/" + name)
	if err != nil || !exists {
		return nil
	}
	policy, _ := found.(*networkingv1.NetworkPolicy)
	return policy
}

// isAsWanted reports whether a live policy has the spec and our label. Its description follows from
// the spec, so it only has to exist.
func (c *Controller) isAsWanted(live *networkingv1.NetworkPolicy, spec *networkingv1.NetworkPolicySpec) bool {
	return live.Labels[LabelMadeBy] == c.o.MadeBy && live.Annotations[annotationDescription] != "" && apiequality.Semantic.DeepEqual(live.Spec, *spec)
}

// write applies a policy and overrides other field managers: in these namespaces Gardener owns the
// names.
func (c *Controller) write(ctx context.Context, key types.NamespacedName, spec *networkingv1.NetworkPolicySpec) error {
	body, err := json.Marshal(&networkingv1.NetworkPolicy{
		TypeMeta: metav1.TypeMeta{APIVersion: networkingv1.SchemeGroupVersion.String(), Kind: "NetworkPolicy"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: key.Namespace, Name: key.Name,
			Labels: map[string]string{LabelMadeBy: c.o.MadeBy}, Annotations: map[string]string{annotationDescription: description(key.Name)},
		},
		Spec: *spec,
	})
	if err != nil {
		return fmt.Errorf("writing NetworkPolicy %s: %w", key, err)
	}
	_, err = c.client.NetworkingV1().NetworkPolicies(key.Namespace).Patch(ctx, key.Name, types.ApplyPatchType, body, metav1.PatchOptions{FieldManager: FieldManager, Force: new(true)})
	if apierrors.HasStatusCause(err, "NamespaceTerminating") {
		return nil
	}
	if err != nil {
		return fmt.Errorf("writing NetworkPolicy %s: %w", key, err)
	}
	c.o.Log.Info("written", "networkPolicy", key.String())
	return nil
}

// remove deletes a policy that this role made.
func (c *Controller) remove(ctx context.Context, live *networkingv1.NetworkPolicy) error {
	if live == nil || live.DeletionTimestamp != nil || live.Labels[LabelMadeBy] != c.o.MadeBy {
		return nil
	}
	err := c.client.NetworkingV1().NetworkPolicies(live.Namespace).Delete(ctx, live.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &live.UID}})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("deleting NetworkPolicy %s/%s: %w", live.Namespace, live.Name, err)
	}
	c.o.Log.Info("deleted", "networkPolicy", live.Namespace+"/"+live.Name)
	return nil
}

const (
	// freeRepairs is how often a policy is written within peace; then once per slowRepair.
	freeRepairs = 5
	peace       = 2 * time.Minute
	slowRepair  = time.Minute
)

// repairs slow down writes of a policy that another client keeps changing.
type repairs struct {
	clock clock.PassiveClock
	mu    sync.Mutex
	by    map[types.NamespacedName]repaired
}

// repaired are the times at which a policy was written with the same spec.
type repaired struct {
	spec *networkingv1.NetworkPolicySpec
	at   []time.Time
}

// pause returns how long to wait before writing a policy. If that is zero, it records a write. A
// new spec is written at once.
func (r *repairs) pause(policy types.NamespacedName, spec *networkingv1.NetworkPolicySpec) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.clock.Now()
	before := r.by[policy]
	if before.spec == nil || !apiequality.Semantic.DeepEqual(before.spec, spec) {
		before = repaired{spec: spec}
	}
	before.at = slices.DeleteFunc(before.at, func(at time.Time) bool { return now.Sub(at) > peace })
	if len(before.at) >= freeRepairs {
		if wait := slowRepair - now.Sub(before.at[len(before.at)-1]); wait > 0 {
			return wait
		}
	}
	if r.by == nil {
		r.by = map[types.NamespacedName]repaired{}
	}
	before.at = append(before.at, now)
	r.by[policy] = before
	return 0
}

// forget drops a deleted namespace.
func (r *repairs) forget(namespace string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, name := range names() {
		delete(r.by, types.NamespacedName{Namespace: namespace, Name: name})
	}
}
