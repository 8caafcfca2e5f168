package faults

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestMoveWhileSecretsCannotBeRead moves an object between ManagedResources while the Secret of the
// new one cannot be read for a while. The object must not be deleted.
func TestMoveWhileSecretsCannotBeRead(t *testing.T) {
	for name, f := range map[string]fate{"503": {code: http.StatusServiceUnavailable}, "lost": {lost: true}, "unreached": {unreached: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 5*time.Minute)
			maps := w.configMaps(10, "1")
			w.declare("giver", "seed", maps[:8])
			w.declare("taker", "seed", maps[8:])
			p := w.start("seed")
			w.settled()
			p.end()

			w.declare("giver", "seed", maps[:3])
			w.declare("taker", "seed", append([]*unstructured.Unstructured{}, maps[3:]...))
			l, left := &line{}, 6
			l.use(func(req *http.Request) fate {
				if strings.HasSuffix(req.URL.Path, "/secrets/data-4") && left > 0 {
					left--
					return f
				}
				return fate{}
			})
			w.start("seed", func(s *setup) { s.line = l })
			w.settledWithin(3 * deadline)
			w.may(maps...)
			w.withdraw("giver")
			w.withdraw("taker")
			w.settled()
		})
	}
}
