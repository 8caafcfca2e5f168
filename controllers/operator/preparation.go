package operator

import (
	"context"
	"fmt"
	"path/filepath"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/controllers/charts"
	"github.com/pergola-dev/pergola/controllers/conventions"
	"github.com/pergola-dev/pergola/controllers/landscape"
	"github.com/pergola-dev/pergola/controllers/notification"
	"github.com/pergola-dev/pergola/controllers/owner"
	"github.com/pergola-dev/pergola/landscapes"
	"github.com/pergola-dev/pergola/source"
	"github.com/pergola-dev/pergola/source/receiver"
)

// purpose is the reason why a revision is applied.
type purpose int

const (
	// purposeDue: the source has it, or the pin names it.
	purposeDue purpose = iota
	// purposeInstead: it was applied before, and the source cannot be polled for another one.
	purposeInstead
	// purposeKept: it was applied before, and is only maintained.
	purposeKept
)

// isFormer reports whether the revision was applied before.
func (p purpose) isFormer() bool { return p != purposeDue }

// attempt describes why and how a revision is applied.
type attempt struct {
	trigger string
	purpose purpose
	// head is the source's latest name of the revision; without a name if it is fetched by commit.
	head source.Head
	// spec identifies the part of the object that the attempt uses.
	spec specID
}

// preparation is a revision that is being fetched, verified, read and validated.
type preparation struct {
	commitAt
	attempt
	// windows is the digest of the object's windows during the read.
	windows string
	cancel  context.CancelFunc
}

// outdated reports whether another revision was attempted or applied since the review, which then
// compares with other ones.
func (j *job) outdated(now *landscapev1alpha1.LandscapeStatus) bool {
	at := j.revision.at()
	return j.given.seen != nil && j.given.seen.ID != reviewID(basesOf(now, at), at)
}

// discard closes an unused job.
func (j *job) discard() {
	if j != nil {
		j.converger.Close()
	}
}

// prepare starts to read a revision. The current one stays maintained meanwhile.
func (s *syncer) prepare(commit, trigger string, purpose purpose) {
	s.unprepare()
	s.unexamine()
	ctx, cancel := context.WithCancel(s.life.alive)
	object, head, remote := s.object, s.origin.head, s.origin.remote
	if purpose.isFormer() {
		object = s.keptObject()
	}
	object = object.DeepCopy()
	p := &preparation{commitAt: commitAt{commit: commit, folder: folderOf(object)}, attempt: attempt{trigger: trigger, purpose: purpose, spec: specOf(object)},
		windows: digest(object.Spec.Windows), cancel: cancel}
	s.jobs.preparing = p
	s.refresh(object)
	fetch := remote.Fetch
	if !purpose.isFormer() && object.Spec.Pin == nil {
		p.head = head
	}
	switch {
	case purpose.isFormer():
		head, fetch = headOf(s.former(), commit), remote.former
	case object.Spec.Pin != nil:
		head, fetch = source.Head{Commit: commit}, remote.former
	case head.Name == "":
		fetch = remote.former
	}
	with := s.reading(object, purpose)
	if !purpose.isFormer() {
		s.hub.supersede(commit, receiver.Progress{Time: s.parts.role.Clock.Now(), Message: commit + " is synced instead"})
	}
	s.hub.tell(commit, receiver.Progress{Time: s.parts.role.Clock.Now(), Phase: receiver.PhaseFetching, Message: "fetching " + commit})
	s.life.background.Go(func() {
		var ready *job
		err := s.safely(func() error {
			snapshot, err := fetch(ctx, head)
			if err == nil {
				ready, err = s.make(ctx, with, snapshot)
			}
			return err
		})
		select {
		case s.post <- func() { s.isPrepared(p, ready, err) }:
		case <-s.life.alive.Done():
			ready.discard()
		}
	})
}

// unprepare cancels the preparation, which is obsolete.
func (s *syncer) unprepare() {
	if s.jobs.preparing != nil {
		s.jobs.preparing.cancel()
		s.jobs.preparing = nil
	}
}

