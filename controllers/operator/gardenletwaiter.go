// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/landscape"
	"github.com/pergola-dev/pergola/controllers/seedpublication"
	"github.com/pergola-dev/pergola/internal/printable"
	"github.com/pergola-dev/pergola/source/receiver"
)

// awaitedOwner is a Seed or Shoot that a sync changed, or a Seed that it published for: its
// gardenlet has work now.
type awaitedOwner struct {
	ref apply.Ref
	// publicationDigest identifies the publication that the gardenlet of a Seed has to use; it is
	// empty if only the object changed.
	publicationDigest string
	// isChanged means that the object itself changed, so its gardenlet has to reconcile it.
	isChanged bool
}

// publicationGracePeriod is the time a gardenlet has to read a publication. Until then it reports
// problems of the previous one.
const publicationGracePeriod = 15 * time.Second

// recordChangedOwner records a changed Seed or Shoot. Many goroutines call it.
func (j *job) recordChangedOwner(r apply.ObjectResult) {
	gk := r.Ref.GVK().GroupKind()
	if gk.Group != gardencorev1beta1.SchemeGroupVersion.Group || gk.Kind != "Seed" && gk.Kind != "Shoot" {
		return
	}
	switch r.Action {
	case apply.Created, apply.Configured, apply.Adopted:
		j.addAwaitedOwners(&awaitedOwner{ref: r.Ref, isChanged: true})
	}
}

// recordPublication records a publication for a seed if it changed something.
func (j *job) recordPublication(seed string, o seedpublication.PublishResult) {
	if o.ChangedObjects == 0 {
		return
	}
	j.addAwaitedOwners(&awaitedOwner{ref: seedRef(seed), publicationDigest: o.Digest})
	j.pendingSeeds.mu.Lock()
	defer j.pendingSeeds.mu.Unlock()
	if !slices.Contains(j.pendingSeeds.publishedSeeds, seed) {
		j.pendingSeeds.publishedSeeds = append(j.pendingSeeds.publishedSeeds, seed)
	}
}

// takePublishedSeeds returns the seeds that the sync published for since the last call.
func (j *job) takePublishedSeeds() []string {
	j.pendingSeeds.mu.Lock()
	defer j.pendingSeeds.mu.Unlock()
	out := j.pendingSeeds.publishedSeeds
	j.pendingSeeds.publishedSeeds = nil
	slices.Sort(out)
	return out
}

// publishedText names the seeds that the sync published for; it is empty for none.
func publishedText(seeds []string) string {
	switch n := len(seeds); {
	case n == 0:
		return ""
	case n == 1:
		return "settings and overlays were published for the gardenlet of seed " + seeds[0]
	default:
		return "settings and overlays were published for the gardenlets of seeds " + firstNames(seeds, n)
	}
}

// addAwaitedOwners adds Seeds and Shoots to wait for. For a Seed that is added twice the
// publication counts, which comes last.
func (j *job) addAwaitedOwners(more ...*awaitedOwner) {
	j.pendingSeeds.mu.Lock()
	defer j.pendingSeeds.mu.Unlock()
	for _, f := range more {
		i := slices.IndexFunc(j.pendingSeeds.changedOwners, func(o *awaitedOwner) bool { return o.ref == f.ref })
		switch {
		case i < 0:
			j.pendingSeeds.changedOwners = append(j.pendingSeeds.changedOwners, f)
		case f.publicationDigest != "":
			f.isChanged = f.isChanged || j.pendingSeeds.changedOwners[i].isChanged
			j.pendingSeeds.changedOwners[i] = f
		case f.isChanged:
			j.pendingSeeds.changedOwners[i].isChanged = true
		}
	}
}

// takeAwaitedOwners returns the followed objects since the last call.
func (j *job) takeAwaitedOwners() []*awaitedOwner {
	j.pendingSeeds.mu.Lock()
	defer j.pendingSeeds.mu.Unlock()
	out := j.pendingSeeds.changedOwners
	j.pendingSeeds.changedOwners = nil
	slices.SortFunc(out, func(a, b *awaitedOwner) int { return strings.Compare(a.ref.String(), b.ref.String()) })
	return out
}

// hasHadGardenlet reports whether a gardenlet ever reconciled a Seed.
func hasHadGardenlet(ctx context.Context, virtual *apply.Cluster, ref apply.Ref) bool {
	live, err := virtual.Get(ctx, ref)
	if err != nil {
		return !apierrors.IsNotFound(err)
	}
	return hasGardenlet(live)
}

