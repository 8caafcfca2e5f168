// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/controllers/landscape"
	"github.com/pergola-dev/pergola/landscapes"
	"github.com/pergola-dev/pergola/schemas"
	"github.com/pergola-dev/pergola/schemas/crosscheck"
)

// A comparison of two revisions knows what both render, but not all of it is applied. Rejected
// changes are not, and an owner without a file stays with all its workloads.

// heldObject is an object that stays unchanged, and why.
type heldObject struct {
	action change.Action
	reason string
}

// RemoveHeldChanges removes changes from a plan that are not applied: rejected declarations, and
// Gardens, Seeds, Shoots and Projects without files, with their workloads.
func RemoveHeldChanges(p *change.Plan, old, new *landscapes.Landscape, refused []schemas.Violation) {
	all := heldOwners(old, new)
	refused = slices.DeleteFunc(slices.Clone(refused), IsRemovalHeld)
	if len(refused) > 0 {
		parts := "1 part"
		if n := len(refused); n > 1 {
			parts = fmt.Sprintf("%d parts", n)
		}
		p.Notes = append(p.Notes, parts+" of this change cannot be applied, and nothing of it is applied until they are removed: pergola validate --from shows them")
	}
	for _, v := range refused {
		name := objectKey(v.Kind, v.Namespace, v.Name)
		if was, known := all[name]; known && was.action == change.Fail {
			was.reason += "; " + v.Field + ": " + v.Message
			all[name] = was
		} else {
			all[name] = heldObject{action: change.Fail, reason: v.Field + ": " + v.Message}
		}
	}
	if len(all) == 0 {
		return
	}
	seedOf := map[string]string{}
	if slices.ContainsFunc(slices.Collect(maps.Keys(all)), func(name string) bool { return strings.HasPrefix(name, "Seed ") }) {
		seedOf = seedsOfShoots(old)
	}
	staying := map[string]int{}
	p.Items = slices.DeleteFunc(p.Items, func(item change.Item) bool {
		if item.Bundle == landscape.DeclarationsBundle || !isBundleOfHeldOwner(item.Owner, all, seedOf) {
			return false
		}
		staying[item.Owner]++
		return true
	})
	for i := range p.Items {
		item := &p.Items[i]
		k, back := all[objectKey(item.Object.Kind, item.Object.Namespace, item.Object.Name)]
		if !back || item.Bundle != landscape.DeclarationsBundle {
			continue
		}
		item.Action, item.Reason, item.Approval, item.Consequences, item.Pools = k.action, k.reason, "", nil, nil
	}
	holdReferenced(p, old, new)
	p.Notes = append(p.Notes, removalNotes(old, new)...)
	for _, name := range slices.Sorted(maps.Keys(staying)) {
		p.Notes = append(p.Notes, fmt.Sprintf("%s stays on its clusters: %s not changed", name, objectsPhrase(staying[name])))
	}
}

// holdReferenced holds the removal of objects that held owners reference, as apply does, such as
// the Secrets of a removed Garden. A Secret with a file that only a removed Garden references is
// not moved to the virtual garden.
func holdReferenced(p *change.Plan, old, new *landscapes.Landscape) {
	isGarden := func(d *landscapes.Declaration) bool {
		return isHeldOwner(d.GroupVersionKind().GroupKind()) && d.GroupVersionKind().Kind == "Garden"
	}
	declared := map[crosscheck.ReferencedObject]*landscapes.Declaration{}
	for i := range old.Declarations {
		d := &old.Declarations[i]
		declared[crosscheck.ReferencedObject{Kind: d.GroupVersionKind().GroupKind(), Namespace: d.Namespace(), Name: d.Name()}] = d
	}
	reasons, ofGarden := map[crosscheck.ReferencedObject]string{}, map[crosscheck.ReferencedObject]bool{}
	holders := removedOwners(old, new)
	for len(holders) > 0 {
		holder := holders[0]
		holders = holders[1:]
		for _, name := range crosscheck.ReferencedObjects(holder.Object()) {
			d := declared[name]
			if d == nil || reasons[name] != "" || isHeldOwner(name.Kind) {
				continue
			}
			reasons[name] = landscape.ReferenceHoldText(apply.RefOf(holder.Object()))
			ofGarden[name] = isGarden(holder)
			holders = append(holders, d)
		}
	}
	if len(reasons) == 0 {
		return
	}
	gardenStays := slices.ContainsFunc(new.Declarations, func(d landscapes.Declaration) bool { return isGarden(&d) })
	nameOf := func(item change.Item) crosscheck.ReferencedObject {
		return crosscheck.ReferencedObject{Kind: item.Object.GroupKind(), Namespace: item.Object.Namespace, Name: item.Object.Name}
	}
	p.Items = slices.DeleteFunc(p.Items, func(item change.Item) bool {
		return item.Bundle == landscape.DeclarationsBundle && item.Cluster == landscape.Virtual && item.Action == change.Create && ofGarden[nameOf(item)] && !gardenStays
	})
	for i := range p.Items {
		item := &p.Items[i]
		of := landscape.Virtual
		if ofGarden[nameOf(*item)] {
			of = landscape.Runtime
		}
		if reason := reasons[nameOf(*item)]; reason != "" && item.Bundle == landscape.DeclarationsBundle && item.Cluster == of && item.Action == change.Delete {
			item.Action, item.Reason, item.Approval, item.Consequences = change.Hold, "removal is held: "+reason, "", nil
		}
	}
}

