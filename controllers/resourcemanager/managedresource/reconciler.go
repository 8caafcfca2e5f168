// SPDX-License-Identifier: Apache-2.0

package managedresource

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	resourcesv1alpha1 "github.com/pergola-dev/pergola/api/resources/v1alpha1"
	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/health"
	"github.com/pergola-dev/pergola/health/condition"
)

// Reconciler reconciles the ManagedResources of one class.
type Reconciler struct {
	Engine *apply.Engine
	// Source holds the ManagedResources and their Secrets, Target gets the objects.
	Source, Target *apply.Cluster
	// Class is that of spec.class; empty means the default class.
	Class string
	// ClusterID prefixes the origin annotation if source and target differ.
	ClusterID string
	Clock     clock.PassiveClock
	Data      DataSecrets
	// Options are the options for the engine: gate, progress.
	Options       apply.ApplyOptions
	Deletion      DeletionOptions
	HealthOptions HealthOptions
	// ManagedBy is the value of the label resources.gardener.cloud/managed-by, as in the keys of
	// Engine; the default is gardener.
	ManagedBy string
	// Declarations knows the other ManagedResources of the class; it is nil if the caller ensures
	// one owner for each object.
	Declarations DeclarationIndex
	// WriteConflict returns reason and message for the condition ResourcesProgressing if someone
	// keeps changing an object back; both are empty otherwise. It may be nil.
	WriteConflict func(namespace, name string) (reason, message string)
	// Sources maps objects to their source, for errors; it may be nil.
	Sources      map[apply.Ref]string
	digestMemory digestMemory
}

// DataSecrets reads the Secrets with the manifests.
type DataSecrets struct {
	// Read reads data Secrets; nil reads them from the cache of the source, or live.
	Read func(context.Context, apply.Ref) (*unstructured.Unstructured, error)
	// VersionsDigest returns a digest of the current or last read versions of a ManagedResource's
	// data Secrets. It includes all else that affects the applied objects, and is empty if unknown.
	// With nil Versions, each run reads the Secrets.
	VersionsDigest func(mr *resourcesv1alpha1.ManagedResource, read bool) string
}

// DeletionOptions configures what happens to objects that leave a ManagedResource.
type DeletionOptions struct {
	// DeleteTimeout is that of apply.DeleteOptions; Options decides whether a deletion waits.
	DeleteTimeout time.Duration
	// LeaveToGarbageCollector leaves Secrets and ConfigMaps with its label to a garbage collector.
	LeaveToGarbageCollector bool
	// AllowByOwner leaves deletions to the author of a ManagedResource with AnnotationDeletions.
	AllowByOwner bool
}

// HealthOptions configures how the health of objects is judged.
type HealthOptions struct {
	// Rules of health take precedence over those of the kinds; it is nil for none.
	Rules health.Rules
	// ExistenceOnly accepts every existing object of a kind without a rule.
	ExistenceOnly bool
}

// digestMemory is the state of a Reconciler between runs.
type digestMemory struct {
	mu sync.Mutex
	// inventories are inventories whose digests the API server drops, by UID of the
	// ManagedResource.
	inventories map[types.UID][]resourcesv1alpha1.ObjectReference
}

// DeclarationIndex knows the other ManagedResources of a class. An object has one owner among them,
// and moves between them without being deleted.
type DeclarationIndex interface {
	// IsDeclaredBy reports whether the ManagedResource that an origin annotation names, other than
	// mr, declares an object; known is false if that is unknown.
	IsDeclaredBy(ctx context.Context, mr *resourcesv1alpha1.ManagedResource, origin string, ref apply.Ref) (declared, known bool)
	// IsDeclaredElsewhere reports whether any ManagedResource other than mr wants an object that mr
	// is about to delete. On an error, the object stays for now.
	IsDeclaredElsewhere(ctx context.Context, mr *resourcesv1alpha1.ManagedResource, ref apply.Ref) (bool, error)
}

// Outcome is the result of one run.
type Outcome struct {
	ManagedResource *resourcesv1alpha1.ManagedResource
	ApplyResult     *apply.Result
	// OtherFinalizer is the finalizer of another class, which still has to delete its objects.
	OtherFinalizer string
}

func managedResourceRef(namespace, name string) apply.Ref {
	return apply.Ref{APIVersion: resourcesv1alpha1.SchemeGroupVersion.String(), Kind: "ManagedResource", Namespace: namespace, Name: name}
}

