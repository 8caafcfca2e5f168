// SPDX-License-Identifier: Apache-2.0

package resourcemanager

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/internal/backoff"
)

const (
	// conflictWindow is the period in which changes of an object by others are counted.
	conflictWindow = time.Minute
	// conflictThreshold is the number of changes that counts as a fight: a person who tries
	// something changes an object back once or twice.
	conflictThreshold = 5
	// minRepairPause and maxRepairPause bound the pause before the next repair in a fight.
	minRepairPause, maxRepairPause = 2 * time.Second, 5 * time.Minute
)

// writeConflicts detects objects that others keep changing back, so that two controllers do not
// overwrite each other unnoticed.
type writeConflicts struct {
	clock clock.PassiveClock

	mu      sync.Mutex
	objects map[types.NamespacedName]map[apply.Ref]*writeConflict
}

// writeConflict records the changes of one object by others.
type writeConflict struct {
	changeTimes     []time.Time // recent changes
	managers        string
	change          string
	conflictChanges int // changes since it counts as a fight
	repairPause     time.Duration
}

// recordChange records a change of an object by someone else. It returns the pause before the
// repair; begins is true for the first change that counts as a fight.
func (f *writeConflicts) recordChange(key types.NamespacedName, d apply.DriftEvent) (pause time.Duration, begins bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	of := f.objects[key]
	if of == nil {
		of = map[apply.Ref]*writeConflict{}
		f.objects[key] = of
	}
	one := of[d.Ref]
	if one == nil {
		one = &writeConflict{}
		of[d.Ref] = one
	}
	now := f.clock.Now()
	one.changeTimes = append(slices.DeleteFunc(one.changeTimes, func(t time.Time) bool { return now.Sub(t) > conflictWindow+one.repairPause*conflictThreshold }), now)
	// an event without details does not replace the details of an earlier one
	if d.Deleted || len(d.Fields) > 0 || one.managers == "" {
		one.managers, one.change = changingManagers(d), describeChange(d)
	}
	if len(one.changeTimes) < conflictThreshold {
		one.conflictChanges, one.repairPause = 0, 0
		return 0, false
	}
	one.conflictChanges++
	one.repairPause = backoff.Delay(one.conflictChanges, minRepairPause, maxRepairPause)
	return one.repairPause, one.conflictChanges == 1
}

// dropEndedConflicts drops fights that have ended and returns how many objects of a ManagedResource
// are still fought over.
func (f *writeConflicts) dropEndedConflicts(key types.NamespacedName) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	now, left := f.clock.Now(), 0
	for ref, one := range f.objects[key] {
		switch last := one.changeTimes[len(one.changeTimes)-1]; {
		case now.Sub(last) > conflictWindow+one.repairPause:
			delete(f.objects[key], ref)
		case one.conflictChanges > 0:
			left++
		}
	}
	if len(f.objects[key]) == 0 {
		delete(f.objects, key)
	}
	return left
}

// remove drops a deleted ManagedResource.
func (f *writeConflicts) remove(key types.NamespacedName) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.objects, key)
}

// describe returns the reason and the message about fights of a ManagedResource; both are empty
// without a fight.
func (f *writeConflicts) describe(namespace, name string) (reason, message string) {
	key := types.NamespacedName{Namespace: namespace, Name: name}
	if f.dropEndedConflicts(key) == 0 {
		return "", ""
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	var said []string
	for ref, one := range f.objects[key] {
		if one.conflictChanges == 0 {
			continue
		}
		text := fmt.Sprintf("%s: %s %s repeatedly (%d times or more within %s); it is repaired after %s",
			ref, one.managers, one.change, conflictThreshold, conflictWindow, one.repairPause)
		if said = append(said, text); reason == "" || ref.Kind+"Contested" < reason {
			reason = ref.Kind + "Contested"
		}
	}
	slices.Sort(said)
	return reason, strings.Join(said, "; ") + ". Stop one of the two writers."
}

// changingManagers returns the managers that now own our former fields.
func changingManagers(d apply.DriftEvent) string {
	var who []string
	for _, field := range d.Fields {
		if field.Manager != "" && !slices.Contains(who, field.Manager) {
			who = append(who, field.Manager)
		}
	}
	if slices.Sort(who); len(who) > 0 {
		return strings.Join(who, ", ")
	}
	return "somebody"
}

// maxShownFields is the number of fields that a message names.
const maxShownFields = 5

func describeChange(d apply.DriftEvent) string {
	if d.Deleted {
		return "deletes it"
	}
	var what []string
	for _, field := range d.Fields {
		what = append(what, field.Path)
	}
	if slices.Sort(what); len(what) > maxShownFields {
		what = append(what[:maxShownFields], "…")
	}
	if len(what) == 0 {
		return "changes it"
	}
	return "changes " + strings.Join(what, ", ")
}