// RemoveConfirmedGarden removes from a plan what is deleted with a Garden whose deletion is
// confirmed in Git. The confirmation implies an approval, so no gate holds it.
func RemoveConfirmedGarden(p *change.Plan, old, new *landscapes.Landscape) []change.Item {
	stays := map[landscapes.ObjectName]bool{}
	for i := range new.Declarations {
		stays[new.Declarations[i].ObjectName()] = true
	}
	var ending []change.Item
	for i := range old.Declarations {
		d := &old.Declarations[i]
		if stays[d.ObjectName()] || !landscape.IsDeletedWithFile(d.Object()) {
			continue
		}
		garden := change.RefOf(d.Object())
		p.Notes = append(p.Notes, fmt.Sprintf("%s is deleted with everything that runs for it", garden))
		p.Items = slices.DeleteFunc(p.Items, func(item change.Item) bool {
			its := item.Owner == "garden "+garden.Name || item.Bundle == landscape.DeclarationsBundle && item.Object == garden
			if its {
				ending = append(ending, item)
			}
			return its
		})
	}
	return ending
}

func objectsPhrase(n int) string {
	if n == 1 {
		return "1 object is"
	}
	return fmt.Sprintf("%d objects are", n)
}

// isBundleOfHeldOwner reports whether the owner of a bundle stays. The Shoots of a Seed wait for
// it.
func isBundleOfHeldOwner(name string, all map[string]heldObject, seedOf map[string]string) bool {
	kind, rest, _ := strings.Cut(name, " ")
	namespace, object, namespaced := strings.Cut(rest, "/")
	if !namespaced {
		namespace, object = "", rest
	}
	for _, of := range []string{"Garden", "Seed", "Shoot"} {
		if strings.EqualFold(kind, of) {
			if _, stays := all[objectKey(of, namespace, object)]; stays {
				return true
			}
		}
	}
	_, stays := all[objectKey("Seed", "", seedOf[rest])]
	return stays && kind == "shoot"
}

// heldOwners returns the owners that the new landscape no longer declares.
func heldOwners(old, new *landscapes.Landscape) map[string]heldObject {
	out := map[string]heldObject{}
	for _, d := range removedOwners(old, new) {
		reason := "its file no longer exists"
		if other := replacementGarden(new, d); other != nil {
			reason = other.Name() + " cannot replace it"
		}
		out[objectKey(d.GroupVersionKind().Kind, d.Namespace(), d.Name())] = heldObject{change.Hold, "removal is held: " + reason}
	}
	return out
}

// removalNotes returns advice for each owner that is no longer declared.
func removalNotes(old, new *landscapes.Landscape) []string {
	var out []string
	for _, d := range removedOwners(old, new) {
		if replacementGarden(new, d) == nil {
			out = append(out, fmt.Sprintf("%s: %s", change.RefOf(d.Object()), heldRemovalReason(new, d)))
		}
	}
	return out
}

// replacementGarden returns the Garden that replaces a removed one, or nil.
func replacementGarden(l *landscapes.Landscape, d *landscapes.Declaration) *landscapes.Declaration {
	if d.GroupVersionKind().Kind != "Garden" {
		return nil
	}
	for i := range l.Declarations {
		if l.Declarations[i].GroupVersionKind() == d.GroupVersionKind() {
			return &l.Declarations[i]
		}
	}
	return nil
}

