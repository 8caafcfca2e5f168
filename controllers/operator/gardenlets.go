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

// followed is a Seed or Shoot that a sync changed, or a Seed that it published for: its gardenlet
// has work now.
type followed struct {
	ref apply.Ref
	// digest identifies the publication that the gardenlet of a Seed has to use; empty if only the
	// object changed.
	digest string
	// written means that the object itself changed, so that its gardenlet has to reconcile it.
	written bool
}

// settleIn is the time a gardenlet has to read a publication. Until then it reports problems of the
// previous one.
const settleIn = 15 * time.Second

// wrote records a changed Seed or Shoot. Many goroutines call it.
func (j *job) wrote(r apply.ObjectResult) {
	gk := r.Ref.GVK().GroupKind()
	if gk.Group != gardencorev1beta1.SchemeGroupVersion.Group || gk.Kind != "Seed" && gk.Kind != "Shoot" {
		return
	}
	switch r.Action {
	case apply.Created, apply.Configured, apply.Adopted:
		j.awaits(&followed{ref: r.Ref, written: true})
	}
}

// published records a publication for a seed if it changed something.
func (j *job) published(seed string, o seedpublication.Outcome) {
	if o.Changed == 0 {
		return
	}
	j.awaits(&followed{ref: seedRef(seed), digest: o.Digest})
	j.pending.mu.Lock()
	defer j.pending.mu.Unlock()
	if !slices.Contains(j.pending.publishedFor, seed) {
		j.pending.publishedFor = append(j.pending.publishedFor, seed)
	}
}

// takePublished returns the seeds that the sync published for since the last call.
func (j *job) takePublished() []string {
	j.pending.mu.Lock()
	defer j.pending.mu.Unlock()
	out := j.pending.publishedFor
	j.pending.publishedFor = nil
	slices.Sort(out)
	return out
}

// publishedText names the seeds that the sync published for; empty for none.
func publishedText(seeds []string) string {
	switch n := len(seeds); {
	case n == 0:
		return ""
	case n == 1:
		return "settings and overlays were published for the gardenlet of seed " + seeds[0]
	default:
		return "settings and overlays were published for the gardenlets of seeds " + firstOf(seeds, n)
	}
}

// awaits adds Seeds and Shoots to wait for. For a Seed that is added twice the publication counts,
// which comes last.
func (j *job) awaits(more ...*followed) {
	j.pending.mu.Lock()
	defer j.pending.mu.Unlock()
	for _, f := range more {
		i := slices.IndexFunc(j.pending.written, func(o *followed) bool { return o.ref == f.ref })
		switch {
		case i < 0:
			j.pending.written = append(j.pending.written, f)
		case f.digest != "":
			f.written = f.written || j.pending.written[i].written
			j.pending.written[i] = f
		case f.written:
			j.pending.written[i].written = true
		}
	}
}

// takeWritten returns the followed objects since the last call.
func (j *job) takeWritten() []*followed {
	j.pending.mu.Lock()
	defer j.pending.mu.Unlock()
	out := j.pending.written
	j.pending.written = nil
	slices.SortFunc(out, func(a, b *followed) int { return strings.Compare(a.ref.String(), b.ref.String()) })
	return out
}

// looksAfter reports whether a gardenlet ever reconciled a Seed.
func looksAfter(ctx context.Context, virtual *apply.Cluster, ref apply.Ref) bool {
	live, err := virtual.Get(ctx, ref)
	if err != nil {
		return !apierrors.IsNotFound(err)
	}
	return hasGardenlet(live)
}