// reading returns the input for reading a revision, without the keys.
func (s *syncer) reading(object *landscapev1alpha1.Landscape, purpose purpose) *reading {
	out := &reading{catalogue: s.parts.role.Catalogue, evaluator: s.parts.role.Evaluator, kept: s.parts.keptOf(s.key), object: object, remote: s.origin.remote, purpose: purpose, loaded: map[commitAt]*landscapes.Landscape{}}
	if s.jobs.active != nil {
		out.active = s.jobs.active.revision
	}
	return out
}

// read reads and validates a revision in the background. Only one uncancelled read runs at a time.
func (s *syncer) read(ctx context.Context, with *reading, snapshot *source.Snapshot) (r *revision, err error) {
	if with.identities, err = s.parts.secretsOf(with.object).identities(ctx, with.object.Spec.Decryption); err != nil {
		return nil, err
	}
	// Parallel evaluation and rendering of several Landscapes would only cost memory.
	if !s.parts.building.TryLock() {
		s.hub.tell(snapshot.Commit, receiver.Progress{Time: s.parts.role.Clock.Now(), Phase: receiver.PhaseQueued, Message: "another Landscape is read first"})
		s.parts.building.Lock()
	}
	defer s.parts.building.Unlock()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	with.now = s.parts.role.Clock.Now()
	if r, err = with.read(ctx, snapshot); err != nil {
		return nil, err
	}
	return r, locked(with.object, r)
}

// make reads a revision and creates the job that applies it.
func (s *syncer) make(ctx context.Context, with *reading, snapshot *source.Snapshot) (*job, error) {
	s.hub.tell(snapshot.Commit, receiver.Progress{Time: s.parts.role.Clock.Now(), Phase: receiver.PhaseValidating, Message: fmt.Sprintf("validating %s %q", snapshot.Revision(), snapshot.Subject)})
	r, err := s.read(ctx, with, snapshot)
	if err != nil {
		return nil, err
	}
	s.parts.building.Lock()
	defer s.parts.building.Unlock()
	if ctx.Err() != nil { // the next preparation may have other connections already
		return nil, ctx.Err()
	}
	object := with.object
	j := &job{revision: r, given: permissions{approved: object.Spec.Approved}, applying: true, control: control{done: make(chan struct{}), repeat: make(chan string, 1)}}
	if reviewed(&object.Spec, &r.landscape.Config.Spec) {
		if j.given.seen, err = with.reviewed(ctx, r); err != nil {
			return nil, err
		}
	}
	if err := s.converger(ctx, object, j); err != nil {
		return nil, err
	}
	return j, nil
}

// converger creates the converger of a job.
func (s *syncer) converger(ctx context.Context, object *landscapev1alpha1.Landscape, j *job) error {
	l, revision := j.revision.landscape, j.revision.Revision()
	gate, err := landscape.Gate(l, approvals(object, object.Status.UsedApprovals).ActiveIDs())
	if err != nil {
		return invalid("revision %s: %s", revision, err)
	}
	if err := s.tools.clusters.connect(ctx, s.parts.role.Config, landscape.Fence(s.parts.sure), s.parts.secretsOf(object), object, apply.ClusterOptions{Clock: s.parts.role.Clock}); err != nil {
		return err
	}
	told := &steps{}
	gate.Ledger = func(id string, _ []change.Ref) bool { return s.take(j, id) }
	options := landscape.Options{
		Catalogue:  s.parts.role.Catalogue,
		Reuse:      landscape.Reuse{Charts: s.puller(), Renders: &s.tools.renders, Tokens: s.tools.tokens, Memory: &s.tools.permits},
		Connect:    landscape.Connections{Clusters: s.tools.clusters.byName(), Outside: s.parts.role.Outside, Leases: s.parts.leases()},
		Clock:      s.parts.role.Clock,
		Self:       landscape.Self{Holder: s.parts.role.Holder, Retries: true, Version: s.parts.role.Version},
		OnlyGarden: true, Checked: true,
		Pace:    landscape.Pace{Thresholds: landscape.Thresholds(l)},
		Permits: landscape.Permits{Gate: gate, Reviewed: j.given.seen, Shown: s.shownApproval},
		Hear: landscape.Listeners{OnEvent: func(e owner.Event) { s.progressed(j, told, e) }, OnDrift: s.drifted, OnObject: func(_, bundle string, r apply.ObjectResult) { s.dealtWith(j, bundle, r) }, OnCare: func(name string, conditions []gardencorev1beta1.Condition) {
			s.do(func() { s.cared(name, conditions) })
		}}, CurrentAt: s.currentAt(j.revision.Commit),
		Take: landscape.Takeover{ForceHint: func(r apply.Ref) string {
			return fmt.Sprintf("give it the annotation %s: \"true\" in Git", conventions.Keys().ForceConflicts)
		}},
	}
	if s.tools.engine == nil || s.tools.engineForces != l.Config.Spec.ForceConflicts {
		s.tools.engine, s.tools.engineForces = landscape.NewEngine(l, options), l.Config.Spec.ForceConflicts
	}
	options.Connect.Engine, j.engine = s.tools.engine, s.tools.engine
	if j.converger, err = landscape.New(l, options); err != nil {
		return invalid("revision %s: %s", revision, err)
	}
	return nil
}