// Reconcile reconciles one ManagedResource. Errors of single objects are joined and also written to
// the condition ResourcesApplied.
func (r *Reconciler) Reconcile(ctx context.Context, namespace, name string) (*Outcome, error) {
	ctx, span := otel.Tracer("github.com/pergola-dev/pergola/controllers/resourcemanager/managedresource").Start(ctx, "reconcile ManagedResource",
		trace.WithAttributes(attribute.String("k8s.namespace.name", namespace), attribute.String("k8s.object.name", name)))
	defer span.End()
	mr, err := r.Read(ctx, namespace, name)
	if err != nil {
		return nil, err
	}
	out, err := r.reconcile(ctx, mr)
	for attempt := 1; errors.Is(err, errInventoryChanged) && attempt < maxWriteAttempts && ctx.Err() == nil; attempt++ {
		live, rerr := r.Source.GetLive(ctx, managedResourceRef(namespace, name))
		if rerr != nil {
			return out, errors.Join(err, r.Source.Explain(managedResourceRef(namespace, name), "read", rerr))
		}
		if mr, err = Decode(r.Source, live); err != nil {
			return out, err
		}
		out, err = r.reconcile(ctx, mr)
	}
	return out, err
}

func (r *Reconciler) reconcile(ctx context.Context, mr *resourcesv1alpha1.ManagedResource) (*Outcome, error) {
	if mr.DeletionTimestamp == nil && IsIgnored(mr) {
		if r.IsResponsible(mr) || r.HasFinalizer(mr) {
			return &Outcome{ManagedResource: mr}, r.setIgnored(ctx, mr)
		}
		return &Outcome{ManagedResource: mr}, nil
	}
	if !r.IsResponsible(mr) {
		if !r.HasFinalizer(mr) {
			return &Outcome{ManagedResource: mr}, nil
		}
		// It has another class now: delete our objects first, then the other instance starts.
		return r.deleteIfAllowed(ctx, mr)
	}
	if mr.DeletionTimestamp != nil {
		if other := r.otherFinalizer(mr); other != "" && !r.HasFinalizer(mr) {
			return &Outcome{ManagedResource: mr, OtherFinalizer: other}, r.reportOtherClass(ctx, mr, other)
		}
		if !r.HasFinalizer(mr) {
			return &Outcome{ManagedResource: mr}, nil // nothing was deployed, or all is deleted
		}
		return r.deleteIfAllowed(ctx, mr)
	}
	other, err := r.resolveClassConflict(ctx, mr)
	if err != nil {
		return nil, err
	}
	if other == "" {
		if err = r.ensureFinalizer(ctx, mr); err == nil {
			return r.applyObjects(ctx, mr)
		}
		if !errors.Is(err, errOtherClass) {
			return nil, err
		}
		other = r.otherFinalizer(mr)
	}
	return &Outcome{ManagedResource: mr, OtherFinalizer: other}, r.reportOtherClass(ctx, mr, other)
}

// deleteIfAllowed deletes the objects of a ManagedResource, unless deletions are not allowed now.
func (r *Reconciler) deleteIfAllowed(ctx context.Context, mr *resourcesv1alpha1.ManagedResource) (*Outcome, error) {
	if r.isDeletionByOwner(mr) {
		return &Outcome{ManagedResource: mr}, nil
	}
	if r.Options.NoDelete {
		return &Outcome{ManagedResource: mr}, fmt.Errorf("ManagedResource %s/%s is being deleted, or has another class: its objects stay, because deletions are not allowed now", mr.Namespace, mr.Name)
	}
	return r.deleteObjects(ctx, mr)
}

