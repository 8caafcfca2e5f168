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

// followed is a Seed or Shoot that a sync has written, or a Seed for which it has published
// something: its gardenlet is at work now.
type followed struct {
	ref apply.Ref
	// digest is that of the publication that the gardenlet of a Seed has to take up; empty where
	// the object itself was written only.
	digest string
	// written says that the object itself was written, which its gardenlet has to reconcile.
	written bool
}

// settleIn is how long a gardenlet may take to look at a publication: what it says of a problem
// before is about the former one.
const settleIn = 15 * time.Second

// wrote notes what a sync has written of what gardenlets look after. It is called by many
// goroutines.
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

// published notes what was published for a seed, if that is news to its gardenlet.
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

// takePublished gives the seeds for which something was published since the last time.
func (j *job) takePublished() []string {
	j.pending.mu.Lock()
	defer j.pending.mu.Unlock()
	out := j.pending.publishedFor
	j.pending.publishedFor = nil
	slices.Sort(out)
	return out
}

// publishedText says what was published for which seeds; empty for none.
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

// awaits adds what gardenlets are to be waited for; of a Seed that is there twice the publication
// counts, which comes last.
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

// takeWritten gives what was written since the last time.
func (j *job) takeWritten() []*followed {
	j.pending.mu.Lock()
	defer j.pending.mu.Unlock()
	out := j.pending.written
	j.pending.written = nil
	slices.SortFunc(out, func(a, b *followed) int { return strings.Compare(a.ref.String(), b.ref.String()) })
	return out
}

// looksAfter tells whether a Seed ever had a gardenlet that would take something up.
func looksAfter(ctx context.Context, virtual *apply.Cluster, ref apply.Ref) bool {
	live, err := virtual.Get(ctx, ref)
	if err != nil {
		return !apierrors.IsNotFound(err)
	}
	return hasGardenlet(live)
}

// await begins to wait for what gardenlets make of what was written; false if there is nothing to
// wait for. Of two syncs of one revision the second one takes over what the first one waits for,
// and what did not go well: that is looked at anew.
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

// forgetGardenlets ends the wait of a sync that another one takes the place of.
func (s *syncer) forgetGardenlets() {
	if s.found.gardenlets != nil {
		s.found.gardenlets.cancel()
		s.found.gardenlets = nil
	}
}

// wait goes on until gardenlets have done what a sync asks of them. left and text belong to the
// goroutine of the syncer.
type wait struct {
	s *syncer
	j *job
	// message is how the sync itself ended.
	message string
	began   time.Time
	limit   time.Duration
	virtual *apply.Cluster
	cancel  context.CancelFunc
	// left is what is waited for, and what did not go well: whoever takes the place of this wait
	// looks at it, too. text says to those who look at the Landscape what is waited for.
	left []*followed
	text string

	// told is what was said last of each owner, news the last of it that is not in text; failed is
	// what went wrong.
	told   map[string]string
	news   string
	failed []string
	// notes are added to how the sync ended.
	notes []string
	// unwell is what failed and notes are about.
	unwell []*followed
	seeds  seedsKnown
}

// seedsKnown are the seeds of a wait, and who works on them.
type seedsKnown struct {
	// gone are seeds, by name, whose gardenlets do not work, and why, and seedless those without a
	// Seed, as found at asked. mute is since when a gardenlet that works was not found to say what
	// it has taken up.
	gone     map[string]string
	seedless map[string]bool
	asked    time.Time
	mute     map[string]time.Time
	// fresh are seeds, by name, of which something is done: what is in memory of their reports may
	// be older than that.
	fresh map[string]bool
}

func (w *wait) line(text string) {
	w.s.hub.tell(w.j.revision.Commit, receiver.Progress{Time: w.s.parts.role.Clock.Now(), Phase: receiver.PhaseWaiting, Message: text})
}

// say tells news of an owner once.
func (w *wait) say(name, text string) {
	if text == "" || w.told[name] == text {
		return
	}
	w.told[name], w.news = text, name+": "+text
	w.line(w.news)
}

// note adds to how the sync ends, and tells it.
func (w *wait) note(f *followed, text string) {
	w.unwell, w.notes = append(w.unwell, f), append(w.notes, nameOf(f.ref)+": "+text)
	w.say(nameOf(f.ref), text)
}

// waitsFor says what is waited for.
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

// nameOf is how an owner is named in progress, as in the reports of gardenlets.
func nameOf(ref apply.Ref) string {
	if ref.Namespace != "" {
		return ref.Kind + " " + ref.Namespace + "/" + ref.Name
	}
	return ref.Kind + " " + ref.Name
}

// run looks at what is in memory until all is done: the virtual garden is asked at the end only,
// once for each seed of which something was done.
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

// look tells what is new, and gives what is not done.
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

// following says whether all that follows a Seed that is reconciled has been converged with it. Its
// gardenlet writes the report first, and then that the Seed is reconciled.
func following(live *unstructured.Unstructured, done string) (state gardencorev1beta1.LastOperationState, text string) {
	if r := seedpublication.ReadReport(live); r != nil {
		// the Shoots wait for it
		if name := nameOf(apply.RefOf(live)); slices.Contains(r.Failing, name) {
			return gardencorev1beta1.LastOperationStateError, joined("its gardenlet reports that it cannot do all of it, and tries again; its log says why", done)
		}
		if n := len(r.Converging) + r.ConvergingMore; n > 0 {
			return gardencorev1beta1.LastOperationStateProcessing, fmt.Sprintf("%d to reconcile with it: %s", n, firstOf(r.Converging, n))
		}
	}
	return gardencorev1beta1.LastOperationStateSucceeded, done
}

// refresh reads the reports of those seeds anew: a gardenlet writes the report, and then that a
// Shoot is reconciled, but the one may be known here before the other. Of a Seed that cannot be
// read the one in memory counts.
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

// takenUp says how far the gardenlet of a Seed is with what was published for it.
func (w *wait) takenUp(ctx context.Context, live *unstructured.Unstructured, f *followed) (state gardencorev1beta1.LastOperationState, text string) {
	r := seedpublication.ReadReport(live)
	if !hasGardenlet(live) {
		// nobody who reconciles it takes anything up
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
		// That of one that waits for its turn is of the time before.
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

// refOfOwner reads a name of a report.
func refOfOwner(name string) apply.Ref {
	out := refOf(name)
	out.APIVersion = gardencorev1beta1.SchemeGroupVersion.String()
	return out
}

// seedCondition is one of a Seed, nil if it has none.
func seedCondition(live *unstructured.Unstructured, kind gardencorev1beta1.ConditionType) *gardencorev1beta1.Condition {
	// of another form there are none
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

// gardenletsDone is the end of a sync: whoever follows it is told, and the history.
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

// recordSeeds adds to the record of a sync what came of it on seeds.
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

// endsAs is how a sync that went well ends: something may be held, here or on seeds.
func (s *syncer) endsAs(message string) (phase, text string) {
	if s.jobs.last.open.held == 0 && len(s.found.onSeeds) == 0 {
		return receiver.PhaseApplied, message
	}
	return receiver.PhaseHeld, joined(message, heldOnSeedsText(s.found.onSeeds)) + s.toApprove()
}

// lookAgain is how long to wait before objects are looked at again: a second for a few. Thousands,
// as the first sync of a landscape writes them, are looked at less often: each look copies every
// object, and it may go on for as long as a sync may take.
func lookAgain(objects int) time.Duration {
	return time.Second + time.Duration(objects)*10*time.Millisecond
}

// operationOf is the last operation of an object as far as it is about its present generation.
func operationOf(live *unstructured.Unstructured) (gardencorev1beta1.LastOperationState, string) {
	// of another form it is 0
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
