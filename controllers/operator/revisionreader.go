// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"filippo.io/age"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/controllers/landscape"
	"github.com/pergola-dev/pergola/internal/panics"
	"github.com/pergola-dev/pergola/landscapes"
	"github.com/pergola-dev/pergola/landscapes/evaluation"
	"github.com/pergola-dev/pergola/render"
	"github.com/pergola-dev/pergola/schemas"
	"github.com/pergola-dev/pergola/schemas/crosscheck"
	"github.com/pergola-dev/pergola/schemas/resultcache"
	"github.com/pergola-dev/pergola/source"
)

// invalidError means that a revision cannot be applied, and that a retry does not help.
type invalidError struct {
	summary  string
	findings []schemas.Violation
}

// maxShownFindings is the maximum number of findings in a message.
const maxShownFindings = 5

func (e *invalidError) Error() string {
	var b strings.Builder
	b.WriteString(e.summary)
	errs := 0
	for _, f := range e.findings {
		if f.Severity != schemas.SeverityError {
			continue
		}
		if errs++; errs <= maxShownFindings {
			b.WriteString("; " + f.String())
		}
	}
	if errs > maxShownFindings {
		fmt.Fprintf(&b, "; and %d more", errs-maxShownFindings)
	}
	return b.String()
}

// newInvalidError returns an invalidError without findings.
func newInvalidError(format string, args ...any) error {
	return &invalidError{summary: fmt.Sprintf(format, args...)}
}

func isInvalid(err error) bool { return errors.As(err, new(*invalidError)) }

// revisionReader is the input for reading a revision.
type revisionReader struct {
	catalogue       fs.FS
	evaluator       evaluation.Evaluator
	validationCache *resultcache.Store
	identities      []age.Identity
	now             time.Time
	// object is the Landscape with the folder to read, and remote has its revisions.
	object *landscapev1alpha1.Landscape
	remote source.Remote
	// activeRevision is the maintained revision; it is nil for none.
	activeRevision *revision
	purpose        purpose
	// loadedBases caches earlier revisions that were compared with.
	loadedBases map[commitPath]*landscapes.Landscape
}

// revision is a snapshot that was read and is valid.
type revision struct {
	*source.Snapshot
	landscape *landscapes.Landscape
	// folder is the landscape's folder in the snapshot.
	folder string
	// notes describe requests of the revision that are not granted.
	notes []string
}

func (r *revision) commitPath() commitPath { return commitPath{commit: r.Commit, folder: r.folder} }

// read loads and validates a revision.
func (r *revisionReader) read(ctx context.Context, snapshot *source.Snapshot) (*revision, error) {
	folder := folderOf(r.object)
	l, violations, err := r.loadLandscape(ctx, snapshot, folder)
	if missing := (*landscapes.NoLandscapeError)(nil); errors.As(err, &missing) {
		return nil, newInvalidError("revision %s: the folder %s (spec.source.path) has no file landscape.yaml", snapshot.Revision(), folder)
	}
	if err != nil {
		return nil, fmt.Errorf("reading revision %s: %w", snapshot.Revision(), err)
	}
	if err := loadDeclarations(l); err != nil {
		return nil, fmt.Errorf("reading revision %s: %w", snapshot.Revision(), err)
	}
	if err := source.CheckFiles(snapshot.FS, landscape.Folders(l)...); err != nil {
		return nil, newInvalidError("revision %s: %s", snapshot.Revision(), err)
	}
	next := &revision{Snapshot: snapshot, landscape: l, folder: folder}
	former, note, err := r.readApplied(ctx, next)
	if err != nil {
		return nil, err
	}
	found, err := l.ValidateAt(ctx, r.now, former, schemas.Options{})
	if err != nil {
		return nil, fmt.Errorf("validating revision %s: %w", snapshot.Revision(), err)
	}
	// Pergola holds and reports these removals in the cluster, and applies the rest of the
	// revision.
	found = slices.DeleteFunc(found, func(v schemas.Violation) bool {
		return v.Rule == schemas.RuleDeletionConfirm && landscape.IsHeldOnRemoval(v.Kind)
	})
	// A waiting revision does not become invalid by time: the API rejects the expired object alone.
	for i := range found {
		if crosscheck.IsTimeDependent(found[i]) {
			found[i].Severity = schemas.SeverityWarning
		}
	}
	var rendering []schemas.Violation
	if l.ConfigDeclaration != nil {
		rendering = render.CheckLandscape(r.catalogue, l, render.WithTime(r.now), render.WithPassedRules())
	}
	if all := slices.Concat(violations, found, rendering); schemas.HasErrors(all) {
		schemas.SortViolations(all)
		return nil, &invalidError{fmt.Sprintf("revision %s is not valid", snapshot.Revision()), all}
	}
	if name := l.Config.Name; name != r.object.Name {
		return nil, newInvalidError("revision %s: landscape.yaml names landscape %q, but the Landscape is %q: use the same name", snapshot.Revision(), name, r.object.Name)
	}
	if err := checkVerification(&r.object.Spec, &l.Config.Spec); err != nil {
		return nil, newInvalidError("revision %s: %s", snapshot.Revision(), err)
	}
	if l.Config.Spec.Suspend {
		return nil, newInvalidError("revision %s sets spec.suspend in landscape.yaml and is not applied", snapshot.Revision())
	}
	if err := r.applyLimits(next); err != nil {
		return nil, err
	}
	if note != "" {
		next.notes = append(next.notes, note)
	}
	next.notes = append(next.notes, possibleRejections(found)...)
	return next, nil
}

