package faults

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// noticed is the maximum time to detect a dead connection: client-go pings after 30 seconds of
// silence, and waits 15 seconds for the answer.
const noticed = 90 * time.Second

// TestHalfOpenConnections: a connection dies silently while the process waits or works.
func TestHalfOpenConnections(t *testing.T) {
	for name, frozenAt := range map[string]int{"while it waits": 0, "while it makes": 4, "while it changes": 3} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, through := newWorld(t, 8*time.Minute), newWire(t)
			p := w.start("seed", func(s *setup) { s.config, s.cluster.RequestTimeout = through.config(), 3*time.Second })
			frozen := 0
			freeze := func() { frozen = through.freeze() }
			if name == "while it makes" {
				p.at(frozenAt, freeze)
			}
			w.declare("thing", "seed", w.before())
			w.settledWithin(noticed)
			if name == "while it waits" {
				freeze()
			}
			if name == "while it changes" {
				p.at(frozenAt, freeze)
			}
			w.may(w.objects(old, fixedAt(1))...)
			w.drift()
			w.declare("thing", "seed", w.after())
			w.settledWithin(noticed)
			assert.Positive(t, frozen, "no connection was open")
			p.use(nil)
			w.withdraw("thing")
			w.settledWithin(noticed)
		})
	}
}

// TestSlowConnection delays all traffic.
func TestSlowConnection(t *testing.T) {
	w, through := newWorld(t, 8*time.Minute), newWire(t)
	through.slow(150 * time.Millisecond)
	w.start("seed", func(s *setup) { s.config = through.config() })
	w.declare("thing", "seed", append(w.before(), w.configMaps(40, "1")...))
	w.settledWithin(2 * deadline)
	w.may(w.objects(old, fixedAt(1))...)
	w.declare("thing", "seed", append(w.after(), w.configMaps(40, "2")...))
	w.settledWithin(2 * deadline)
	w.withdraw("thing")
	w.settledWithin(2 * deadline)
}
