// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/pergola-dev/pergola/hack/testselection"
)

// TestAPIServerRestarts creates, changes and deletes a ManagedResource during restarts.
func TestAPIServerRestarts(t *testing.T) {
	draw := newRand(t)
	w := newWorld(t, 8*time.Minute)
	p := w.startEngine("seed")
	stages := []func(){
		func() { w.declareResource("thing", "seed", append(w.initialObjects(), w.configMaps(100, "1")...)) },
		func() {
			w.allowDeletion(w.objects(removedObject, immutableObjectAt(1))...)
			w.allowDeletion(w.configMaps(100, "")[50:]...)
			w.declareResource("thing", "seed", append(w.changedObjects(), w.configMaps(50, "2")...))
		},
		func() { w.deleteResource("thing") },
	}
	for i, stage := range stages {
		if !testselection.HasPart(t, fmt.Sprint("stage ", i+1)) {
			stage()
			w.requireCorrectState()
			continue
		}
		now := p.callAt(1+draw.IntN(50), func() {})
		stage()
		w.waitForChannel(now)
		suite.restart(t)
		w.requireCorrectState()
	}
}

// TestCompactedHistory: the history no longer has events that a process missed.
func TestCompactedHistory(t *testing.T) {
	w := newWorld(t, 8*time.Minute)
	w.declareResource("thing", "seed", w.initialObjects())
	p := w.startEngine("seed")
	w.requireCorrectState()

	p.setFaults(func(req *http.Request) requestFault { return requestFault{isUnsent: isWatch(req)} })
	p.closeWatches()
	w.changeLiveObjects()
	suite.compactHistory(t)
	suite.restart(t) // the API server loses its cached history, too
	before := p.expiryCount()
	p.setFaults(nil)
	w.requireCorrectState()
	assert.Greater(t, p.expiryCount(), before, "no watch was told that it is too late")

	p.setFaults(func(req *http.Request) requestFault { return requestFault{isUnsent: isWatch(req)} })
	p.closeWatches()
	w.allowDeletion(w.objects(removedObject, immutableObjectAt(1))...)
	w.declareResource("thing", "seed", w.changedObjects())
	suite.compactHistory(t)
	suite.restart(t)
	p.setFaults(nil)
	w.requireCorrectState()
	w.deleteResource("thing")
	w.requireCorrectState()
}
