// SPDX-License-Identifier: Apache-2.0

package landscape

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/controllers/access"
	"github.com/pergola-dev/pergola/controllers/owner"
	"github.com/pergola-dev/pergola/health/condition"
	"github.com/pergola-dev/pergola/internal/panics"
)

// Status is the state of a landscape: the Garden, its Seeds and their Shoots.
type Status struct {
	Landscape string    `json:"landscape"`
	At        time.Time `json:"at"`
	// Live means that the conditions were computed for this status; otherwise they are the last
	// written ones.
	Live  bool `json:"live"`
	Ready bool `json:"ready"`
	// Invalid explains that the files of the landscape are invalid: the owners are the previously
	// applied ones.
	Invalid string        `json:"invalid,omitempty"`
	Owners  []OwnerStatus `json:"owners"`
	// Object is the Landscape object with which an operator syncs the landscape; it is nil if there
	// is none.
	Object *ObjectStatus `json:"object,omitempty"`
	// ObjectUnknown is why the object could not be read.
	ObjectUnknown string `json:"objectUnknown,omitempty"`
	// Undeclared are applied objects without a declaration.
	Undeclared []UndeclaredObject `json:"undeclared,omitempty"`
	// HandedOver are declared fields that controllers own.
	HandedOver []change.HandedOver `json:"handedOver,omitempty"`

	// RuntimeFlags contains the flags of commands for the runtime cluster, with a leading space;
	// may be empty.
	RuntimeFlags string `json:"-"`
}

// OwnerStatus is one line of the tree, with its conditions.
type OwnerStatus struct {
	Kind          string                           `json:"kind"`
	Namespace     string                           `json:"namespace,omitempty"`
	Name          string                           `json:"name"`
	Cluster       string                           `json:"cluster"`
	Ready         bool                             `json:"ready"`
	LastOperation *gardencorev1beta1.LastOperation `json:"lastOperation,omitempty"`
	Conditions    []gardencorev1beta1.Condition    `json:"conditions,omitempty"`
	// Rotations are the rotations of credentials that are not complete, and their next steps.
	Rotations []string `json:"rotations,omitempty"`
	// HealthCheckedAt is the time of the last health check, if known.
	HealthCheckedAt *time.Time `json:"judgedAt,omitempty"`
	// Reconciler is the process that reconciles the owner; it is empty if there is none.
	Reconciler string `json:"keeper,omitempty"`
	// Bundles have the health at the time of the request; they are nil unless requested.
	Bundles []owner.BundleState `json:"bundles,omitempty"`
	// Unreachable is the cluster with the status, if it does not answer.
	Unreachable string `json:"unreachable,omitempty"`
	// Error is why the state, or a part of it, is unknown, with a hint.
	Error  string        `json:"error,omitempty"`
	Shoots []OwnerStatus `json:"shoots,omitempty"`

	// Missing lists what the owner lacks; JSON omits it.
	Missing OwnerMissing `json:"-"`
}

// OwnerMissing lists what an owner lacks.
type OwnerMissing struct {
	// Reconciler is true if no process reconciles the owner.
	Reconciler bool
	// State is true if nothing is known of the owner, not even whether it exists.
	State bool
}

// StatusOptions select the content of a Status. Reading it writes nothing.
type StatusOptions struct {
	// Live computes the conditions, instead of reading the last written ones.
	Live bool
	// Components checks every bundle.
	Components bool
	// Invalid is Status.Invalid, for a Converger of NewFromInventories, which cannot check health.
	Invalid string
}