// waitForGardenlets starts to wait for the gardenlets of the written objects; the result is false
// if there is nothing to wait for. A second sync of a revision also takes over the pending and
// failed objects of the first, and checks them again.
func (s *landscapeReconciler) waitForGardenlets(ctx context.Context, j *job, limit time.Duration, written []*awaitedOwner, message string) bool {
	virtual := j.converger.Cluster(landscape.Virtual)
	if virtual != nil {
		written = slices.DeleteFunc(written, func(f *awaitedOwner) bool { return !f.isChanged && !hasHadGardenlet(ctx, virtual, f.ref) })
	}
	if virtual == nil || len(written) == 0 {
		return s.findings.gardenletWaiter != nil
	}
	if former := s.findings.gardenletWaiter; former != nil {
		j.addAwaitedOwners(former.remaining...)
		j.addAwaitedOwners(written...)
		written = j.takeAwaitedOwners()
		former.cancel()
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	w := &gardenletWaiter{reconciler: s, job: j, syncMessage: message, startedAt: s.operator.role.Clock.Now(), timeout: limit, virtual: virtual, lastLines: map[string]string{}, seedStates: seedStates{noReportSince: map[string]time.Time{}, finished: map[string]bool{}}, remaining: written, cancel: cancel}
	w.waitText = w.describeWait(ctx, written)
	s.findings.gardenletWaiter = w
	w.broadcastLine(message + "; " + w.waitText)
	s.lifetime.background.Go(func() {
		defer cancel()
		w.waitUntilDone(ctx, written)
	})
	return true
}

// cancelGardenletWait ends the wait of a sync that another one replaces.
func (s *landscapeReconciler) cancelGardenletWait() {
	if s.findings.gardenletWaiter != nil {
		s.findings.gardenletWaiter.cancel()
		s.findings.gardenletWaiter = nil
	}
}

// gardenletWaiter waits until the gardenlets have done their part of a sync. left and text belong
// to the syncer's goroutine.
type gardenletWaiter struct {
	reconciler *landscapeReconciler
	job        *job
	// syncMessage is the result of the sync itself.
	syncMessage string
	startedAt   time.Time
	timeout     time.Duration
	virtual     *apply.Cluster
	cancel      context.CancelFunc
	// remaining are the pending and failed objects, which a replacement of this wait takes over.
	// text describes the pending ones for the status.
	remaining []*awaitedOwner
	waitText  string

	// lastLines are the last lines by owner; newestLine is the newest one of all for text; failures
	// are the errors.
	lastLines  map[string]string
	newestLine string
	failures   []string
	// notes are appended to the result of the sync.
	notes []string
	// problemOwners are the objects that failed and notes describe.
	problemOwners []*awaitedOwner
	seedStates    seedStates
}

// seedStates is the state of the seeds of a wait and of their gardenlets.
type seedStates struct {
	// unavailable maps a seed's name to the reason why its gardenlet does not work, and withoutSeed
	// has names without a Seed, both as of checkedAt. noReportSince is since when a working
	// gardenlet lacks a report.
	unavailable   map[string]string
	withoutSeed   map[string]bool
	checkedAt     time.Time
	noReportSince map[string]time.Time
	// finished are names of seeds with finished work. Their cached reports may be older than that.
	finished map[string]bool
}

func (w *gardenletWaiter) broadcastLine(text string) {
	w.reconciler.broadcaster.broadcast(w.job.revision.Commit, receiver.Progress{Time: w.reconciler.operator.role.Clock.Now(), Phase: receiver.PhaseWaiting, Message: text})
}

// reportOnce reports news of an owner once.
func (w *gardenletWaiter) reportOnce(name, text string) {
	if text == "" || w.lastLines[name] == text {
		return
	}
	w.lastLines[name], w.newestLine = text, name+": "+text
	w.broadcastLine(w.newestLine)
}

// addNote appends to the result of the sync, and reports it.
func (w *gardenletWaiter) addNote(f *awaitedOwner, text string) {
	w.problemOwners, w.notes = append(w.problemOwners, f), append(w.notes, ownerName(f.ref)+": "+text)
	w.reportOnce(ownerName(f.ref), text)
}

// describeWait describes the objects that the wait is for.
func (w *gardenletWaiter) describeWait(ctx context.Context, left []*awaitedOwner) string {
	var out []string
	for i, f := range left {
		if i == maxShownProblems && len(left) > maxShownProblems+1 {
			out = append(out, fmt.Sprintf("and %d more", len(left)-i))
			break
		}
		name := ownerName(f.ref)
		if live, err := w.virtual.Get(ctx, f.ref); err == nil {
			switch seed := seedOf(live); {
			case seed == "":
				name += ", which has no seed yet"
			case f.ref.Kind == "Shoot":
				name += " on seed " + seed
			case !hasGardenlet(live):
				name += ", which has no gardenlet yet"
			}
		}
		out = append(out, name)
	}
	return "waiting for the gardenlets: " + strings.Join(out, ", ")
}

// ownerName returns an owner's name in progress lines and in the reports of gardenlets.
func ownerName(ref apply.Ref) string {
	if ref.Namespace != "" {
		return ref.Kind + " " + ref.Namespace + "/" + ref.Name
	}
	return ref.Kind + " " + ref.Name
}

// waitUntilDone polls the cache until all is done. It queries the virtual garden only at the end,
// once for each seed with finished work.
func (w *gardenletWaiter) waitUntilDone(ctx context.Context, left []*awaitedOwner) {
	s := w.reconciler
	timer := s.operator.role.Clock.NewTimer(gardenletPollInterval(len(left)))
	defer timer.Stop()
	for len(left) > 0 {
		select {
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				w.failures = append(w.failures, fmt.Sprintf("not done after %s (spec.timeout), but it continues: %s", w.timeout, w.describeWait(s.lifetime.ctx, left)))
				s.enqueue(func() { s.finishGardenletWait(w, nil, false) })
			}
			return
		case <-timer.C():
		}
		left = w.checkOwners(ctx, left)
		rest, text := slices.Concat(left, w.problemOwners), joinNonEmpty(w.newestLine, w.describeWait(ctx, left))
		s.enqueue(func() { w.remaining, w.waitText = rest, text })
		timer.Reset(gardenletPollInterval(len(left)))
	}
	reports, known := w.job.seedReports(ctx)
	w.rereadReports(ctx, reports)
	s.enqueue(func() { s.finishGardenletWait(w, heldInReports(reports), known) })
}

