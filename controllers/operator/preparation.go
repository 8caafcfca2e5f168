// SPDX-License-Identifier: Apache-2.0

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
	// purposeApply means that the source has it, or the pin names it.
	purposeApply purpose = iota
	// purposeReapply means that it was applied before, and the source cannot be polled for another
	// one.
	purposeReapply
	// purposeMaintain means that it was applied before, and is only maintained.
	purposeMaintain
)

// isForAppliedRevision reports whether the revision was applied before.
func (p purpose) isForAppliedRevision() bool { return p != purposeApply }

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
	commitPath
	attempt
	// windowsDigest is the digest of the object's windows during the read.
	windowsDigest string
	cancel        context.CancelFunc
}

// isOutdated reports whether another revision was attempted or applied since the review, which then
// compares with other ones.
func (j *job) isOutdated(now *landscapev1alpha1.LandscapeStatus) bool {
	at := j.revision.commitPath()
	return j.permissions.review != nil && j.permissions.review.ID != reviewID(reviewBases(now, at), at)
}

// closeUnused closes an unused job.
func (j *job) closeUnused() {
	if j != nil {
		j.converger.Close()
	}
}

// startPreparation starts to read a revision. The current one stays maintained meanwhile.
func (s *landscapeReconciler) startPreparation(commit, trigger string, purpose purpose) {
	s.cancelPreparation()
	s.cancelWaitingValidation()
	ctx, cancel := context.WithCancel(s.lifetime.ctx)
	object, head, remote := s.object, s.sourceAccess.head, s.sourceAccess.remote
	if purpose.isForAppliedRevision() {
		object = s.maintainedObject()
	}
	object = object.DeepCopy()
	p := &preparation{commitPath: commitPath{commit: commit, folder: folderOf(object)}, attempt: attempt{trigger: trigger, purpose: purpose, spec: specOf(object)},
		windowsDigest: jsonDigest(object.Spec.Windows), cancel: cancel}
	s.jobs.preparation = p
	s.copyStatusTo(object)
	fetch := remote.Fetch
	if !purpose.isForAppliedRevision() && object.Spec.Pin == nil {
		p.head = head
	}
	switch {
	case purpose.isForAppliedRevision():
		head, fetch = parseAppliedHead(s.maintainedRevision(), commit), remote.fetchCommit
	case object.Spec.Pin != nil:
		head, fetch = source.Head{Commit: commit}, remote.fetchCommit
	case head.Name == "":
		fetch = remote.fetchCommit
	}
	with := s.newRevisionReader(object, purpose)
	if !purpose.isForAppliedRevision() {
		s.broadcaster.endSuperseded(commit, receiver.Progress{Time: s.operator.role.Clock.Now(), Message: commit + " is synced instead"})
	}
	s.broadcaster.broadcast(commit, receiver.Progress{Time: s.operator.role.Clock.Now(), Phase: receiver.PhaseFetching, Message: "fetching " + commit})
	s.lifetime.background.Go(func() {
		var ready *job
		err := s.catchPanic(func() error {
			snapshot, err := fetch(ctx, head)
			if err == nil {
				ready, err = s.makeJob(ctx, with, snapshot)
			}
			return err
		})
		select {
		case s.callbacks <- func() { s.finishPreparation(p, ready, err) }:
		case <-s.lifetime.ctx.Done():
			ready.closeUnused()
		}
	})
}

// cancelPreparation cancels the preparation, which is obsolete.
func (s *landscapeReconciler) cancelPreparation() {
	if s.jobs.preparation != nil {
		s.jobs.preparation.cancel()
		s.jobs.preparation = nil
	}
}

// newRevisionReader returns the input for reading a revision, without the keys.
func (s *landscapeReconciler) newRevisionReader(object *landscapev1alpha1.Landscape, purpose purpose) *revisionReader {
	out := &revisionReader{catalogue: s.operator.role.Catalogue, evaluator: s.operator.role.Evaluator, validationCache: s.operator.validationCacheOf(s.key), object: object, remote: s.sourceAccess.remote, purpose: purpose, loadedBases: map[commitPath]*landscapes.Landscape{}}
	if s.jobs.activeJob != nil {
		out.activeRevision = s.jobs.activeJob.revision
	}
	return out
}