func (r *Reconciler) applyObjects(ctx context.Context, mr *resourcesv1alpha1.ManagedResource) (*Outcome, error) {
	out, inventory := &Outcome{ManagedResource: mr}, r.newInventory(mr)
	if len(mr.Status.Resources) == 0 {
		mr.Status.Origin = r.NameOfSet(mr.Namespace, mr.Name) // no object has another origin
	}
	version := ""
	if r.Data.VersionsDigest != nil {
		version = r.Data.VersionsDigest(mr, false)
	}
	if same, err := r.isUnchanged(ctx, mr, version, inventory); err != nil || same {
		if err == nil {
			_, err = r.setHealth(ctx, mr)
			out.ApplyResult = &apply.Result{Cluster: r.Target.Name(), Set: r.NameOfSet(mr.Namespace, mr.Name), Complete: true}
		}
		return out, errors.Join(err, inventory.writeFinalStatus(ctx))
	}
	objects, checksum, reason, err := r.readObjects(ctx, mr)
	if err != nil && len(objects) == 0 {
		r.setApplied(mr, reason, err.Error())
		return out, errors.Join(err, inventory.writeFinalStatus(ctx))
	}
	decodeErr := err
	if mr.Status.ObservedGeneration != mr.Generation || ptr.Deref(mr.Status.SecretsDataChecksum, "") != checksum {
		// Health is judged only for what was just applied. The checksum is that of the last
		// attempt: another attempt with the same content keeps a failure and its timestamp.
		r.setPending(mr)
		mr.Status.ObservedGeneration, mr.Status.SecretsDataChecksum = mr.Generation, ptr.To(checksum)
	}
	options := r.applyOptions(ctx, mr)
	// Without Secrets a ManagedResource asks for no objects; empty Secrets may be a mistake.
	options.AllowEmpty = options.AllowEmpty || len(mr.Spec.SecretRefs) == 0
	if decodeErr != nil {
		// Objects in unreadable documents must not count as removed.
		options.NoPrune = true
	}
	out.ApplyResult, err = r.Engine.Apply(ctx, r.Target, r.Set(mr, objects), inventory, options)
	if errors.Is(err, errInventoryChanged) {
		return out, err
	}
	if err = errors.Join(decodeErr, err); err != nil {
		if reason == "" {
			reason = resourcesv1alpha1.ConditionApplyFailed
		}
		r.setApplied(mr, reason, err.Error())
		return out, errors.Join(err, inventory.writeFinalStatus(ctx))
	}
	if left := pendingError(out.ApplyResult); len(objects) == 0 && !options.AllowEmpty && left != nil {
		r.setApplied(mr, resourcesv1alpha1.ConditionApplyFailed, messageEmpty+left.Error())
		return out, inventory.writeFinalStatus(ctx)
	}
	r.setApplied(mr, appliedReason(out.ApplyResult), appliedMessage(out.ApplyResult))
	if out.ApplyResult.Complete {
		mr.Status.Origin = r.NameOfSet(mr.Namespace, mr.Name)
	}
	if mr.Status.SecretsVersion = ""; r.Data.VersionsDigest != nil && out.ApplyResult.Complete {
		mr.Status.SecretsVersion = r.Data.VersionsDigest(mr, true)
	}
	_, err = r.setHealth(ctx, mr)
	return out, errors.Join(err, inventory.writeFinalStatus(ctx))
}

// isUnchanged reports whether there is nothing to do, without reading Secrets. The ManagedResource,
// its Secrets, all relevant options and the objects must be as last applied.
func (r *Reconciler) isUnchanged(ctx context.Context, mr *resourcesv1alpha1.ManagedResource, version string, inventory apply.Inventory) (bool, error) {
	applied := condition.Get(mr.Status.Conditions, resourcesv1alpha1.ResourcesApplied)
	if version == "" || mr.Status.SecretsVersion != version || mr.Status.ObservedGeneration != mr.Generation || len(mr.Status.Resources) == 0 ||
		applied == nil || applied.Status != gardencorev1beta1.ConditionTrue || applied.Reason != resourcesv1alpha1.ConditionApplySucceeded && applied.Reason != resourcesv1alpha1.ConditionFieldsDropped {
		return false, nil
	}
	return r.Engine.IsUnchanged(ctx, r.Target, r.Set(mr, nil), inventory)
}

// appliedReason returns the reason after a run without errors: removed objects may still be
// terminating.
func appliedReason(result *apply.Result) string {
	reason := resourcesv1alpha1.ConditionApplySucceeded
	for _, o := range result.Objects {
		switch {
		case o.Action == apply.Deleting:
			return resourcesv1alpha1.ConditionDeletionPending
		case len(o.Dropped) > 0:
			reason = resourcesv1alpha1.ConditionFieldsDropped
		}
	}
	return reason
}

