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
	// window is the period in which changes of an object by others are counted.
	window = time.Minute
	// fighting is the number of changes that counts as a fight: a person who tries something
	// changes an object back once or twice.
	fighting = 5
	// firstPause and longestPause bound the pause before the next repair in a fight.
	firstPause, longestPause = 2 * time.Second, 5 * time.Minute
)

// fights detects objects that others keep changing back, so that two controllers do not overwrite
// each other unnoticed.
type fights struct {
	clock clock.PassiveClock

	mu      sync.Mutex
	objects map[types.NamespacedName]map[apply.Ref]*fight
}

// fight records the changes of one object by others.
type fight struct {
	times  []time.Time // recent changes
	who    string
	what   string
	rounds int // changes since it counts as a fight
	pause  time.Duration
}

// seen records a change of an object by somebody else. It returns the pause before the repair;
// begins is true for the first change that counts as a fight.
func (f *fights) seen(key types.NamespacedName, d apply.DriftEvent) (pause time.Duration, begins bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	of := f.objects[key]
	if of == nil {
		of = map[apply.Ref]*fight{}
		f.objects[key] = of
	}
	one := of[d.Ref]
	if one == nil {
		one = &fight{}
		of[d.Ref] = one
	}
	now := f.clock.Now()
	one.times = append(slices.DeleteFunc(one.times, func(t time.Time) bool { return now.Sub(t) > window+one.pause*fighting }), now)
	// an event without details does not replace the details of an earlier one
	if d.Deleted || len(d.Fields) > 0 || one.who == "" {
		one.who, one.what = whoOf(d), whatOf(d)
	}
	if len(one.times) < fighting {
		one.rounds, one.pause = 0, 0
		return 0, false
	}
	one.rounds++
	one.pause = backoff.After(one.rounds, firstPause, longestPause)
	return one.pause, one.rounds == 1
}

// over drops fights that have ended and returns how many objects of a ManagedResource are still
// fought over.
func (f *fights) over(key types.NamespacedName) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	now, left := f.clock.Now(), 0
	for ref, one := range f.objects[key] {
		switch last := one.times[len(one.times)-1]; {
		case now.Sub(last) > window+one.pause:
			delete(f.objects[key], ref)
		case one.rounds > 0:
			left++
		}
	}
	if len(f.objects[key]) == 0 {
		delete(f.objects, key)
	}
	return left
}

// forget drops a deleted ManagedResource.
func (f *fights) forget(key types.NamespacedName) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.objects, key)
}

// told returns the reason and the message about fights of a ManagedResource; both are empty without
// a fight.
func (f *fights) told(namespace, name string) (reason, message string) {
	key := types.NamespacedName{Namespace: namespace, Name: name}
	if f.over(key) == 0 {
		return "", ""
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	var said []string
	for ref, one := range f.objects[key] {
		if one.rounds == 0 {
			continue
		}
		text := fmt.Sprintf("%s: %s %s again and again (%d times or more within %s); it is repaired after %s",
			ref, one.who, one.what, fighting, window, one.pause)
		if said = append(said, text); reason == "" || ref.Kind+"Contested" < reason {
			reason = ref.Kind + "Contested"
		}
	}
	slices.Sort(said)
	return reason, strings.Join(said, "; ") + ". Let one of the two give it up."
}

// whoOf returns the managers that now own our former fields.
func whoOf(d apply.DriftEvent) string {
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

// shownFields is the number of fields that a message names.
const shownFields = 5

func whatOf(d apply.DriftEvent) string {
	if d.Deleted {
		return "deletes it"
	}
	var what []string
	for _, field := range d.Fields {
		what = append(what, field.Path)
	}
	if slices.Sort(what); len(what) > shownFields {
		what = append(what[:shownFields], "…")
	}
	if len(what) == 0 {
		return "changes it"
	}
	return "changes " + strings.Join(what, ", ")
}