// readRevision reads and validates a revision in the background. Only one uncancelled read runs at
// a time.
func (s *landscapeReconciler) readRevision(ctx context.Context, with *revisionReader, snapshot *source.Snapshot) (r *revision, err error) {
	if with.identities, err = s.operator.secretReaderOf(with.object).ageIdentities(ctx, with.object.Spec.Decryption); err != nil {
		return nil, err
	}
	// Parallel evaluation and rendering of several Landscapes would only cost memory.
	if !s.operator.renderLock.TryLock() {
		s.broadcaster.broadcast(snapshot.Commit, receiver.Progress{Time: s.operator.role.Clock.Now(), Phase: receiver.PhaseQueued, Message: "waiting until another Landscape is read"})
		s.operator.renderLock.Lock()
	}
	defer s.operator.renderLock.Unlock()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	with.now = s.operator.role.Clock.Now()
	if r, err = with.read(ctx, snapshot); err != nil {
		return nil, err
	}
	return r, checkDecrypted(with.object, r)
}

// makeJob reads a revision and creates the job that applies it.
func (s *landscapeReconciler) makeJob(ctx context.Context, with *revisionReader, snapshot *source.Snapshot) (*job, error) {
	s.broadcaster.broadcast(snapshot.Commit, receiver.Progress{Time: s.operator.role.Clock.Now(), Phase: receiver.PhaseValidating, Message: fmt.Sprintf("validating %s %q", snapshot.Revision(), snapshot.Subject)})
	r, err := s.readRevision(ctx, with, snapshot)
	if err != nil {
		return nil, err
	}
	s.operator.renderLock.Lock()
	defer s.operator.renderLock.Unlock()
	if ctx.Err() != nil { // the next preparation may have other connections already
		return nil, ctx.Err()
	}
	object := with.object
	j := &job{revision: r, permissions: jobPermissions{approved: object.Spec.Approved}, isApplying: true, control: jobControl{done: make(chan struct{}), repeatTriggers: make(chan string, 1)}}
	if isReviewRequired(&object.Spec, &r.landscape.Config.Spec) {
		if j.permissions.review, err = with.reviewChanges(ctx, r); err != nil {
			return nil, err
		}
	}
	if err := s.makeConverger(ctx, object, j); err != nil {
		return nil, err
	}
	return j, nil
}

// makeConverger creates the converger of a job.
func (s *landscapeReconciler) makeConverger(ctx context.Context, object *landscapev1alpha1.Landscape, j *job) error {
	l, revision := j.revision.landscape, j.revision.Revision()
	gate, err := landscape.DeletionGate(l, operatorApprovals(object, object.Status.UsedApprovals).ActiveIDs())
	if err != nil {
		return newInvalidError("revision %s: %s", revision, err)
	}
	if err := s.shared.clusters.connectChanged(ctx, s.operator.role.Config, landscape.NewWriteFence(s.operator.hasLease), s.operator.secretReaderOf(object), object, apply.ClusterOptions{Clock: s.operator.role.Clock}); err != nil {
		return err
	}
	told := &reportedSteps{}
	gate.Ledger = func(id string, _ []change.Ref) bool { return s.useApproval(j, id) }
	options := landscape.Options{
		Catalogue:   s.operator.role.Catalogue,
		Shared:      landscape.SharedState{Charts: s.chartPuller(), RenderCache: &s.shared.renderCache, TokenRequester: s.shared.tokens, PermitMemory: &s.shared.permitMemory},
		Connections: landscape.Connections{Clusters: s.shared.clusters.byName(), OutsideCluster: s.operator.role.OutsideCluster, Leases: s.operator.ownLeases()},
		Clock:       s.operator.role.Clock,
		Process:     landscape.ProcessIdentity{Holder: s.operator.role.Holder, RetriesFailures: true, Version: s.operator.role.Version},
		OnlyGarden:  true, SkipRenderCheck: true,
		Timing:  landscape.Timing{Thresholds: landscape.ConditionThresholds(l)},
		Permits: landscape.Permits{Gate: gate, Reviewed: j.permissions.review, DisplayedID: s.shownApproval},
		Listeners: landscape.Listeners{OnEvent: func(e owner.Event) { s.reportStep(j, told, e) }, OnDrift: s.reportDrift, OnObject: func(_, bundle string, r apply.ObjectResult) { s.recordObjectResult(j, bundle, r) }, OnHealth: func(name string, conditions []gardencorev1beta1.Condition) {
			s.enqueue(func() { s.recordOwnerConditions(name, conditions) })
		}}, FilesConfirmedAt: s.newestTimeOf(j.revision.Commit),
		Takeover: landscape.Takeover{ForceHint: func(r apply.Ref) string {
			return fmt.Sprintf("give it the annotation %s: \"true\" in Git", conventions.ManagedResourceKeys().ForceConflicts)
		}},
	}
	if s.shared.engine == nil || s.shared.engineForces != l.Config.Spec.ForceConflicts {
		s.shared.engine, s.shared.engineForces = landscape.NewEngine(l, options), l.Config.Spec.ForceConflicts
	}
	options.Connections.Engine, j.engine = s.shared.engine, s.shared.engine
	if j.converger, err = landscape.New(l, options); err != nil {
		return newInvalidError("revision %s: %s", revision, err)
	}
	return nil
}