// appliedMessage names the differences that remain although nothing failed.
func appliedMessage(result *apply.Result) string {
	message := messageApplied
	note := func(head string, fields func(apply.ObjectResult) []string) {
		var of []string
		for _, o := range result.Objects {
			if found := fields(o); len(found) > 0 {
				of = append(of, fmt.Sprintf("%s (%s)", o.Ref, strings.Join(found, ", ")))
			}
		}
		if len(of) > 0 {
			message += head + strings.Join(of, "; ") + "."
		}
	}
	note(messageImmutable, func(o apply.ObjectResult) []string { return o.ImmutableFields })
	note(messageDropped, func(o apply.ObjectResult) []string { return o.Dropped })
	if err := pendingError(result); err != nil {
		message += " Remaining: " + strings.ReplaceAll(err.Error(), "\n", "; ")
	}
	return message
}

// Read returns the current ManagedResource.
func (r *Reconciler) Read(ctx context.Context, namespace, name string) (*resourcesv1alpha1.ManagedResource, error) {
	obj, err := getCachedOrLive(ctx, r.Source, managedResourceRef(namespace, name))
	if err != nil {
		return nil, r.Source.Explain(managedResourceRef(namespace, name), "read", err)
	}
	return Decode(r.Source, obj)
}

// IsResponsible reports whether a ManagedResource is of the class of this reconciler.
func (r *Reconciler) IsResponsible(mr *resourcesv1alpha1.ManagedResource) bool {
	class := ptr.Deref(mr.Spec.Class, "")
	if class == resourcesv1alpha1.ClassDefault {
		class = ""
	}
	return class == r.Class || r.Class == resourcesv1alpha1.ClassAll
}

// Decode converts a live ManagedResource.
func Decode(c *apply.Cluster, live *unstructured.Unstructured) (*resourcesv1alpha1.ManagedResource, error) {
	mr := &resourcesv1alpha1.ManagedResource{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(live.Object, mr); err != nil {
		return nil, fmt.Errorf("decode ManagedResource %s/%s on %s: %w", live.GetNamespace(), live.GetName(), c.Name(), err)
	}
	return mr, nil
}

// deleteObjects deletes the objects, then removes the finalizer.
func (r *Reconciler) deleteObjects(ctx context.Context, mr *resourcesv1alpha1.ManagedResource) (*Outcome, error) {
	inventory, options := r.newInventory(mr), r.applyOptions(ctx, mr)
	do := apply.DeleteOptions{OnObject: options.OnObject, IsDeclaredElsewhere: options.IsDeclaredElsewhere, NoWait: options.NoWait, Timeout: r.Deletion.DeleteTimeout}
	if r.Declarations != nil {
		do.Approve = options.ApprovePrune
	}
	result, err := r.Engine.Delete(ctx, r.Target, r.Set(mr, nil), inventory, do)
	out := &Outcome{ManagedResource: mr, ApplyResult: result}
	mr.Status.ObservedGeneration = mr.Generation
	if err != nil {
		r.setDeleting(mr, resourcesv1alpha1.ConditionDeletionFailed, err.Error())
		return out, errors.Join(err, inventory.writeFinalStatus(ctx))
	}
	if !result.Complete {
		r.setDeleting(mr, resourcesv1alpha1.ConditionDeletionPending, pendingError(result).Error())
		return out, inventory.writeFinalStatus(ctx)
	}
	if mr.DeletionTimestamp == nil {
		// It has another class, which sets the status from now on.
		r.setClassChanged(mr)
		if err := inventory.writeStatus(ctx); err != nil {
			return out, err
		}
	}
	err = r.dropFinalizer(ctx, mr, inventory.base)
	if err == nil {
		r.forgetDigests(mr.UID)
	}
	return out, err
}

func pendingError(result *apply.Result) error {
	var problems []error
	for _, p := range result.Pending() {
		problems = append(problems, fmt.Errorf("%s: %s", p.Ref, p.Message))
	}
	return errors.Join(problems...)
}

// IsIgnored reports whether a ManagedResource or an object is annotated to be ignored. Like
// upstream, it accepts True and 1, too.
func IsIgnored(o metav1.Object) bool {
	is, err := strconv.ParseBool(o.GetAnnotations()[resourcesv1alpha1.Ignore])
	return err == nil && is
}

// conditionBuilder writes conditions with the reconciler's clock; a ManagedResource has no
// thresholds.
func (r *Reconciler) conditionBuilder() *condition.Builder {
	return condition.New(r.Clock, nil)
}