// isPrepared starts the prepared job, or records why it failed.
func (s *syncer) isPrepared(p *preparation, ready *job, err error) {
	if s.jobs.preparing != p {
		ready.discard()
		return
	}
	s.jobs.preparing = nil
	p.cancel()
	if err == nil && !ready.outdated(&s.status.now) && !s.noteTried(ready.revision) {
		ready.discard()
		err = fmt.Errorf("nothing of %s is applied, because it cannot be noted in the status that it is tried", ready.revision.Revision())
	}
	switch {
	case err != nil && p.purpose.isFormer() && s.jobs.active == nil:
		s.cannotKeep(p.commit, err, s.parts.role.Clock.Now())
	case err != nil && p.purpose == purposeKept && s.jobs.last.commitAt != p.commitAt: // by goOn
		s.jobs.active.tries.note([]string{err.Error()}, s.parts.role.Clock.Now())
	case err != nil:
		s.refused(p, err)
	case ready.outdated(&s.status.now):
		ready.discard()
		s.prepare(p.commit, p.trigger, p.purpose)
	default:
		s.start(p, ready)
	}
}

// refused records a revision that cannot be applied. The applied one stays.
func (s *syncer) refused(p *preparation, err error) {
	now := s.parts.role.Clock.Now()
	revision := s.revisionOf(p.commit)
	s.jobs.last = outcome{commitAt: p.commitAt, revision: revision, head: p.head, spec: p.spec, failures: s.failuresOf(p.commitAt), ended: now}
	switch {
	case isInvalid(err):
		s.jobs.last.validErr, s.jobs.last.windows = err, p.windows
	case source.ReasonOf(err) != "":
		s.jobs.last.fetchErr, s.jobs.last.permanent, s.jobs.last.secrets = err, source.IsPermanent(err), s.origin.remote.secrets
	default:
		s.jobs.last.problems, s.jobs.last.permanent = []string{err.Error()}, source.IsPermanent(err)
	}
	if s.status.refused(landscapev1alpha1.SyncRecord{Revision: revision, Trigger: p.trigger, StartTime: metav1.NewTime(now)}, err.Error(), isInvalid(err)) {
		s.notify(notification.Failed, notification.Warning, reasonOf(err), err.Error(), p.commit, revision)
	}
	s.status.errors([]string{err.Error()})
	s.status.operation(gardencorev1beta1.LastOperationStateError, 0, err.Error())
	s.parts.metrics.synced(s.key, landscapev1alpha1.SyncFailed, 0)
	s.hub.tell(p.commit, receiver.Progress{Time: now, Phase: receiver.PhaseFailed, Done: true, Err: err.Error()})
}

// puller stores the charts of Extensions in the cache directory.
func (s *syncer) puller() *charts.Puller {
	if s.tools.charts == nil {
		s.tools.charts = &charts.Puller{Clock: s.parts.role.Clock}
		if s.parts.role.CacheDir != "" {
			s.tools.charts.Dir = filepath.Join(s.parts.role.CacheDir, "charts", s.key.Namespace, s.key.Name)
		}
	}
	return s.tools.charts
}