// checkOwners reports news, and returns the objects that are not done.
func (w *gardenletWaiter) checkOwners(ctx context.Context, left []*awaitedOwner) (rest []*awaitedOwner) {
	w.checkGardenlets(ctx, left)
	inVain := map[string][]string{}
	defer func() { w.failSeedOwners(inVain) }()
	for _, f := range left {
		live, err := w.virtual.Get(ctx, f.ref)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			rest = append(rest, f)
			continue
		}
		state, text := lastOperationOf(live)
		if f.isChanged && !hasEnded(state) {
			if why := w.skipReason(live); why != "" {
				w.addNote(f, why+"; the sync does not wait for it")
				if f = publicationOnly(f); f == nil {
					continue
				}
			}
		}
		if f.publicationDigest != "" && (!f.isChanged || state == gardencorev1beta1.LastOperationStateSucceeded) {
			state, text = w.publicationState(ctx, live, f)
		}
		if f.publicationDigest == "" && f.ref.Kind == "Seed" && state == gardencorev1beta1.LastOperationStateSucceeded {
			if state, text = followersState(live, text); state == gardencorev1beta1.LastOperationStateSucceeded {
				w.recordFailingDependents(f, live)
			}
		}
		if seed := seedOf(live); w.seedStates.unavailable[seed] != "" && state != gardencorev1beta1.LastOperationStateSucceeded {
			inVain[seed] = append(inVain[seed], ownerName(f.ref))
			w.problemOwners = append(w.problemOwners, f)
			continue
		}
		w.reportOnce(ownerName(f.ref), text)
		switch state {
		case gardencorev1beta1.LastOperationStateSucceeded:
			w.seedStates.finished[seedOf(live)] = true
		case gardencorev1beta1.LastOperationStateError, gardencorev1beta1.LastOperationStateFailed, gardencorev1beta1.LastOperationStateAborted:
			w.problemOwners, w.failures = append(w.problemOwners, f), append(w.failures, ownerName(f.ref)+": "+text)
		default:
			rest = append(rest, f)
		}
	}
	return rest
}