// finishPreparation starts the prepared job, or records why it failed.
func (s *landscapeReconciler) finishPreparation(p *preparation, ready *job, err error) {
	if s.jobs.preparation != p {
		ready.closeUnused()
		return
	}
	s.jobs.preparation = nil
	p.cancel()
	if err == nil && !ready.isOutdated(&s.status.desired) && !s.recordTried(ready.revision) {
		ready.closeUnused()
		err = fmt.Errorf("revision %s is not applied, because the attempt cannot be recorded in the status", ready.revision.Revision())
	}
	switch {
	case err != nil && p.purpose.isForAppliedRevision() && s.jobs.activeJob == nil:
		s.recordMaintainFailure(p.commit, err, s.operator.role.Clock.Now())
	case err != nil && p.purpose == purposeMaintain && s.jobs.lastOutcome.commitPath != p.commitPath:
		// by retryPartial
		s.jobs.activeJob.failedAttempts.record([]string{err.Error()}, s.operator.role.Clock.Now())
	case err != nil:
		s.rejectRevision(p, err)
	case ready.isOutdated(&s.status.desired):
		ready.closeUnused()
		s.startPreparation(p.commit, p.trigger, p.purpose)
	default:
		s.startJob(p, ready)
	}
}

// rejectRevision records a revision that cannot be applied. The applied one stays.
func (s *landscapeReconciler) rejectRevision(p *preparation, err error) {
	now := s.operator.role.Clock.Now()
	revision := s.sourceRevisionOf(p.commit)
	s.jobs.lastOutcome = syncOutcome{commitPath: p.commitPath, revision: revision, head: p.head, spec: p.spec, failures: s.failuresInRow(p.commitPath), endedAt: now}
	switch {
	case isInvalid(err):
		s.jobs.lastOutcome.validErr, s.jobs.lastOutcome.windowsDigest = err, p.windowsDigest
	case source.ReasonOf(err) != "":
		s.jobs.lastOutcome.fetchErr, s.jobs.lastOutcome.isPermanent, s.jobs.lastOutcome.secretsDigest = err, source.IsPermanent(err), s.sourceAccess.remote.secretsDigest
	default:
		s.jobs.lastOutcome.problems, s.jobs.lastOutcome.isPermanent = []string{err.Error()}, source.IsPermanent(err)
	}
	if s.status.recordRejection(landscapev1alpha1.SyncRecord{Revision: revision, Trigger: p.trigger, StartTime: metav1.NewTime(now)}, err.Error(), isInvalid(err)) {
		s.notify(notification.Failed, notification.Warning, reasonOf(err), err.Error(), p.commit, revision)
	}
	s.status.setErrors([]string{err.Error()})
	s.status.setOperation(gardencorev1beta1.LastOperationStateError, 0, err.Error())
	s.operator.metrics.countSync(s.key, landscapev1alpha1.SyncFailed, 0)
	s.broadcaster.broadcast(p.commit, receiver.Progress{Time: now, Phase: receiver.PhaseFailed, Done: true, Err: err.Error()})
}

// chartPuller stores the charts of Extensions in the cache directory.
func (s *landscapeReconciler) chartPuller() *charts.Puller {
	if s.shared.charts == nil {
		s.shared.charts = &charts.Puller{Clock: s.operator.role.Clock}
		if s.operator.role.CacheDir != "" {
			s.shared.charts.Dir = filepath.Join(s.operator.role.CacheDir, "charts", s.key.Namespace, s.key.Name)
		}
	}
	return s.shared.charts
}
