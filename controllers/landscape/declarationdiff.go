// SPDX-License-Identifier: Apache-2.0

package landscape

import (
	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/landscapes"
	"github.com/pergola-dev/pergola/plan"
)

// ChangedDeclarations returns Declared for both sides without the common objects, and counts those.
// The cost follows the size of the change unless the Garden changes.
func ChangedDeclarations(old, new *landscapes.Landscape, sealed map[apply.Ref]bool) (before, after []plan.ClusterBundle, same int) {
	alike := landscapes.UnchangedDeclarations(old, new)
	for _, l := range []*landscapes.Landscape{old, new} {
		for i := range l.Declarations {
			if d := &l.Declarations[i]; isGardenDeclaration(d) && !alike[d.ObjectName()] {
				// References of a Garden decide the cluster of other objects: any may have moved.
				return DeclarationBundles(old, sealed), DeclarationBundles(new, sealed), 0
			}
		}
	}
	for i := range new.Declarations {
		if d := &new.Declarations[i]; alike[d.ObjectName()] && !isGardenDeclaration(d) && d.GroupVersionKind().Group != landscapev1alpha1.SchemeGroupVersion.Group {
			same++
		}
	}
	// Gardens stay, because they decide the cluster of other objects.
	shown := func(d *landscapes.Declaration) bool { return isGardenDeclaration(d) || !alike[d.ObjectName()] }
	return DeclarationBundles(old.Filter(shown), sealed), DeclarationBundles(new.Filter(shown), sealed), same
}

func isGardenDeclaration(d *landscapes.Declaration) bool {
	return d.GroupVersionKind().Kind == "Garden"
}
