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
	"github.com/pergola-dev/pergola/schemas/across"
	"github.com/pergola-dev/pergola/schemas/kept"
	"github.com/pergola-dev/pergola/source"
)

// invalidError says that a revision cannot be applied as it is: trying again is of no use.
type invalidError struct {
	what     string
	findings []schemas.Violation
}

// shownFindings is how many findings a message has.
const shownFindings = 5

func (e *invalidError) Error() string {
	var b strings.Builder
	b.WriteString(e.what)
	errs := 0
	for _, f := range e.findings {
		if f.Severity != schemas.SeverityError {
			continue
		}
		if errs++; errs <= shownFindings {
			b.WriteString("; " + f.String())
		}
	}
	if errs > shownFindings {
		fmt.Fprintf(&b, "; and %d more", errs-shownFindings)
	}
	return b.String()
}

// invalid is an invalidError without findings.
func invalid(format string, args ...any) error {
	return &invalidError{what: fmt.Sprintf(format, args...)}
}

func isInvalid(err error) bool { return errors.As(err, new(*invalidError)) }

// reading is what a revision is read with.
type reading struct {
	catalogue  fs.FS
	evaluator  evaluation.Evaluator
	kept       *kept.Store
	identities []age.Identity
	now        time.Time
	// object is the Landscape, in the folder that is read, and remote has its revisions.
	object *landscapev1alpha1.Landscape
	remote source.Remote
	// active is the revision that is kept meanwhile, nil for none.
	active  *revision
	purpose purpose
	// loaded are former revisions that were compared with already.
	loaded map[commitAt]*landscapes.Landscape
}

// revision is a snapshot that was read and found valid.
type revision struct {
	*source.Snapshot
	landscape *landscapes.Landscape
	// folder is the one of the snapshot that has it.
	folder string
	// notes are about what the revision asks for and does not get.
	notes []string
}

func (r *revision) at() commitAt { return commitAt{commit: r.Commit, folder: r.folder} }

// read loads and validates a revision.
func (r *reading) read(ctx context.Context, snapshot *source.Snapshot) (*revision, error) {
	folder := folderOf(r.object)
	l, violations, err := r.load(ctx, snapshot, folder)
	if missing := (*landscapes.NoLandscapeError)(nil); errors.As(err, &missing) {
		return nil, invalid("revision %s: the folder %s (spec.source.path) has no file landscape.yaml", snapshot.Revision(), folder)
	}
	if err != nil {
		return nil, fmt.Errorf("reading revision %s: %w", snapshot.Revision(), err)
	}
	if err := whole(l); err != nil {
		return nil, fmt.Errorf("reading revision %s: %w", snapshot.Revision(), err)
	}
	if err := source.CheckFiles(snapshot.FS, landscape.Folders(l)...); err != nil {
		return nil, invalid("revision %s: %s", snapshot.Revision(), err)
	}
	next := &revision{Snapshot: snapshot, landscape: l, folder: folder}
	former, note, err := r.applied(ctx, next)
	if err != nil {
		return nil, err
	}
	found, err := l.ValidateAt(ctx, r.now, former, schemas.Options{})
	if err != nil {
		return nil, fmt.Errorf("validating revision %s: %w", snapshot.Revision(), err)
	}
	// Pergola holds these removals in the cluster, and says so: what else the revision changes is
	// applied.
	found = slices.DeleteFunc(found, func(v schemas.Violation) bool {
		return v.Rule == schemas.RuleDeletionConfirm && landscape.HoldsRemoval(v.Kind)
	})
	// A revision does not become invalid while it waits: what the clock decides is left to the API,
	// which refuses the one object.
	for i := range found {
		if across.IsTimed(found[i]) {
			found[i].Severity = schemas.SeverityWarning
		}
	}
	var rendering []schemas.Violation
	if l.ConfigDeclaration != nil {
		rendering = render.CheckLandscape(r.catalogue, l, render.At(r.now), render.Ruled())
	}
	if all := slices.Concat(violations, found, rendering); schemas.HasErrors(all) {
		schemas.Sort(all)
		return nil, &invalidError{fmt.Sprintf("revision %s is not valid", snapshot.Revision()), all}
	}
	if name := l.Config.Name; name != r.object.Name {
		return nil, invalid("revision %s: landscape.yaml is of landscape %q, but this one is %q: the names have to be the same", snapshot.Revision(), name, r.object.Name)
	}
	if err := demands(&r.object.Spec, &l.Config.Spec); err != nil {
		return nil, invalid("revision %s: %s", snapshot.Revision(), err)
	}
	if l.Config.Spec.Suspend {
		return nil, invalid("revision %s says spec.suspend in landscape.yaml: it is not applied", snapshot.Revision())
	}
	if err := r.bound(next); err != nil {
		return nil, err
	}
	if note != "" {
		next.notes = append(next.notes, note)
	}
	next.notes = append(next.notes, doubtful(found)...)
	return next, nil
}