// followersState returns the state of the owners that are reconciled after a Seed. Its gardenlet
// writes the report before it marks the Seed as reconciled.
func followersState(live *unstructured.Unstructured, done string) (state gardencorev1beta1.LastOperationState, text string) {
	if r := seedpublication.ReadSeedReport(live); r != nil {
		// The Shoots wait for the Seed.
		if name := ownerName(apply.RefOf(live)); slices.Contains(r.Failing, name) {
			return gardencorev1beta1.LastOperationStateError, joinNonEmpty("its gardenlet reports that part of it failed, and retries; see its log", done)
		}
		if n := len(r.Converging) + r.ConvergingMore; n > 0 {
			return gardencorev1beta1.LastOperationStateProcessing, fmt.Sprintf("%d to reconcile with it: %s", n, firstNames(r.Converging, n))
		}
	}
	return gardencorev1beta1.LastOperationStateSucceeded, done
}

// rereadReports reads the reports of fresh seeds from the API server. The gardenlet writes the
// report before a Shoot's status, but the cache may see them in another order. The cached report of
// an unreadable Seed counts.
func (w *gardenletWaiter) rereadReports(ctx context.Context, reports map[string]*seedpublication.SeedReport) {
	for seed := range w.seedStates.finished {
		if _, ours := reports[seed]; !ours {
			continue
		}
		if live, err := w.virtual.GetLive(ctx, seedRef(seed)); err == nil {
			reports[seed] = seedReportOf(live)
		}
	}
}

// publicationState returns how far the gardenlet of a Seed is with its publication.
func (w *gardenletWaiter) publicationState(ctx context.Context, live *unstructured.Unstructured, f *awaitedOwner) (state gardencorev1beta1.LastOperationState, text string) {
	r := seedpublication.ReadSeedReport(live)
	if !hasGardenlet(live) {
		// Without a gardenlet nothing uses the publication.
		return gardencorev1beta1.LastOperationStateSucceeded, ""
	}
	if r == nil && w.isWithoutReport(live.GetName()) {
		text = "its gardenlet does not report which settings it uses (older versions do not); the sync does not wait for it"
		if why := seedpublication.ReportProblem(live); why != "" {
			text = why + "; the sync does not wait for it"
		}
		w.addNote(f, text)
		return gardencorev1beta1.LastOperationStateSucceeded, text
	}
	if r == nil || r.Digest != f.publicationDigest {
		if c := seedCondition(live, seedpublication.ConditionSettingsUpToDate); c != nil && c.Status == gardencorev1beta1.ConditionFalse && w.reconciler.operator.role.Clock.Since(w.startedAt) > publicationGracePeriod {
			return gardencorev1beta1.LastOperationStateError, printable.Line(truncateMessage(c.Message))
		}
		return gardencorev1beta1.LastOperationStatePending, ""
	}
	var problems []string
	for _, name := range slices.Concat(r.Converging, r.Failing) {
		state, operation := gardencorev1beta1.LastOperationStatePending, ""
		if o, err := w.virtual.Get(ctx, parseOwnerRef(name)); err == nil {
			state, operation = lastOperationOf(o)
		}
		// The operation of a queued owner predates the publication.
		if name != ownerName(f.ref) && slices.Contains(r.Converging, name) && state != gardencorev1beta1.LastOperationStateSucceeded {
			w.reportOnce(name, operation)
		}
		if slices.Contains(r.Failing, name) {
			problems = append(problems, joinNonEmpty(name, operation))
		}
	}
	n := len(r.Converging) + r.ConvergingMore
	switch {
	case slices.Contains(r.Failing, ownerName(f.ref)): // the Shoots wait for it
		return gardencorev1beta1.LastOperationStateError, joinWithLimit(problems)
	case n > 0:
		return gardencorev1beta1.LastOperationStateProcessing, fmt.Sprintf("%d to reconcile with the publication: %s", n, firstNames(r.Converging, n))
	case len(problems) > 0:
		return gardencorev1beta1.LastOperationStateError, joinWithLimit(problems)
	}
	return gardencorev1beta1.LastOperationStateSucceeded, "the publication is in use"
}