// possibleRejections lists objects that the API may reject, because they are new or because of the
// time.
func possibleRejections(found []schemas.Violation) []string {
	var notes []string
	for _, v := range found {
		if v.NewOnly || crosscheck.IsTimeDependent(v) {
			notes = append(notes, v.String())
		}
	}
	if more := len(notes) - maxShownFindings; more > 0 {
		notes = append(notes[:maxShownFindings], fmt.Sprintf("and %d more warnings of this kind", more))
	}
	return notes
}

// loadLandscape reads the landscape in a folder without validating it.
func (r *revisionReader) loadLandscape(ctx context.Context, snapshot *source.Snapshot, folder string) (*landscapes.Landscape, []schemas.Violation, error) {
	return landscapes.LoadFS(ctx, snapshot.FS, folder, landscapes.Options{AgeIdentities: r.identities, Evaluator: r.evaluator, ResultCache: r.validationCache})
}

// readApplied returns the last completely applied revision, or nil for none, to validate the
// update. Later attempts are in the clusters only in part; the API servers validate those updates.
// A commit that is lost, after a force-push for example, yields a note and no comparison.
func (r *revisionReader) readApplied(ctx context.Context, next *revision) (_ *landscapes.Landscape, note string, err error) {
	at := appliedCommitPath(&r.object.Status)
	l, err := r.readBase(ctx, next, at)
	switch {
	case err == nil:
		return l, "", nil
	case ctx.Err() != nil:
		return nil, "", ctx.Err()
	case r.purpose.isForAppliedRevision() || source.IsPermanent(err) || source.ReasonOf(err) == source.ReasonReferenceNotFound:
		return nil, fmt.Sprintf("the previously applied revision %s cannot be read, so the update is not checked for forbidden changes: %s", at.commit, err), nil
	}
	return nil, "", fmt.Errorf("reading the previously applied revision %s: %w", at.commit, err)
}

// loadDeclarations loads all declarations now, where a lost file is an error. The converger then
// has them in memory and does not read the repository.
func loadDeclarations(l *landscapes.Landscape) (err error) {
	defer panics.Catch(&err)
	for i := range l.Declarations {
		l.Declarations[i].Load()
	}
	return nil
}

// applyLimits applies the limits of the object in the cluster to the revision. An applied revision
// stays valid whatever the windows.
func (r *revisionReader) applyLimits(next *revision) error {
	own := &r.object.Spec
	config := next.landscape.Config.DeepCopy()
	gate, loosened, err := effectiveDeletionGate(own.DeletionGate, config.Spec.DeletionGate)
	if err != nil {
		return newInvalidError("revision %s: %s", next.Revision(), err)
	}
	config.Spec.DeletionGate = gate
	if config.Spec.ForceConflicts && !own.ForceConflicts {
		config.Spec.ForceConflicts = false
		loosened = append(loosened, "forceConflicts (it stays false)")
	}
	config.Spec.Clusters = nil // only the object sets it
	next.landscape.Config = config
	if len(loosened) > 0 {
		next.notes = append(next.notes, "landscape.yaml asks for less protection than the Landscape in the cluster, whose settings apply: "+strings.Join(loosened, ", "))
	}
	kept := r.purpose.isForAppliedRevision() || appliedCommitPath(&r.object.Status) == next.commitPath()
	if windows, err := windowStateAt(r.now, config.Spec.Windows); err != nil {
		return newInvalidError("revision %s: landscape.yaml: %s", next.Revision(), err)
	} else if isNeverOpen(windows) { // the window would also block the commit that removes it
		return newInvalidError("revision %s: landscape.yaml: spec.windows: no window ever opens", next.Revision())
	} else if both, err := findCommonOpening(r.now, unlimitedOpenings, own.Windows, config.Spec.Windows); err == nil && isNeverOpen(both) && !kept {
		if alone, err := windowStateAt(r.now, own.Windows); err == nil && !isNeverOpen(alone) {
			return newInvalidError("revision %s: landscape.yaml: spec.windows: no window overlaps with one of the Landscape in the cluster, and both must be open", next.Revision())
		}
	}
	return nil
}

// folderOf returns the folder of the landscape in its repository.
func folderOf(object *landscapev1alpha1.Landscape) string {
	if object.Spec.Source == nil {
		return "."
	}
	return path.Clean(strings.TrimPrefix(path.Join("/", object.Spec.Source.Path), "/"))
}