// await starts to wait for the gardenlets of the written objects; false if there is nothing to wait
// for. A second sync of a revision also takes over the pending and failed objects of the first, and
// checks them again.
func (s *syncer) await(ctx context.Context, j *job, limit time.Duration, written []*followed, message string) bool {
	virtual := j.converger.Cluster(landscape.Virtual)
	if virtual != nil {
		written = slices.DeleteFunc(written, func(f *followed) bool { return !f.written && !looksAfter(ctx, virtual, f.ref) })
	}
	if virtual == nil || len(written) == 0 {
		return s.found.gardenlets != nil
	}
	if former := s.found.gardenlets; former != nil {
		j.awaits(former.left...)
		j.awaits(written...)
		written = j.takeWritten()
		former.cancel()
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	w := &wait{s: s, j: j, message: message, began: s.parts.role.Clock.Now(), limit: limit, virtual: virtual, told: map[string]string{}, seeds: seedsKnown{mute: map[string]time.Time{}, fresh: map[string]bool{}}, left: written, cancel: cancel}
	w.text = w.waitsFor(ctx, written)
	s.found.gardenlets = w
	w.line(message + "; " + w.text)
	s.life.background.Go(func() {
		defer cancel()
		w.run(ctx, written)
	})
	return true
}

// forgetGardenlets ends the wait of a sync that another one replaces.
func (s *syncer) forgetGardenlets() {
	if s.found.gardenlets != nil {
		s.found.gardenlets.cancel()
		s.found.gardenlets = nil
	}
}

// wait waits until the gardenlets have done their part of a sync. left and text belong to the
// syncer's goroutine.
type wait struct {
	s *syncer
	j *job
	// message is the result of the sync itself.
	message string
	began   time.Time
	limit   time.Duration
	virtual *apply.Cluster
	cancel  context.CancelFunc
	// left are the pending and failed objects, which a replacement of this wait takes over. text
	// describes the pending ones for the status.
	left []*followed
	text string

	// told is the last line per owner, news the newest one of all for text; failed are the errors.
	told   map[string]string
	news   string
	failed []string
	// notes are appended to the result of the sync.
	notes []string
	// unwell are the objects that failed and notes describe.
	unwell []*followed
	seeds  seedsKnown
}

// seedsKnown is the state of the seeds of a wait and of their gardenlets.
type seedsKnown struct {
	// gone maps a seed's name to the reason why its gardenlet does not work, and seedless has names
	// without a Seed, both as of asked. mute is since when a working gardenlet lacks a report.
	gone     map[string]string
	seedless map[string]bool
	asked    time.Time
	mute     map[string]time.Time
	// fresh are names of seeds with finished work. Their cached reports may be older than that.
	fresh map[string]bool
}

func (w *wait) line(text string) {
	w.s.hub.tell(w.j.revision.Commit, receiver.Progress{Time: w.s.parts.role.Clock.Now(), Phase: receiver.PhaseWaiting, Message: text})
}

// say reports news of an owner once.
func (w *wait) say(name, text string) {
	if text == "" || w.told[name] == text {
		return
	}
	w.told[name], w.news = text, name+": "+text
	w.line(w.news)
}

// note appends to the result of the sync, and reports it.
func (w *wait) note(f *followed, text string) {
	w.unwell, w.notes = append(w.unwell, f), append(w.notes, nameOf(f.ref)+": "+text)
	w.say(nameOf(f.ref), text)
}

// waitsFor describes the objects that the wait is for.
func (w *wait) waitsFor(ctx context.Context, left []*followed) string {
	var out []string
	for i, f := range left {
		if i == shownProblems && len(left) > shownProblems+1 {
			out = append(out, fmt.Sprintf("and %d more", len(left)-i))
			break
		}
		name := nameOf(f.ref)
		if live, err := w.virtual.Get(ctx, f.ref); err == nil {
			switch seed := seedOf(live); {
			case seed == "":
				name += ", which has no seed yet"
			case f.ref.Kind == "Shoot":
				name += " on seed " + seed
			case !hasGardenlet(live):
				name += ", which no gardenlet looks after yet"
			}
		}
		out = append(out, name)
	}
	return "waiting for the gardenlets: " + strings.Join(out, ", ")
}

// nameOf returns an owner's name in progress lines and in the reports of gardenlets.
func nameOf(ref apply.Ref) string {
	if ref.Namespace != "" {
		return ref.Kind + " " + ref.Namespace + "/" + ref.Name
	}
	return ref.Kind + " " + ref.Name
}

// run polls the cache until all is done. It queries the virtual garden only at the end, once for
// each seed with finished work.
func (w *wait) run(ctx context.Context, left []*followed) {
	s := w.s
	timer := s.parts.role.Clock.NewTimer(lookAgain(len(left)))
	defer timer.Stop()
	for len(left) > 0 {
		select {
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				w.failed = append(w.failed, fmt.Sprintf("not done after %s (spec.timeout), and it goes on: %s", w.limit, w.waitsFor(s.life.alive, left)))
				s.do(func() { s.gardenletsDone(w, nil, false) })
			}
			return
		case <-timer.C():
		}
		left = w.look(ctx, left)
		rest, text := slices.Concat(left, w.unwell), joined(w.news, w.waitsFor(ctx, left))
		s.do(func() { w.left, w.text = rest, text })
		timer.Reset(lookAgain(len(left)))
	}
	reports, known := w.j.reports(ctx)
	w.refresh(ctx, reports)
	s.do(func() { s.gardenletsDone(w, heldIn(reports), known) })
}