// Status reads the state of every owner. It reports unreachable clusters in the result.
func (c *Converger) Status(ctx context.Context, o StatusOptions) Status {
	if c.members.fromInventories {
		o.Live, o.Components = false, false // these need rendered files
		c.loadAppliedOwners(ctx)
	}
	out := Status{Landscape: c.landscape.Config.Name, At: c.options.Clock.Now(), Live: o.Live, Ready: !c.members.fromInventories, Invalid: o.Invalid, RuntimeFlags: c.runtimeFlags()}
	if o.Live || o.Components {
		c.dryRunVirtualOwners(ctx)
	}
	states := make([]OwnerStatus, len(c.members.all))
	keepers := c.readRoleHolders(ctx)
	var wait sync.WaitGroup
	for i, one := range c.members.all {
		wait.Go(func() {
			err := panics.AsError(func() error {
				states[i] = c.ownerStatus(ctx, one, o, out.At)
				return nil
			})()
			if err != nil {
				states[i] = newOwnerStatus(one)
				states[i].Error, states[i].Missing.State = errorText(err), true
			}
			if cluster, name := leaseOf(one); keepers[cluster+" "+name] != nil {
				keepers[cluster+" "+name].fillStatus(&states[i], c.options.Process.Holder)
			}
		})
	}
	wait.Go(func() {
		// The owners report a cluster that does not answer.
		object, err := c.readLandscapeObject(ctx, out.At)
		if out.Object = object; err != nil && !isUnreachable(err) {
			out.ObjectUnknown = errorText(err)
		}
	})
	wait.Wait()
	if out.Object != nil {
		for i := range states {
			states[i].Error = strings.TrimSuffix(states[i].Error, runApplyHint)
		}
	}
	c.markStaleOwners(ctx, states, o.Live, out.At)
	// The Landscape object, if any, decides for a landscape without owners.
	out.Ready = out.Ready && (out.Object == nil && len(c.members.all) > 0 || out.Object != nil && out.Object.Ready)
	shoots := map[string][]OwnerStatus{}
	for i, o := range c.members.all {
		out.Ready = out.Ready && states[i].Ready
		if o.Input.Owner.Kind == owner.Shoot {
			shoots[o.Local.Name()] = append(shoots[o.Local.Name()], states[i])
		}
	}
	for _, list := range shoots {
		slices.SortFunc(list, func(a, b OwnerStatus) int {
			return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
		})
	}
	for i, o := range c.members.all {
		if o.Input.Owner.Kind == owner.Shoot {
			continue
		}
		if o.Input.Owner.Kind == owner.Seed {
			states[i].Shoots = shoots[o.Local.Name()]
			delete(shoots, o.Local.Name())
		}
		out.Owners = append(out.Owners, states[i])
	}
	for _, seed := range slices.Sorted(maps.Keys(shoots)) {
		out.Owners = append(out.Owners, shoots[seed]...) // Shoots without a Seed
	}
	// An object may be declared in a file that could not be read.
	if !c.members.fromInventories {
		out.Undeclared, out.HandedOver = c.undeclaredObjects(ctx, out.Object), c.findHandedOver(ctx)
	}
	for _, err := range c.members.accessErrors {
		out.Ready = false
		s := OwnerStatus{Kind: "-", Name: "-", Error: err.Error()}
		if isUnreachable(err) {
			s.Unreachable = Runtime
		}
		out.Owners = append(out.Owners, s)
	}
	return out
}

// HasUnreachable reports whether a cluster did not answer, so the status is incomplete.
func (s Status) HasUnreachable() bool {
	return slices.ContainsFunc(s.Owners, OwnerStatus.isUnreachable)
}

func (s OwnerStatus) isUnreachable() bool {
	return s.Unreachable != "" || slices.ContainsFunc(s.Shoots, OwnerStatus.isUnreachable)
}

// textError is an error whose text is errorText.
type textError struct{ error }

func (e textError) Error() string { return errorText(e.error) }
func (e textError) Unwrap() error { return e.error }

func newOwnerStatus(o *convergedOwner) OwnerStatus {
	return OwnerStatus{Kind: o.Ref.Kind, Namespace: o.Ref.Namespace, Name: o.Ref.Name, Cluster: o.Local.Name()}
}

// runtimeFlags returns the flags of commands for the runtime cluster, with a leading space.
func (c *Converger) runtimeFlags() string {
	if flags := c.options.Connections.KubectlFlags[Runtime]; flags != "" {
		return " " + flags
	}
	return ""
}

func (c *Converger) ownerStatus(ctx context.Context, o *convergedOwner, options StatusOptions, now time.Time) OwnerStatus {
	s := newOwnerStatus(o)
	seen, err := owner.ReadOwnerStatus(ctx, o.ObjectCluster, o.Ref)
	if err != nil {
		s.Error, s.Missing.State = statusErrorText(o, err), !isAbsent(err)
		if isUnreachable(err) {
			s.Unreachable = o.ObjectCluster.Name()
		}
		return s
	}
	op := seen.LastOperation
	s.LastOperation, s.Conditions, s.Rotations, s.HealthCheckedAt = op, seen.Conditions, seen.Rotations, newestTime(op, seen.Conditions)
	if options.Live || options.Components {
		c.inspectOwner(ctx, o, options, &s, now)
	}
	s.Ready = s.Error == "" && op != nil && op.State == gardencorev1beta1.LastOperationStateSucceeded
	s.Ready = s.Ready && condition.AreAllTrue(s.Conditions)
	return s
}

// runApplyHint ends the error about a missing owner; it is removed where an operator applies the
// landscape.
const runApplyHint = " (run pergola apply)"

// statusErrorText explains why the status of an owner could not be read, with a hint.
func statusErrorText(o *convergedOwner, err error) string {
	if isAbsent(err) {
		return fmt.Sprintf("it does not exist on cluster %s, because its declaration was not applied there yet%s", o.ObjectCluster.Name(), runApplyHint)
	}
	return errorText(err)
}

// errorText returns an error in one line. For a cluster that does not answer, that is the only
// cause.
func errorText(err error) string {
	var object *apply.ObjectError
	if isUnreachable(err) && errors.As(err, &object) {
		return fmt.Sprintf("%s (%s)", object.Message, object.Hint)
	}
	return strings.Join(apply.Problems(err), "; ")
}

