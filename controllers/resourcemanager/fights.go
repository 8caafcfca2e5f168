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
	// window is over which the changes of an object by others are counted.
	window = time.Minute
	// fighting is from how many of them on somebody works against us: a person who tries something
	// changes it back once or twice.
	fighting = 5
	// firstPause and longestPause bound how long an object is then left as the other one wants it.
	firstPause, longestPause = 2 * time.Second, 5 * time.Minute
)

// fights counts who changes objects back, so that two controllers do not write an object all day
// without anybody knowing.
type fights struct {
	clock clock.PassiveClock

	mu      sync.Mutex
	objects map[types.NamespacedName]map[apply.Ref]*fight
}

// fight is about one object.
type fight struct {
	times  []time.Time // of the last changes, at most as many as are counted
	who    string
	what   string
	rounds int // since it counts as one
	pause  time.Duration
}

// seen notes a change of an object by somebody else. It tells how long to leave it alone; begins is
// true when that is the first time.
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
	// else it is known that it happened, and not more than before
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

// over drops what has been quiet for long, and tells how many objects of a ManagedResource are
// still fought over.
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

// forget drops a ManagedResource that is gone.
func (f *fights) forget(key types.NamespacedName) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.objects, key)
}

// told is the reason and the message for a ManagedResource of which an object is fought over; empty
// when none is.
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

// whoOf names the managers that own now what was ours.
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

// shownFields is how many fields a message names.
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
