// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// detectionTimeout is the maximum time to detect a dead connection: client-go pings after 30
// seconds of silence, and waits 15 seconds for the answer.
const detectionTimeout = 90 * time.Second

// TestHalfOpenConnections: a connection dies silently while the process waits or works.
func TestHalfOpenConnections(t *testing.T) {
	for name, frozenAt := range map[string]int{"while it waits": 0, "while it makes": 4, "while it changes": 3} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, through := newWorld(t, 8*time.Minute), newWire(t)
			p := w.startEngine("seed", func(s *processOptions) { s.config, s.cluster.RequestTimeout = through.config(), 3*time.Second })
			frozen := 0
			freeze := func() { frozen = through.freezeAll() }
			if name == "while it makes" {
				p.callAt(frozenAt, freeze)
			}
			w.declareResource("thing", "seed", w.initialObjects())
			w.requireCorrectStateWithin(detectionTimeout)
			if name == "while it waits" {
				freeze()
			}
			if name == "while it changes" {
				p.callAt(frozenAt, freeze)
			}
			w.allowDeletion(w.objects(removedObject, immutableObjectAt(1))...)
			w.changeLiveObjects()
			w.declareResource("thing", "seed", w.changedObjects())
			w.requireCorrectStateWithin(detectionTimeout)
			assert.Positive(t, frozen, "no connection was open")
			p.setFaults(nil)
			w.deleteResource("thing")
			w.requireCorrectStateWithin(detectionTimeout)
		})
	}
}

// TestSlowConnection delays all traffic.
func TestSlowConnection(t *testing.T) {
	w, through := newWorld(t, 8*time.Minute), newWire(t)
	through.setDelay(150 * time.Millisecond)
	w.startEngine("seed", func(s *processOptions) { s.config = through.config() })
	w.declareResource("thing", "seed", append(w.initialObjects(), w.configMaps(40, "1")...))
	w.requireCorrectStateWithin(2 * stateTimeout)
	w.allowDeletion(w.objects(removedObject, immutableObjectAt(1))...)
	w.declareResource("thing", "seed", append(w.changedObjects(), w.configMaps(40, "2")...))
	w.requireCorrectStateWithin(2 * stateTimeout)
	w.deleteResource("thing")
	w.requireCorrectStateWithin(2 * stateTimeout)
}