// doubtful says which objects the API may refuse: those that are new, or that the clock has
// overtaken.
func doubtful(found []schemas.Violation) []string {
	var notes []string
	for _, v := range found {
		if v.NewOnly || across.IsTimed(v) {
			notes = append(notes, v.String())
		}
	}
	if more := len(notes) - shownFindings; more > 0 {
		notes = append(notes[:shownFindings], fmt.Sprintf("and %d more such warnings", more))
	}
	return notes
}

// load reads the landscape in a folder, without judging it.
func (r *reading) load(ctx context.Context, snapshot *source.Snapshot, folder string) (*landscapes.Landscape, []schemas.Violation, error) {
	return landscapes.LoadFS(ctx, snapshot.FS, folder, landscapes.Options{AgeIdentities: r.identities, Evaluator: r.evaluator, Kept: r.kept})
}

// applied is what a revision has to be reachable from: the one that was applied completely last,
// nil for none. What was only tried since is not in the clusters as it stands there, and of what
// is, the API servers judge. A commit that cannot be had any more, after a force-push for example,
// is compared with nothing, which the note says.
func (r *reading) applied(ctx context.Context, next *revision) (_ *landscapes.Landscape, note string, err error) {
	at := appliedAt(&r.object.Status)
	l, err := r.former(ctx, next, at)
	switch {
	case err == nil:
		return l, "", nil
	case ctx.Err() != nil:
		return nil, "", ctx.Err()
	case r.purpose.isFormer() || source.IsPermanent(err) || source.ReasonOf(err) == source.ReasonReferenceNotFound:
		return nil, fmt.Sprintf("revision %s, which was applied before it, cannot be read, so that nobody has looked for what must not change: %s", at.commit, err), nil
	}
	return nil, "", fmt.Errorf("reading revision %s, which was applied before it: %w", at.commit, err)
}

// whole reads everything once, here where it is an error if the files got lost: what applies the
// revision has it in memory then, and asks the repository for nothing more.
func whole(l *landscapes.Landscape) (err error) {
	defer panics.Catch(&err)
	for i := range l.Declarations {
		l.Declarations[i].Load()
	}
	return nil
}

// bound puts the limits of the object in the cluster in the place of those that the revision asks
// for. One that is applied is kept, whatever the windows.
func (r *reading) bound(next *revision) error {
	own := &r.object.Spec
	config := next.landscape.Config.DeepCopy()
	gate, loosened, err := tighten(own.DeletionGate, config.Spec.DeletionGate)
	if err != nil {
		return invalid("revision %s: %s", next.Revision(), err)
	}
	config.Spec.DeletionGate = gate
	if config.Spec.ForceConflicts && !own.ForceConflicts {
		config.Spec.ForceConflicts = false
		loosened = append(loosened, "forceConflicts (it stays false)")
	}
	config.Spec.Clusters = nil // from the object alone
	next.landscape.Config = config
	if len(loosened) > 0 {
		next.notes = append(next.notes, "landscape.yaml asks for less protection than the Landscape in the cluster has, which alone counts: "+strings.Join(loosened, ", "))
	}
	kept := r.purpose.isFormer() || appliedAt(&r.object.Status) == next.at()
	if windows, err := windowsAt(r.now, config.Spec.Windows); err != nil {
		return invalid("revision %s: landscape.yaml: %s", next.Revision(), err)
	} else if neverOpens(windows) { // not even the commit that takes it away could be applied
		return invalid("revision %s: landscape.yaml: spec.windows: none of them ever opens", next.Revision())
	} else if both, err := windowsWithin(r.now, everyOpening, own.Windows, config.Spec.Windows); err == nil && neverOpens(both) && !kept {
		if alone, err := windowsAt(r.now, own.Windows); err == nil && !neverOpens(alone) {
			return invalid("revision %s: landscape.yaml: spec.windows: none of them is ever open while one of the Landscape in the cluster is, and both have to be", next.Revision())
		}
	}
	return nil
}

// folderOf is the folder of the landscape in its repository.
func folderOf(object *landscapev1alpha1.Landscape) string {
	if object.Spec.Source == nil {
		return "."
	}
	return path.Clean(strings.TrimPrefix(path.Join("/", object.Spec.Source.Path), "/"))
}