// isAbsent reports whether the object, its kind or its cluster does not exist yet.
func isAbsent(err error) bool {
	if access.IsMissing(err) {
		return true
	}
	reason := apply.ReasonOf(err)
	return reason == apply.ReasonNotFound || reason == apply.ReasonKindNotServed
}

// isUnreachable reports whether the cluster does not answer; a refusal is an answer.
func isUnreachable(err error) bool {
	reason := apply.ReasonOf(err)
	return reason == apply.ReasonUnreachable || reason == apply.ReasonTimeout || reason == apply.ReasonCertificateExpired
}

// inspectOwner computes the health of an owner from live objects.
func (c *Converger) inspectOwner(ctx context.Context, o *convergedOwner, options StatusOptions, s *OwnerStatus, now time.Time) {
	err := c.loadLiveOwner(ctx, o)
	var found *owner.Inspection
	if err == nil {
		found, err = c.members.reconciler.Inspect(ctx, o.Owner, o.state())
	}
	if err != nil {
		s.Error = errorText(err)
	}
	if found == nil {
		return
	}
	if options.Live {
		s.Conditions, s.HealthCheckedAt = found.Conditions, &now
	}
	if options.Components {
		s.Bundles = found.Bundles
	}
}

// newestTime returns the newest time in a status. The last health check may be later, because
// unchanged conditions keep their times.
func newestTime(op *gardencorev1beta1.LastOperation, conditions []gardencorev1beta1.Condition) *time.Time {
	var out *time.Time
	if op != nil {
		out = latestTime(out, op.LastUpdateTime.Time)
	}
	for _, c := range conditions {
		out = latestTime(out, c.LastUpdateTime.Time)
	}
	return out
}

func latestTime(a *time.Time, b time.Time) *time.Time {
	if b.IsZero() || a != nil && !b.After(*a) {
		return a
	}
	return &b
}

// roleHolder is the reconciling process according to a lease.
type roleHolder struct {
	holder          string
	healthCheckedAt time.Time
}

func (k *roleHolder) fillStatus(s *OwnerStatus, self string) {
	s.Missing.Reconciler = k.holder == ""
	if k.holder != self {
		s.Reconciler = k.holder
	}
	if s.HealthCheckedAt != nil {
		s.HealthCheckedAt = latestTime(s.HealthCheckedAt, k.healthCheckedAt)
	}
}

// readRoleHolders reads the leases of all owners, by cluster and name. It omits unreadable ones.
func (c *Converger) readRoleHolders(ctx context.Context) map[string]*roleHolder {
	clusters := map[string]*apply.Cluster{}
	names := map[string]string{}
	for _, o := range c.members.all {
		cluster, name := leaseOf(o)
		clusters[cluster+" "+name], names[cluster+" "+name] = o.Local, name
	}
	out := map[string]*roleHolder{}
	var mu sync.Mutex
	var group sync.WaitGroup
	for key, cluster := range clusters {
		group.Go(func() {
			if k, err := c.readRoleHolder(ctx, cluster, names[key]); err == nil {
				mu.Lock()
				defer mu.Unlock()
				out[key] = k
			}
		})
	}
	group.Wait()
	// Recent health checks of this process reach its leases only with the next renewal.
	for _, l := range c.ownLeases() {
		if k := out[l.cluster+" "+l.name]; k != nil && l.healthCheckedAt().After(k.healthCheckedAt) {
			k.healthCheckedAt = l.healthCheckedAt()
		}
	}
	return out
}

func (c *Converger) readRoleHolder(ctx context.Context, cluster *apply.Cluster, name string) (*roleHolder, error) {
	client, err := kubernetes.NewForConfig(cluster.RESTConfig())
	if err != nil {
		return nil, err
	}
	found, err := client.CoordinationV1().Leases(leasesNamespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	out := &roleHolder{}
	// Clocks differ a little, so a holder counts for twice the lease duration.
	if renewed := found.Spec.RenewTime; renewed != nil && c.options.Clock.Since(renewed.Time) < 2*leaseDuration {
		out.holder = ptr.Deref(found.Spec.HolderIdentity, "")
	}
	if at, err := time.Parse(time.RFC3339, found.Annotations[annotationHealthChecked]); err == nil {
		out.healthCheckedAt = at
	}
	return out, nil
}

// IsSameState reports whether two statuses are the same except for their times.
func (s Status) IsSameState(o Status) bool {
	return reflect.DeepEqual(s.withoutTimes(), o.withoutTimes())
}

func (s Status) withoutTimes() Status {
	s.At, s.Owners = time.Time{}, ownersWithoutTimes(s.Owners)
	return s
}

func ownersWithoutTimes(in []OwnerStatus) []OwnerStatus {
	out := make([]OwnerStatus, 0, len(in))
	for _, o := range in {
		o.HealthCheckedAt, o.Shoots = nil, ownersWithoutTimes(o.Shoots)
		out = append(out, o)
	}
	return out
}
