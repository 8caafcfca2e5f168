// SPDX-License-Identifier: Apache-2.0

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
	for name, f := range map[string]requestFault{"503": {statusCode: http.StatusServiceUnavailable}, "lost": {isAnswerLost: true}, "unreached": {isUnsent: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 5*time.Minute)
			maps := w.configMaps(10, "1")
			w.declareResource("giver", "seed", maps[:8])
			w.declareResource("taker", "seed", maps[8:])
			p := w.startEngine("seed")
			w.requireCorrectState()
			p.end()

			w.declareResource("giver", "seed", maps[:3])
			w.declareResource("taker", "seed", append([]*unstructured.Unstructured{}, maps[3:]...))
			l, left := &transport{}, 6
			l.setFaults(func(req *http.Request) requestFault {
				if strings.HasSuffix(req.URL.Path, "/secrets/data-4") && left > 0 {
					left--
					return f
				}
				return requestFault{}
			})
			w.startEngine("seed", func(s *processOptions) { s.line = l })
			w.requireCorrectStateWithin(3 * stateTimeout)
			w.allowDeletion(maps...)
			w.deleteResource("giver")
			w.deleteResource("taker")
			w.requireCorrectState()
		})
	}
}
