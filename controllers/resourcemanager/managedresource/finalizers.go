// SPDX-License-Identifier: Apache-2.0

package managedresource

import (
	"context"
	"errors"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	resourcesv1alpha1 "github.com/pergola-dev/pergola/api/resources/v1alpha1"
)

// finalizer is upstream's, followed by the class unless that is the default one.
func (r *Reconciler) finalizer() string {
	if r.Class == "" || r.Class == resourcesv1alpha1.ClassDefault || r.Class == resourcesv1alpha1.ClassAll {
		return resourcesv1alpha1.FinalizerName
	}
	return resourcesv1alpha1.FinalizerName + "-" + r.Class
}

// HasFinalizer reports whether a ManagedResource has our finalizer: we deployed its objects and
// have not deleted them.
func (r *Reconciler) HasFinalizer(mr *resourcesv1alpha1.ManagedResource) bool {
	return slices.Contains(mr.Finalizers, r.finalizer())
}

// otherFinalizer returns the finalizer of another class, or "".
func (r *Reconciler) otherFinalizer(mr *resourcesv1alpha1.ManagedResource) string {
	for _, f := range mr.Finalizers {
		if f != r.finalizer() && (f == resourcesv1alpha1.FinalizerName || strings.HasPrefix(f, resourcesv1alpha1.FinalizerName+"-")) {
			return f
		}
	}
	return ""
}

// errOtherClass ends a run for a ManagedResource that another class has started to reconcile.
var errOtherClass = errors.New("another class reconciles it")

func (r *Reconciler) ensureFinalizer(ctx context.Context, mr *resourcesv1alpha1.ManagedResource) error {
	if slices.Contains(mr.Finalizers, r.finalizer()) {
		return nil
	}
	return r.changeFinalizers(ctx, mr, func(have []string) []string {
		if slices.Contains(have, r.finalizer()) {
			return have // another instance was faster
		}
		return append(slices.Clone(have), r.finalizer())
	}, func(live *resourcesv1alpha1.ManagedResource) error {
		if r.otherFinalizer(live) != "" && !r.HasFinalizer(live) {
			mr.Finalizers = live.Finalizers
			return errOtherClass
		}
		return nil
	})
}

// resolveClassConflict returns the finalizer of another class to wait for, or "". If * and a named
// class have added their finalizers at once, the first one continues and the other withdraws. The
// objects stay: both belong to the same ManagedResource.
func (r *Reconciler) resolveClassConflict(ctx context.Context, mr *resourcesv1alpha1.ManagedResource) (string, error) {
	other := r.otherFinalizer(mr)
	if other == "" || !r.HasFinalizer(mr) {
		return other, nil
	}
	if slices.Index(mr.Finalizers, r.finalizer()) < slices.Index(mr.Finalizers, other) {
		return "", nil
	}
	return other, r.dropFinalizer(ctx, mr, r.withRememberedDigests(mr.UID, mr.Status.Resources))
}

// dropFinalizer removes our finalizer; the ManagedResource may no longer exist. It keeps the
// finalizer if another instance has changed the inventory (base), whose objects someone must
// delete.
func (r *Reconciler) dropFinalizer(ctx context.Context, mr *resourcesv1alpha1.ManagedResource, base []resourcesv1alpha1.ObjectReference) error {
	err := r.changeFinalizers(ctx, mr, func(have []string) []string {
		return slices.DeleteFunc(slices.Clone(have), func(f string) bool { return f == r.finalizer() })
	}, func(live *resourcesv1alpha1.ManagedResource) error {
		if !hasSameReferences(r.withRememberedDigests(live.UID, live.Status.Resources), base) {
			return errInventoryChanged
		}
		return nil
	})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// maxWriteAttempts limits writes after conflicts: others often write the status of a
// ManagedResource.
const maxWriteAttempts = 5

// changeFinalizers replaces the list of finalizers. It requires the version that was read, and
// reads again after a conflict.
func (r *Reconciler) changeFinalizers(ctx context.Context, mr *resourcesv1alpha1.ManagedResource, change func([]string) []string,
	check func(live *resourcesv1alpha1.ManagedResource) error) error {
	at := managedResourceRef(mr.Namespace, mr.Name)
	for attempt := 1; ; attempt++ {
		wanted := change(mr.Finalizers)
		if slices.Equal(wanted, mr.Finalizers) {
			return nil
		}
		obj, err := r.Source.MergePatch(ctx, at, map[string]any{"metadata": map[string]any{
			"finalizers": wanted, "resourceVersion": mr.ResourceVersion, "uid": mr.UID}}, statusFieldManager, "")
		if apierrors.IsConflict(err) && attempt < maxWriteAttempts {
			conflict := err
			switch obj, err = r.Source.GetLive(ctx, at); {
			case err == nil && obj.GetUID() == mr.UID:
				live, err := Decode(r.Source, obj)
				if err == nil && check != nil {
					err = check(live)
				}
				if err != nil {
					return err
				}
				mr.Finalizers, mr.ResourceVersion = obj.GetFinalizers(), obj.GetResourceVersion()
				continue
			case err == nil:
				err = conflict // another object has its name now
			}
		}
		if err != nil {
			return r.Source.Explain(at, "write the finalizers", err)
		}
		mr.Finalizers, mr.ResourceVersion = obj.GetFinalizers(), obj.GetResourceVersion()
		return nil
	}
}
