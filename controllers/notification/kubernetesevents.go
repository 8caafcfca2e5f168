// SPDX-License-Identifier: Apache-2.0

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

// Rate limit of Kubernetes events per Landscape: a burst, then one per eventInterval.
const (
	eventBurst    = 25
	eventInterval = 30 * time.Second
)

// eventRecords writes Kubernetes events.
type eventRecords struct {
	recorder       events.EventRecorder
	clock          clock.PassiveClock
	repeatInterval time.Duration
	metrics        *metrics
	mu             sync.Mutex
	byLandscape    map[types.NamespacedName]*landscapeEvents
}

type landscapeEvents struct {
	sentMessages *messageMemory
	limiter      *rate.Limiter
}

func newEventRecords(recorder events.EventRecorder, c clock.PassiveClock, repeat time.Duration, m *metrics) *eventRecords {
	return &eventRecords{recorder: recorder, clock: c, repeatInterval: repeat, metrics: m, byLandscape: map[types.NamespacedName]*landscapeEvents{}}
}

// recordEvent hands an event to the recorder, whose queue does not block.
func (r *eventRecords) recordEvent(e Event) {
	if r.recorder == nil {
		return
	}
	r.mu.Lock()
	of := r.byLandscape[e.Landscape]
	if of == nil {
		of = &landscapeEvents{sentMessages: newMessageMemory(rememberedMessages), limiter: rate.NewLimiter(rate.Every(eventInterval), eventBurst)}
		r.byLandscape[e.Landscape] = of
	}
	message := e.Revision + " " + string(e.Phase) + " " + e.Reason + " " + e.Message
	due := of.sentMessages.markSent(message, e.At, r.repeatInterval)
	allowed := due && of.limiter.AllowN(r.clock.Now(), 1)
	if due && !allowed {
		of.sentMessages.forget(message, "")
	}
	r.mu.Unlock()
	switch {
	case !due:
		r.metrics.count(kubernetesEventType, resultRepeated)
		return
	case !allowed:
		r.metrics.count(kubernetesEventType, resultDropped)
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
	text := truncateText(e.Message, 1024)
	r.recorder.Eventf(regarding, nil, kind, reason, eventAction(text), "%s", text)
	r.metrics.count(kubernetesEventType, resultSent)
}

// eventAction returns an action per text. Kubernetes' recorder merges events with the same action
// and reason within a few minutes into one with the first text.
func eventAction(text string) string {
	digest := sha256.Sum256([]byte(text))
	return "Sync " + hex.EncodeToString(digest[:4])
}

func (r *eventRecords) forgetLandscape(landscape types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.byLandscape, landscape)
}

func sortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }
