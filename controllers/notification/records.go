package notification

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
)

// Rate limit of Kubernetes events per Landscape: a burst, then one per eventEvery.
const (
	eventBurst = 25
	eventEvery = 30 * time.Second
)

// records writes Kubernetes events.
type records struct {
	recorder events.EventRecorder
	clock    clock.PassiveClock
	repeat   time.Duration
	metrics  *metrics
	mu       sync.Mutex
	by       map[types.NamespacedName]*recorded
}

type recorded struct {
	told *memory
	pace *rate.Limiter
}

func newRecords(recorder events.EventRecorder, c clock.PassiveClock, repeat time.Duration, m *metrics) *records {
	return &records{recorder: recorder, clock: c, repeat: repeat, metrics: m, by: map[types.NamespacedName]*recorded{}}
}

// record hands an event to the recorder, whose queue does not block.
func (r *records) record(e Event) {
	if r.recorder == nil {
		return
	}
	r.mu.Lock()
	of := r.by[e.Landscape]
	if of == nil {
		of = &recorded{told: newMemory(rememberedOld), pace: rate.NewLimiter(rate.Every(eventEvery), eventBurst)}
		r.by[e.Landscape] = of
	}
	message := e.Revision + " " + string(e.Phase) + " " + e.Reason + " " + e.Message
	due := of.told.due(message, e.At, r.repeat)
	allowed := due && of.pace.AllowN(r.clock.Now(), 1)
	if due && !allowed {
		of.told.drop(message, "")
	}
	r.mu.Unlock()
	switch {
	case !due:
		r.metrics.count(typeEvent, repeated)
		return
	case !allowed:
		r.metrics.count(typeEvent, dropped)
		return
	}
	kind := corev1.EventTypeNormal
	if e.Severity == Warning {
		kind = corev1.EventTypeWarning
	}
	reason := e.Reason
	if reason == "" {
		reason = string(e.Phase)
	}
	regarding := &corev1.ObjectReference{
		APIVersion: landscapev1alpha1.SchemeGroupVersion.String(), Kind: "Landscape",
		Namespace: e.Landscape.Namespace, Name: e.Landscape.Name, UID: e.UID,
	}
	text := cut(e.Message, 1024)
	r.recorder.Eventf(regarding, nil, kind, reason, action(text), "%s", text)
	r.metrics.count(typeEvent, sent)
}

// action returns an action per text. Kubernetes' recorder merges events with the same action and
// reason within a few minutes into one with the first text.
func action(text string) string {
	digest := sha256.Sum256([]byte(text))
	return "Sync " + hex.EncodeToString(digest[:4])
}

func (r *records) forget(landscape types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.by, landscape)
}

func sortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }
