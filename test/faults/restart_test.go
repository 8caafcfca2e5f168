package faults

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/pergola-dev/pergola/hack/speeds"
)

// TestAPIServerRestarts creates, changes and deletes a ManagedResource during restarts.
func TestAPIServerRestarts(t *testing.T) {
	draw := chance(t)
	w := newWorld(t, 8*time.Minute)
	p := w.start("seed")
	stages := []func(){
		func() { w.declare("thing", "seed", append(w.before(), w.configMaps(100, "1")...)) },
		func() {
			w.may(w.objects(old, fixedAt(1))...)
			w.may(w.configMaps(100, "")[50:]...)
			w.declare("thing", "seed", append(w.after(), w.configMaps(50, "2")...))
		},
		func() { w.withdraw("thing") },
	}
	for i, stage := range stages {
		if !speeds.Has(t, fmt.Sprint("stage ", i+1)) {
			stage()
			w.settled()
			continue
		}
		now := p.at(1+draw.IntN(50), func() {})
		stage()
		w.await(now)
		suite.restart(t)
		w.settled()
	}
}

// TestCompactedHistory: the history no longer has events that a process missed.
func TestCompactedHistory(t *testing.T) {
	w := newWorld(t, 8*time.Minute)
	w.declare("thing", "seed", w.before())
	p := w.start("seed")
	w.settled()

	p.use(func(req *http.Request) fate { return fate{unreached: isWatch(req)} })
	p.hangUp()
	w.drift()
	suite.compact(t)
	suite.restart(t) // the API server loses its cached history, too
	before := p.expiries()
	p.use(nil)
	w.settled()
	assert.Greater(t, p.expiries(), before, "no watch was told that it is too late")

	p.use(func(req *http.Request) fate { return fate{unreached: isWatch(req)} })
	p.hangUp()
	w.may(w.objects(old, fixedAt(1))...)
	w.declare("thing", "seed", w.after())
	suite.compact(t)
	suite.restart(t)
	p.use(nil)
	w.settled()
	w.withdraw("thing")
	w.settled()
}
