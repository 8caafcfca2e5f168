// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// waitForNoWrites waits until processes have written nothing for a while, and returns their number
// of writes.
func (w *testEnvironment) waitForNoWrites(processes ...*engineProcess) int {
	w.Helper()
	count := func() (n int) {
		for _, p := range processes {
			n += len(p.writesSoFar())
		}
		return n
	}
	last, since := count(), time.Now()
	w.waitUntilCorrect(stateTimeout, func() []string {
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

// TestTwoEnginesOfOneClass: two engines of one class without a lease neither conflict nor lose
// anything.
func TestTwoEnginesOfOneClass(t *testing.T) {
	w := newWorld(t, 5*time.Minute)
	one := w.startEngine("seed")
	w.declareResource("thing", "seed", w.initialObjects())
	w.requireCorrectState()
	alone := w.waitForNoWrites(one)
	w.allowDeletion(w.objects(removedObject, immutableObjectAt(1))...)
	w.declareResource("thing", "seed", w.changedObjects())
	w.requireCorrectState()
	changed := w.waitForNoWrites(one) - alone
	w.allowDeletion(w.changedObjects()...)
	w.deleteResource("thing")
	w.requireCorrectState()
	withdrawn := w.waitForNoWrites(one) - changed - alone

	other := w.startEngine("seed")
	w.allowedDeletions = map[string]bool{}
	w.transports = nil // deletions so far were right
	before := w.waitForNoWrites(one, other)
	w.declareResource("thing", "seed", w.initialObjects())
	w.requireCorrectState()
	now := w.waitForNoWrites(one, other)
	t.Logf("made: one engine writes %d times, two %d", alone, now-before)
	assert.LessOrEqual(t, now-before, 3*alone)
	w.requireCorrectState()

	w.allowDeletion(w.objects(removedObject, immutableObjectAt(1))...)
	w.declareResource("thing", "seed", w.changedObjects())
	w.requireCorrectState()
	before, now = now, w.waitForNoWrites(one, other)
	t.Logf("changed: one engine writes %d times, two %d", changed, now-before)
	assert.LessOrEqual(t, now-before, 3*changed)
	w.requireCorrectState()

	w.patch(w.object(settingsAt(2)), "{data: {a: other}}")
	w.requireCorrectState()
	before, now = now, w.waitForNoWrites(one, other)
	t.Logf("drift: two write %d times", now-before)
	assert.LessOrEqual(t, now-before, 10)

	w.deleteResource("thing")
	w.requireCorrectState()
	before, now = now, w.waitForNoWrites(one, other)
	t.Logf("withdrawn: one engine writes %d times, two %d", withdrawn, now-before)
	assert.LessOrEqual(t, now-before, 3*withdrawn)
}
