package landscape

import (
	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/managedresource"
	"github.com/pergola-dev/pergola/landscapes"
)

// NewEngine makes the engine for a landscape, to be used by one converger after another.
func NewEngine(l *landscapes.Landscape, options Options) *apply.Engine {
	return apply.NewEngine(apply.Options{
		Clock: options.Clock, Force: forces(l, options.Force), ForceHint: options.ForceHint, Protected: neverRecreated(), Kin: managedresource.IsFieldManager,
	})
}

// forces tells whether fields of an object are taken over from others: the landscape says so for all, a person for some.
func forces(l *landscapes.Landscape, some func(apply.Ref) bool) func(apply.Ref) bool {
	return func(ref apply.Ref) bool { return l.Config.Spec.ForceConflicts || some != nil && some(ref) }
}