// look reports news, and returns the objects that are not done.
func (w *wait) look(ctx context.Context, left []*followed) (rest []*followed) {
	w.askForSilence(ctx, left)
	inVain := map[string][]string{}
	defer func() { w.giveUp(inVain) }()
	for _, f := range left {
		live, err := w.virtual.Get(ctx, f.ref)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			rest = append(rest, f)
			continue
		}
		state, text := operationOf(live)
		if f.written && !hasEnded(state) {
			if why := w.notWaitedFor(live); why != "" {
				w.note(f, why+": it is not waited for")
				if f = withoutWriting(f); f == nil {
					continue
				}
			}
		}
		if f.digest != "" && (!f.written || state == gardencorev1beta1.LastOperationStateSucceeded) {
			state, text = w.takenUp(ctx, live, f)
		}
		if f.digest == "" && f.ref.Kind == "Seed" && state == gardencorev1beta1.LastOperationStateSucceeded {
			if state, text = following(live, text); state == gardencorev1beta1.LastOperationStateSucceeded {
				w.noteFailing(f, live)
			}
		}
		if seed := seedOf(live); w.seeds.gone[seed] != "" && state != gardencorev1beta1.LastOperationStateSucceeded {
			inVain[seed] = append(inVain[seed], nameOf(f.ref))
			w.unwell = append(w.unwell, f)
			continue
		}
		w.say(nameOf(f.ref), text)
		switch state {
		case gardencorev1beta1.LastOperationStateSucceeded:
			w.seeds.fresh[seedOf(live)] = true
		case gardencorev1beta1.LastOperationStateError, gardencorev1beta1.LastOperationStateFailed, gardencorev1beta1.LastOperationStateAborted:
			w.unwell, w.failed = append(w.unwell, f), append(w.failed, nameOf(f.ref)+": "+text)
		default:
			rest = append(rest, f)
		}
	}
	return rest
}

// following returns the state of the owners that are reconciled after a Seed. Its gardenlet writes
// the report before it marks the Seed as reconciled.
func following(live *unstructured.Unstructured, done string) (state gardencorev1beta1.LastOperationState, text string) {
	if r := seedpublication.ReadReport(live); r != nil {
		// The Shoots wait for the Seed.
		if name := nameOf(apply.RefOf(live)); slices.Contains(r.Failing, name) {
			return gardencorev1beta1.LastOperationStateError, joined("its gardenlet reports that it cannot do all of it, and tries again; its log says why", done)
		}
		if n := len(r.Converging) + r.ConvergingMore; n > 0 {
			return gardencorev1beta1.LastOperationStateProcessing, fmt.Sprintf("%d to reconcile with it: %s", n, firstOf(r.Converging, n))
		}
	}
	return gardencorev1beta1.LastOperationStateSucceeded, done
}

// refresh reads the reports of fresh seeds from the API server. The gardenlet writes the report
// before a Shoot's status, but the cache may see them in another order. The cached report of an
// unreadable Seed counts.
func (w *wait) refresh(ctx context.Context, reports map[string]*seedpublication.Report) {
	for seed := range w.seeds.fresh {
		if _, ours := reports[seed]; !ours {
			continue
		}
		if live, err := w.virtual.GetLive(ctx, seedRef(seed)); err == nil {
			reports[seed] = reportOf(live)
		}
	}
}

