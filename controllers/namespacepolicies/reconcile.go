// SPDX-License-Identifier: Apache-2.0

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
	known, networks := c.isActive, c.networks
	around := &policyInputs{networks: networks}
	if c.isHostResolved {
		around.apiServerRules = c.apiServerRules()
	}
	c.mu.Unlock()
	found, exists, err := c.namespaces.GetStore().GetByKey(name)
	if err == nil && !exists {
		c.repairLimiter.forgetNamespace(name)
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
		wanted = policyNamesFor(name, labels.Set(namespace.Labels), c.options.ExtraNamespaces)
		if err := c.addShootNetworks(around, namespace, len(wanted) > 0); err != nil {
			return 0, err
		}
	}
	var again time.Duration
	var problems []error
	for _, policy := range policyNames() {
		live := c.livePolicy(name, policy)
		if !slices.Contains(wanted, policy) {
			problems = append(problems, c.deletePolicy(ctx, live))
			continue
		}
		spec := around.policySpec(policy)
		if spec == nil || live != nil && c.isUpToDate(live, spec) {
			continue
		}
		key := types.NamespacedName{Namespace: name, Name: policy}
		if pause := c.repairLimiter.reserve(key, spec); pause > 0 {
			if again == 0 || pause < again {
				again = pause
			}
			continue
		}
		problems = append(problems, c.applyPolicy(ctx, key, spec))
	}
	return again, errors.Join(problems...)
}

// apiServerRules returns rules to the API server. Callers hold c.mu.
func (c *Controller) apiServerRules() []networkingv1.NetworkPolicyEgressRule {
	var found []*discoveryv1.EndpointSlice
	for _, o := range c.endpoints.GetStore().List() {
		if slice, ok := o.(*discoveryv1.EndpointSlice); ok {
			found = append(found, slice)
		}
	}
	return buildAPIServerRules(found, c.apiServerAddresses)
}

// addShootNetworks adds the networks of the Shoot whose control plane is in the namespace.
func (c *Controller) addShootNetworks(around *policyInputs, namespace *metav1.PartialObjectMetadata, needed bool) error {
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
		around.isShootUnknown = true // its event triggers a reconciliation
		return nil
	}
	around.shoot, err = networksOfShoot(cluster)
	return err
}

func (c *Controller) livePolicy(namespace, name string) *networkingv1.NetworkPolicy {
	found, exists, err := c.policies.GetStore().GetByKey(namespace + "/" + name)
	if err != nil || !exists {
		return nil
	}
	policy, _ := found.(*networkingv1.NetworkPolicy)
	return policy
}

// isUpToDate reports whether a live policy has the spec and our label. Its description follows from
// the spec, so it only has to exist.
func (c *Controller) isUpToDate(live *networkingv1.NetworkPolicy, spec *networkingv1.NetworkPolicySpec) bool {
	return live.Labels[LabelMadeBy] == c.options.Role && live.Annotations[annotationDescription] != "" && apiequality.Semantic.DeepEqual(live.Spec, *spec)
}

// applyPolicy applies a policy and overrides other field managers: in these namespaces Gardener
// owns the names.
func (c *Controller) applyPolicy(ctx context.Context, key types.NamespacedName, spec *networkingv1.NetworkPolicySpec) error {
	body, err := json.Marshal(&networkingv1.NetworkPolicy{
		TypeMeta: metav1.TypeMeta{APIVersion: networkingv1.SchemeGroupVersion.String(), Kind: "NetworkPolicy"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: key.Namespace, Name: key.Name,
			Labels: map[string]string{LabelMadeBy: c.options.Role}, Annotations: map[string]string{annotationDescription: policyDescription(key.Name)},
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
	c.options.Log.Info("written", "networkPolicy", key.String())
	return nil
}

// deletePolicy deletes a policy that this role made.
func (c *Controller) deletePolicy(ctx context.Context, live *networkingv1.NetworkPolicy) error {
	if live == nil || live.DeletionTimestamp != nil || live.Labels[LabelMadeBy] != c.options.Role {
		return nil
	}
	err := c.client.NetworkingV1().NetworkPolicies(live.Namespace).Delete(ctx, live.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &live.UID}})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("deleting NetworkPolicy %s/%s: %w", live.Namespace, live.Name, err)
	}
	c.options.Log.Info("deleted", "networkPolicy", live.Namespace+"/"+live.Name)
	return nil
}

const (
	// maxImmediateRepairs is how often a policy is written within peace; then once per
	// slowRepairInterval.
	maxImmediateRepairs = 5
	repairWindow        = 2 * time.Minute
	slowRepairInterval  = time.Minute
)

// repairLimiter slow down writes of a policy that another client keeps changing.
type repairLimiter struct {
	clock     clock.PassiveClock
	mu        sync.Mutex
	histories map[types.NamespacedName]repairHistory
}

// repairHistory are the times at which a policy was written with the same spec.
type repairHistory struct {
	spec  *networkingv1.NetworkPolicySpec
	times []time.Time
}

// reserve returns how long to wait before writing a policy. If that is zero, it records a write. A
// new spec is written at once.
func (r *repairLimiter) reserve(policy types.NamespacedName, spec *networkingv1.NetworkPolicySpec) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.clock.Now()
	before := r.histories[policy]
	if before.spec == nil || !apiequality.Semantic.DeepEqual(before.spec, spec) {
		before = repairHistory{spec: spec}
	}
	before.times = slices.DeleteFunc(before.times, func(at time.Time) bool { return now.Sub(at) > repairWindow })
	if len(before.times) >= maxImmediateRepairs {
		if wait := slowRepairInterval - now.Sub(before.times[len(before.times)-1]); wait > 0 {
			return wait
		}
	}
	if r.histories == nil {
		r.histories = map[types.NamespacedName]repairHistory{}
	}
	before.times = append(before.times, now)
	r.histories[policy] = before
	return 0
}

// forgetNamespace drops a deleted namespace.
func (r *repairLimiter) forgetNamespace(namespace string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, name := range policyNames() {
		delete(r.histories, types.NamespacedName{Namespace: namespace, Name: name})
	}
}
