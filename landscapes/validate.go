// SPDX-License-Identifier: Apache-2.0

package landscapes

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/pergola-dev/pergola/schemas"
	"github.com/pergola-dev/pergola/schemas/crosscheck"
	"github.com/pergola-dev/pergola/schemas/mutation"
)

// Validate checks all declarations of the landscape, one by one and together.
func (l *Landscape) Validate(ctx context.Context, opts schemas.Options) ([]schemas.Violation, error) {
	return l.ValidateAt(ctx, time.Now(), nil, opts)
}

// ValidateChange is Validate with the rules of updates and deletions, from before to the landscape.
// Findings about removed declarations name the files of before.
func (l *Landscape) ValidateChange(ctx context.Context, before *Landscape, opts schemas.Options) ([]schemas.Violation, error) {
	return l.ValidateAt(ctx, time.Now(), before, opts)
}

// ValidateAt is ValidateChange at another time: versions of cloud profiles expire. With a before
// without declarations, all objects are new. With nil that is unknown: an error that only new
// objects have becomes a warning, because existing objects may keep the value.
func (l *Landscape) ValidateAt(ctx context.Context, now time.Time, before *Landscape, opts schemas.Options) ([]schemas.Violation, error) {
	if l.IsLayerMissing {
		return nil, nil
	}
	inputs := make([]schemas.Input, 0, len(l.Declarations)+1)
	around := &schemas.LandscapeObjects{}
	former := map[identity]*Declaration{}
	if before != nil {
		for i := range before.Declarations {
			former[identityOf(&before.Declarations[i])] = &before.Declarations[i]
		}
	}
	for i := range l.Declarations {
		d := &l.Declarations[i]
		in := d.Input()
		if in.Lazy != nil {
			around.LazyObjects = append(around.LazyObjects, in.Lazy)
		} else {
			around.Objects = append(around.Objects, in.Object)
		}
		if old := former[identityOf(d)]; old != nil {
			// If only one side has a key for a Secret, a change is unknown: its key may have been
			// exchanged.
			if (old.Secret == SecretEncrypted) == (d.Secret == SecretEncrypted) {
				old.SetOld(&in)
			}
			delete(former, identityOf(d))
		}
		inputs = append(inputs, in)
	}
	if l.ConfigDeclaration != nil {
		inputs = append(inputs, l.ConfigDeclaration.Input())
		around.Objects = append(around.Objects, l.ConfigDeclaration.Object())
	}
	if l.Incomplete {
		// a missing object may be in an unreadable file
		clear(former)
	}
	for _, old := range former {
		in := schemas.Input{Positions: removedDeclaration{old}}
		old.SetOld(&in)
		inputs = append(inputs, in)
	}
	opts.Landscape = around
	if opts.Cache == nil && l.resultCache != nil {
		opts.Cache = schemas.NewPersistentCache(l.resultCache)
	}
	managedSeeds := mutation.CompleteManagedSeeds(inputs, now)
	found, err := schemas.Validate(ctx, managedSeeds.Inputs, opts)
	if err != nil {
		return nil, err
	}
	managedSeeds.ExplainFindings(found)
	checker, err := schemas.NewChecker(opts)
	if err != nil {
		return nil, err
	}
	var failed error
	together := crosscheck.Options{Now: now, Cache: l.resultCache, Rules: func(in schemas.Input) []schemas.Violation {
		found, err := checker.Check(in)
		failed = errors.Join(failed, err)
		return found
	}}
	for _, e := range l.Config.Spec.External {
		together.External = append(together.External, crosscheck.External(e))
	}
	acrossAll := crosscheck.Check(inputs, together)
	if failed != nil {
		return nil, failed
	}
	if before != nil && !l.Incomplete {
		acrossAll = append(acrossAll, l.checkClusterMoves(before)...)
	}
	found = dropProfileDefaults(found, acrossAll)
	if l.Incomplete {
		acrossAll = slices.DeleteFunc(acrossAll, crosscheck.IsMissingReference)
	}
	operations, err := l.checkOperations(now, before)
	if err != nil {
		return nil, err
	}
	found = crosscheck.DropDuplicates(slices.Concat(DescribeForms(found), acrossAll, operations))
	if before == nil {
		demoteNewOnlyErrors(found)
	}
	schemas.SortViolations(found)
	return found, nil
}

// removedDeclaration returns places of a removed declaration: the file that had it, without lines,
// because these have changed.
type removedDeclaration struct{ *Declaration }

// Position implements schemas.Positioner.
func (g removedDeclaration) Position(path string) schemas.Position {
	return schemas.Position{File: g.Declaration.Position(path).File}
}

// KeyPosition is Position, because a removed declaration has no field names.
func (g removedDeclaration) KeyPosition(path string) schemas.Position { return g.Position(path) }

// demoteNewOnlyErrors turns errors that only new objects have into warnings, if it is unknown which
// are new.
func demoteNewOnlyErrors(found []schemas.Violation) {
	for i := range found {
		if v := &found[i]; v.NewOnly && v.Severity == schemas.SeverityError {
			v.Severity = schemas.SeverityWarning
			v.Message += "; existing objects keep it, new objects are rejected (validate --from REV distinguishes them)"
		}
	}
}

// dropProfileDefaults drops findings about Shoot fields that a cloud profile defaults, if that
// profile is reported as missing.
func dropProfileDefaults(found, acrossAll []schemas.Violation) []schemas.Violation {
	missing := map[string]bool{}
	for _, v := range acrossAll {
		if v.Rule == "shoot/profile-exists" {
			missing[v.Namespace+"/"+v.Name] = true
		}
	}
	return slices.DeleteFunc(found, func(v schemas.Violation) bool {
		return v.Kind == "Shoot" && missing[v.Namespace+"/"+v.Name] && schemas.IsDefaultedByProfile(v)
	})
}