// takenUp returns how far the gardenlet of a Seed is with its publication.
func (w *wait) takenUp(ctx context.Context, live *unstructured.Unstructured, f *followed) (state gardencorev1beta1.LastOperationState, text string) {
	r := seedpublication.ReadReport(live)
	if !hasGardenlet(live) {
		// Without a gardenlet nothing uses the publication.
		return gardencorev1beta1.LastOperationStateSucceeded, ""
	}
	if r == nil && w.isMute(live.GetName()) {
		text = "its gardenlet does not say what it has taken up, as those of older versions do not: it is not waited for"
		if why := seedpublication.UnreadReport(live); why != "" {
			text = why + "; it is not waited for"
		}
		w.note(f, text)
		return gardencorev1beta1.LastOperationStateSucceeded, text
	}
	if r == nil || r.Digest != f.digest {
		if c := seedCondition(live, seedpublication.ConditionSettings); c != nil && c.Status == gardencorev1beta1.ConditionFalse && w.s.parts.role.Clock.Since(w.began) > settleIn {
			return gardencorev1beta1.LastOperationStateError, printable.Line(shortened(c.Message))
		}
		return gardencorev1beta1.LastOperationStatePending, ""
	}
	var problems []string
	for _, name := range slices.Concat(r.Converging, r.Failing) {
		state, operation := gardencorev1beta1.LastOperationStatePending, ""
		if o, err := w.virtual.Get(ctx, refOfOwner(name)); err == nil {
			state, operation = operationOf(o)
		}
		// The operation of a queued owner predates the publication.
		if name != nameOf(f.ref) && slices.Contains(r.Converging, name) && state != gardencorev1beta1.LastOperationStateSucceeded {
			w.say(name, operation)
		}
		if slices.Contains(r.Failing, name) {
			problems = append(problems, joined(name, operation))
		}
	}
	n := len(r.Converging) + r.ConvergingMore
	switch {
	case slices.Contains(r.Failing, nameOf(f.ref)): // the Shoots wait for it
		return gardencorev1beta1.LastOperationStateError, listed(problems)
	case n > 0:
		return gardencorev1beta1.LastOperationStateProcessing, fmt.Sprintf("%d to reconcile with what was published: %s", n, firstOf(r.Converging, n))
	case len(problems) > 0:
		return gardencorev1beta1.LastOperationStateError, listed(problems)
	}
	return gardencorev1beta1.LastOperationStateSucceeded, "what was published is in use"
}

// firstOf names some of n owners.
func firstOf(names []string, n int) string {
	names = names[:min(len(names), shownProblems)]
	if more := n - len(names); more > 0 {
		names = append(slices.Clone(names), fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, ", ")
}

// refOfOwner parses an owner's name of a report.
func refOfOwner(name string) apply.Ref {
	out := refOf(name)
	out.APIVersion = gardencorev1beta1.SchemeGroupVersion.String()
	return out
}

// seedCondition returns a condition of a Seed, nil if it has none.
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

// gardenletsDone ends a sync: it informs the followers and completes the history.
func (s *syncer) gardenletsDone(w *wait, held []landscapev1alpha1.HeldDeletion, known bool) {
	if s.found.gardenlets != w {
		return
	}
	s.found.gardenlets = nil
	if known {
		s.seesHeld(held)
	}
	s.recordSeeds(w.j.revision.Revision(), listed(w.failed), w.notes...)
	phase, message := s.endsAs(joined(w.message, listed(w.notes)))
	done := receiver.Progress{Time: s.parts.role.Clock.Now(), Phase: phase, Message: message, Done: true}
	if len(w.failed) > 0 {
		done.Phase, done.Err, done.Applied = receiver.PhaseFailed, listed(w.failed), true
	}
	s.hub.tell(w.j.revision.Commit, done)
}

// recordSeeds adds the results on seeds to the record of a sync.
func (s *syncer) recordSeeds(revision, failed string, notes ...string) {
	if h := s.status.now.History; len(h) > 0 && h[0].Revision == revision && h[0].EndTime != nil {
		h[0].Gardenlets = shortened(failed)
		if len(notes) > 0 {
			h[0].Message = shortened(joined(h[0].Message, listed(notes)))
		}
		if text := heldOnSeedsText(s.found.onSeeds); text != "" && h[0].Result == landscapev1alpha1.SyncSucceeded {
			h[0].Result, h[0].Message = landscapev1alpha1.SyncHeld, shortened(joined(h[0].Message, text))
		}
	}
}

// endsAs returns how a successful sync ends: something may be held, here or on seeds.
func (s *syncer) endsAs(message string) (phase, text string) {
	if s.jobs.last.open.held == 0 && len(s.found.onSeeds) == 0 {
		return receiver.PhaseApplied, message
	}
	return receiver.PhaseHeld, joined(message, heldOnSeedsText(s.found.onSeeds)) + s.toApprove()
}

// lookAgain returns the interval of polls: about a second for a few objects. A first sync waits for
// thousands, possibly until spec.timeout, and each poll copies every object, so it polls less
// often.
func lookAgain(objects int) time.Duration {
	return time.Second + time.Duration(objects)*10*time.Millisecond
}

// operationOf returns the last operation for the current generation; else pending.
func operationOf(live *unstructured.Unstructured) (gardencorev1beta1.LastOperationState, string) {
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
	return gardencorev1beta1.LastOperationState(state), printable.Line(shortened(fmt.Sprintf("%s (%d%%): %s", state, progress, description)))
}
