package faults

import (
	"net/http"
	"testing"
	"time"
)

// TestStorms: many requests fail for a while.
func TestStorms(t *testing.T) {
	for name, fates := range map[string][]fate{
		"429":                         {{code: 429, after: 1}, {code: 429}},
		"500 and 503":                 {{code: 500}, {code: 503}, {code: 503, after: 1}},
		"504 and the work goes on":    {{code: 504, lost: true}, {code: 500, lost: true}},
		"all of it, and lost answers": {{code: 429}, {code: 500}, {code: 503, lost: true}, {code: 504}, {lost: true}, {unreached: true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			draw := chance(t)
			w := newWorld(t, 5*time.Minute)
			storm := func(requests int) func(*http.Request) fate {
				over := time.Now().Add(10 * time.Second)
				return func(*http.Request) fate {
					if requests--; requests >= 0 && draw.Float64() < 0.25 && time.Now().Before(over) {
						return fates[draw.IntN(len(fates))]
					}
					return fate{}
				}
			}
			w.declare("thing", "seed", append(w.before(), w.configMaps(30, "1")...))
			l := &line{}
			l.use(storm(200))
			p := w.start("seed", func(s *setup) { s.line = l })
			w.settled()

			p.use(storm(150))
			w.may(w.objects(old, fixedAt(1))...)
			w.may(w.configMaps(30, "")[20:]...)
			w.declare("thing", "seed", append(w.after(), w.configMaps(20, "2")...))
			w.settled()

			p.use(storm(100))
			w.withdraw("thing")
			w.settled()
		})
	}
}

// TestWatchesExpire: for a while, every second watch fails as expired.
func TestWatchesExpire(t *testing.T) {
	draw := chance(t)
	w := newWorld(t, 5*time.Minute)
	w.declare("thing", "seed", w.before())
	l, left := &line{}, 60
	l.use(func(req *http.Request) fate {
		if isWatch(req) && left > 0 && draw.Float64() < 0.5 {
			left--
			return fate{code: http.StatusGone}
		}
		return fate{}
	})
	p := w.start("seed", func(s *setup) { s.line = l })
	w.settled()
	p.hangUp()
	w.may(w.objects(old, fixedAt(1))...)
	w.declare("thing", "seed", w.after())
	w.settled()
	w.withdraw("thing")
	w.settled()
}
