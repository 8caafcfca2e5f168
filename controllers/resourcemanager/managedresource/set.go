// SPDX-License-Identifier: Apache-2.0

package managedresource

import (
	"context"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	resourcesv1alpha1 "github.com/pergola-dev/pergola/api/resources/v1alpha1"
	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/change"
)

// applyOptions returns the engine's options for one ManagedResource.
func (r *Reconciler) applyOptions(ctx context.Context, mr *resourcesv1alpha1.ManagedResource) apply.ApplyOptions {
	o := r.Options
	if r.isDeletionByOwner(mr) {
		o = withoutDeletions(o)
	}
	if r.Declarations == nil {
		return o
	}
	unknown := map[apply.Ref]error{}
	elsewhere, gate := o.IsDeclaredElsewhere, o.ApprovePrune
	o.IsDeclaredElsewhere = func(ref apply.Ref) bool {
		if elsewhere != nil && elsewhere(ref) {
			return true
		}
		wanted, err := r.Declarations.IsDeclaredElsewhere(ctx, mr, ref)
		if err != nil {
			unknown[ref] = err
		}
		return wanted
	}
	o.ApprovePrune = func(entries []apply.Entry) []apply.HeldObject {
		var held []apply.HeldObject
		var known []apply.Entry
		for _, e := range entries {
			if err := unknown[e.Ref]; err != nil {
				held = append(held, apply.HeldObject{Ref: e.Ref, Reason: change.Reason{Code: landscapev1alpha1.HeldUndecidable, Detail: err.Error()}})
				continue
			}
			known = append(known, e)
		}
		if gate != nil && len(known) > 0 {
			held = append(held, gate(known)...)
		}
		return held
	}
	o.IsDeclaredBy = func(origin string, ref apply.Ref) (declared, known bool) {
		return r.Declarations.IsDeclaredBy(ctx, mr, origin, ref)
	}
	return o
}

// Set returns the set of a ManagedResource for the engine; its name is the origin annotation.
func (r *Reconciler) Set(mr *resourcesv1alpha1.ManagedResource, objects []*unstructured.Unstructured) apply.Set {
	labels := InjectedLabels(mr.Spec.InjectLabels)
	if r.ManagedBy != "" {
		labels[resourcesv1alpha1.ManagedBy] = r.ManagedBy
	}
	return apply.Set{
		LeaveToCollector: r.Deletion.LeaveToGarbageCollector,
		Name:             r.NameOfSet(mr.Namespace, mr.Name), Objects: objects,
		DisplayKind: "ManagedResource", PreviousNames: r.previousNames(mr), InjectLabels: labels, FieldManager: r.fieldManager(mr), TakeBack: true, Sources: r.Sources,
		KeepObjects:                  ptr.Deref(mr.Spec.KeepObjects, false),
		ForceOverwriteLabels:         ptr.Deref(mr.Spec.ForceOverwriteLabels, false),
		ForceOverwriteAnnotations:    ptr.Deref(mr.Spec.ForceOverwriteAnnotations, false),
		DeletePersistentVolumeClaims: ptr.Deref(mr.Spec.DeletePersistentVolumeClaims, false),
		Equivalences:                 equivalences(mr),
	}
}

const (
	fieldManager      = "pergola"
	fieldManagerClass = fieldManager + "/"
)

// FieldManager returns the field manager of a class: pergola for the default class, pergola/<class>
// for others. If two classes declare the same object, the API server reports a conflict of two
// managers.
func FieldManager(class string) string {
	if class == "" || class == resourcesv1alpha1.ClassDefault {
		return fieldManager
	}
	return fieldManagerClass + class
}

// IsFieldManager reports whether a field manager is that of a class.
func IsFieldManager(name string) bool {
	return name == fieldManager || strings.HasPrefix(name, fieldManagerClass)
}

// fieldManager returns the field manager of a ManagedResource's class. After a change of the class,
// it is that of the class that deployed the objects.
func (r *Reconciler) fieldManager(mr *resourcesv1alpha1.ManagedResource) string {
	if r.IsResponsible(mr) {
		return FieldManager(ptr.Deref(mr.Spec.Class, ""))
	}
	return FieldManager(r.Class)
}

// InjectedLabels adds the label that upstream's resource manager adds, also on pod templates:
// objects of an existing landscape are adopted without rolling their pods.
func InjectedLabels(own map[string]string) map[string]string {
	out := map[string]string{resourcesv1alpha1.ManagedBy: resourcesv1alpha1.ManagedByGardener}
	for k, v := range own {
		out[k] = v
	}
	return out
}

// NameOfSet is the engine's name for the objects of a ManagedResource.
func (r *Reconciler) NameOfSet(namespace, name string) string {
	if r.ClusterID != "" && r.Source != r.Target {
		return r.ClusterID + ":" + namespace + "/" + name
	}
	return namespace + "/" + name
}

// previousNames returns the previous name of the set, if the identity of the source cluster was set
// or changed since.
func (r *Reconciler) previousNames(mr *resourcesv1alpha1.ManagedResource) []string {
	origin, plain := mr.Status.Origin, mr.Namespace+"/"+mr.Name
	if origin == "" {
		origin = plain // upstream's definition does not have the field
	}
	if origin == r.NameOfSet(mr.Namespace, mr.Name) || origin != plain && !strings.HasSuffix(origin, ":"+plain) {
		return nil
	}
	return []string{origin}
}

func equivalences(mr *resourcesv1alpha1.ManagedResource) [][]schema.GroupKind {
	var out [][]schema.GroupKind
	for _, group := range mr.Spec.Equivalences {
		var kinds []schema.GroupKind
		for _, gk := range group {
			kinds = append(kinds, schema.GroupKind{Group: gk.Group, Kind: gk.Kind})
		}
		out = append(out, kinds)
	}
	return out
}