// firstNames names some of n owners.
func firstNames(names []string, n int) string {
	names = names[:min(len(names), maxShownProblems)]
	if more := n - len(names); more > 0 {
		names = append(slices.Clone(names), fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, ", ")
}

// parseOwnerRef parses an owner's name of a report.
func parseOwnerRef(name string) apply.Ref {
	out := parseObjectRef(name)
	out.APIVersion = gardencorev1beta1.SchemeGroupVersion.String()
	return out
}

// seedCondition returns a condition of a Seed, or nil if it has none.
func seedCondition(live *unstructured.Unstructured, kind gardencorev1beta1.ConditionType) *gardencorev1beta1.Condition {
	// A malformed list has no conditions.
	list, _, _ := unstructured.NestedSlice(live.Object, "status", "conditions")
	for _, item := range list {
		if c, ok := item.(map[string]any); ok && c["type"] == string(kind) {
			status, _ := c["status"].(string)
			message, _ := c["message"].(string)
			return &gardencorev1beta1.Condition{Type: kind, Status: gardencorev1beta1.ConditionStatus(status), Message: message}
		}
	}
	return nil
}

// finishGardenletWait ends a sync: it informs the followers and completes the history.
func (s *landscapeReconciler) finishGardenletWait(w *gardenletWaiter, held []landscapev1alpha1.HeldDeletion, known bool) {
	if s.findings.gardenletWaiter != w {
		return
	}
	s.findings.gardenletWaiter = nil
	if known {
		s.recordHeldOnSeeds(held)
	}
	s.recordSeedResults(w.job.revision.Revision(), joinWithLimit(w.failures), w.notes...)
	phase, message := s.finalPhase(joinNonEmpty(w.syncMessage, joinWithLimit(w.notes)))
	done := receiver.Progress{Time: s.operator.role.Clock.Now(), Phase: phase, Message: message, Done: true}
	if len(w.failures) > 0 {
		done.Phase, done.Err, done.Applied = receiver.PhaseFailed, joinWithLimit(w.failures), true
	}
	s.broadcaster.broadcast(w.job.revision.Commit, done)
}

// recordSeedResults adds the results on seeds to the record of a sync.
func (s *landscapeReconciler) recordSeedResults(revision, failed string, notes ...string) {
	if h := s.status.desired.History; len(h) > 0 && h[0].Revision == revision && h[0].EndTime != nil {
		h[0].Gardenlets = truncateMessage(failed)
		if len(notes) > 0 {
			h[0].Message = truncateMessage(joinNonEmpty(h[0].Message, joinWithLimit(notes)))
		}
		if text := heldOnSeedsText(s.findings.heldOnSeeds); text != "" && h[0].Result == landscapev1alpha1.SyncSucceeded {
			h[0].Result, h[0].Message = landscapev1alpha1.SyncHeld, truncateMessage(joinNonEmpty(h[0].Message, text))
		}
	}
}

// finalPhase returns how a successful sync ends: something may be held, here or on seeds.
func (s *landscapeReconciler) finalPhase(message string) (phase, text string) {
	if s.jobs.lastOutcome.openItems.heldCount == 0 && len(s.findings.heldOnSeeds) == 0 {
		return receiver.PhaseApplied, message
	}
	return receiver.PhaseHeld, joinNonEmpty(message, heldOnSeedsText(s.findings.heldOnSeeds)) + s.approveCommand()
}

// gardenletPollInterval returns the interval of polls: about a second for a few objects. A first
// sync waits for thousands, possibly until spec.timeout, and each poll copies every object, so it
// polls less often.
func gardenletPollInterval(objects int) time.Duration {
	return time.Second + time.Duration(objects)*10*time.Millisecond
}

// lastOperationOf returns the last operation for the current generation; else pending.
func lastOperationOf(live *unstructured.Unstructured) (gardencorev1beta1.LastOperationState, string) {
	// A malformed value counts as 0.
	observed, _, _ := unstructured.NestedInt64(live.Object, "status", "observedGeneration")
	if observed < live.GetGeneration() {
		return gardencorev1beta1.LastOperationStatePending, ""
	}
	op, _, _ := unstructured.NestedMap(live.Object, "status", "lastOperation")
	state, _ := op["state"].(string)
	description, _ := op["description"].(string)
	progress, _ := op["progress"].(int64)
	if state == "" {
		return gardencorev1beta1.LastOperationStatePending, ""
	}
	return gardencorev1beta1.LastOperationState(state), printable.Line(truncateMessage(fmt.Sprintf("%s (%d%%): %s", state, progress, description)))
}