// removedOwners returns the previous declarations of owners that are no longer declared, but stay.
func removedOwners(old, new *landscapes.Landscape) []*landscapes.Declaration {
	var out []*landscapes.Declaration
	declared := map[landscapes.ObjectName]bool{}
	for i := range new.Declarations {
		declared[new.Declarations[i].ObjectName()] = true
	}
	for i := range old.Declarations {
		if d := &old.Declarations[i]; isHeldOwner(d.GroupVersionKind().GroupKind()) && !declared[d.ObjectName()] && !landscape.IsDeletedWithFile(d.Object()) {
			out = append(out, d)
		}
	}
	return out
}

func heldRemovalReason(l *landscapes.Landscape, d *landscapes.Declaration) string {
	file := d.Position("metadata.name").File
	text, back := landscape.RemovalHoldText(apply.RefOf(d.Object())), "put "+file+" back"
	if _, err := fs.Stat(l.FS, path.Join(l.Path, file)); err == nil {
		text = strings.Replace(text, "its file no longer exists", file+" no longer declares it", 1)
		back = "declare it there again"
	}
	text = strings.Replace(text, "put the file back", back, 1)
	return withClusterAccess(l, d.GroupVersionKind().Kind, text)
}

// ReplaceRemovalFindings replaces the API's findings about removed owners, confirmed or not, with
// warnings: the operator applies the rest of the change. They have the position of landscape.yaml,
// as the owner's file no longer exists. A renamed Garden is an error.
func ReplaceRemovalFindings(found []schemas.Violation, l, before *landscapes.Landscape) []schemas.Violation {
	found = slices.DeleteFunc(found, IsRemovalHeld)
	for _, d := range removedOwners(before, l) {
		if other := replacementGarden(l, d); other != nil {
			const field = "metadata.name"
			at := other.Position(field)
			found = append(found, schemas.Violation{
				Severity: schemas.SeverityError, File: at.File, Line: at.Line, Column: at.Column, Kind: "Garden", Name: other.Name(),
				Field: field, Type: schemas.TypeForbidden, Rule: "garden/only-one",
				Message: fmt.Sprintf("the Garden %q cannot be renamed, and a landscape has only one Garden: set the name back to %q", d.Name(), d.Name()),
			})
			continue
		}
		v := schemas.Violation{
			Severity: schemas.SeverityWarning, Kind: d.GroupVersionKind().Kind, Namespace: d.Namespace(), Name: d.Name(),
			Field: fieldDeletionConfirmed, Type: schemas.TypeForbidden, Rule: schemas.RuleDeletionConfirm, Message: heldRemovalReason(l, d),
		}
		if l.ConfigDeclaration != nil {
			v.File = l.ConfigDeclaration.Position("").File
		}
		found = append(found, v)
	}
	return found
}

const fieldDeletionConfirmed = "metadata.annotations[confirmation.gardener.cloud/deletion]"

// IsRemovalHeld reports whether a finding is about a removal that is not carried out.
func IsRemovalHeld(v schemas.Violation) bool {
	return v.Rule == schemas.RuleDeletionConfirm && landscape.IsHeldOnRemoval(v.Kind)
}

// withClusterAccess adapts the commands in a text to the cluster of a kind: with flags for its
// access, or with its name.
func withClusterAccess(l *landscapes.Landscape, kind, text string) string {
	cluster := landscape.Virtual
	if kind == "Garden" {
		cluster = landscape.Runtime
	}
	return apply.RewriteKubectlForCluster(strings.TrimSpace("kubectl "+landscape.Access{}.KubectlFlags(l, cluster)), cluster, text)
}

func isHeldOwner(gk schema.GroupKind) bool {
	return strings.HasSuffix(gk.Group, ".gardener.cloud") && landscape.IsHeldOnRemoval(gk.Kind)
}

// seedsOfShoots maps Shoots to the Seeds that they declare.
func seedsOfShoots(l *landscapes.Landscape) map[string]string {
	out := map[string]string{}
	for s, err := range l.EachShoot() {
		if err == nil && s.Object.Spec.SeedName != nil {
			out[s.Object.Namespace+"/"+s.Object.Name] = *s.Object.Spec.SeedName
		}
	}
	return out
}

func objectKey(kind, namespace, name string) string { return kind + " " + namespace + "/" + name }
