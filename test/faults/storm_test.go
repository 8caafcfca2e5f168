// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"net/http"
	"testing"
	"time"
)

// TestErrorStorms: many requests fail for a while.
func TestErrorStorms(t *testing.T) {
	for name, fates := range map[string][]requestFault{
		"429":                         {{statusCode: 429, retryAfter: 1}, {statusCode: 429}},
		"500 and 503":                 {{statusCode: 500}, {statusCode: 503}, {statusCode: 503, retryAfter: 1}},
		"504 and the work goes on":    {{statusCode: 504, isAnswerLost: true}, {statusCode: 500, isAnswerLost: true}},
		"all of it, and lost answers": {{statusCode: 429}, {statusCode: 500}, {statusCode: 503, isAnswerLost: true}, {statusCode: 504}, {isAnswerLost: true}, {isUnsent: true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			draw := newRand(t)
			w := newWorld(t, 5*time.Minute)
			storm := func(requests int) func(*http.Request) requestFault {
				over := time.Now().Add(10 * time.Second)
				return func(*http.Request) requestFault {
					if requests--; requests >= 0 && draw.Float64() < 0.25 && time.Now().Before(over) {
						return fates[draw.IntN(len(fates))]
					}
					return requestFault{}
				}
			}
			w.declareResource("thing", "seed", append(w.initialObjects(), w.configMaps(30, "1")...))
			l := &transport{}
			l.setFaults(storm(200))
			p := w.startEngine("seed", func(s *processOptions) { s.line = l })
			w.requireCorrectState()

			p.setFaults(storm(150))
			w.allowDeletion(w.objects(removedObject, immutableObjectAt(1))...)
			w.allowDeletion(w.configMaps(30, "")[20:]...)
			w.declareResource("thing", "seed", append(w.changedObjects(), w.configMaps(20, "2")...))
			w.requireCorrectState()

			p.setFaults(storm(100))
			w.deleteResource("thing")
			w.requireCorrectState()
		})
	}
}

// TestWatchesExpire: for a while, every second watch fails as expired.
func TestWatchesExpire(t *testing.T) {
	draw := newRand(t)
	w := newWorld(t, 5*time.Minute)
	w.declareResource("thing", "seed", w.initialObjects())
	l, left := &transport{}, 60
	l.setFaults(func(req *http.Request) requestFault {
		if isWatch(req) && left > 0 && draw.Float64() < 0.5 {
			left--
			return requestFault{statusCode: http.StatusGone}
		}
		return requestFault{}
	})
	p := w.startEngine("seed", func(s *processOptions) { s.line = l })
	w.requireCorrectState()
	p.closeWatches()
	w.allowDeletion(w.objects(removedObject, immutableObjectAt(1))...)
	w.declareResource("thing", "seed", w.changedObjects())
	w.requireCorrectState()
	w.deleteResource("thing")
	w.requireCorrectState()
}
