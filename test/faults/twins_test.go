package faults

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// quiet waits until processes have written nothing for a while, and returns their number of writes.
func (w *world) quiet(processes ...*process) int {
	w.Helper()
	count := func() (n int) {
		for _, p := range processes {
			n += len(p.writes())
		}
		return n
	}
	last, since := count(), time.Now()
	w.until(deadline, func() []string {
		if now := count(); now != last {
			last, since = now, time.Now()
		}
		if time.Since(since) < 2*time.Second {
			return []string{"they write on and on"}
		}
		return nil
	})
	return last
}

// TestTwoEngines: two engines of one class without a lease neither conflict nor lose anything.
func TestTwoEngines(t *testing.T) {
	w := newWorld(t, 5*time.Minute)
	one := w.start("seed")
	w.declare("thing", "seed", w.before())
	w.settled()
	alone := w.quiet(one)
	w.may(w.objects(old, fixedAt(1))...)
	w.declare("thing", "seed", w.after())
	w.settled()
	changed := w.quiet(one) - alone
	w.may(w.after()...)
	w.withdraw("thing")
	w.settled()
	withdrawn := w.quiet(one) - changed - alone

	other := w.start("seed")
	w.mayDelete = map[string]bool{}
	w.lines = nil // deletions so far were right
	before := w.quiet(one, other)
	w.declare("thing", "seed", w.before())
	w.settled()
	now := w.quiet(one, other)
	t.Logf("made: one engine writes %d times, two %d", alone, now-before)
	assert.LessOrEqual(t, now-before, 3*alone)
	w.settled()

	w.may(w.objects(old, fixedAt(1))...)
	w.declare("thing", "seed", w.after())
	w.settled()
	before, now = now, w.quiet(one, other)
	t.Logf("changed: one engine writes %d times, two %d", changed, now-before)
	assert.LessOrEqual(t, now-before, 3*changed)
	w.settled()

	w.patch(w.object(settingsAt(2)), "{data: {a: other}}")
	w.settled()
	before, now = now, w.quiet(one, other)
	t.Logf("drift: two write %d times", now-before)
	assert.LessOrEqual(t, now-before, 10)

	w.withdraw("thing")
	w.settled()
	before, now = now, w.quiet(one, other)
	t.Logf("withdrawn: one engine writes %d times, two %d", withdrawn, now-before)
	assert.LessOrEqual(t, now-before, 3*withdrawn)
}
