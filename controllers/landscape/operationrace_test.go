// SPDX-License-Identifier: Apache-2.0

package landscape

import (
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/transport"
)

// TestOperationDuringConcurrentWrite checks that an operation is retried when someone writes the
// object between the read and the request. It fails no sync, and is requested once.
func TestOperationDuringConcurrentWrite(t *testing.T) {
	w := newFolderLandscape(t, "race", map[string]string{"race.yaml": shootFile("race")})
	w.mustSync()
	w.write("operations/one.yaml", operationFile("Shoot default/race", "reconcile"))
	between := sync.OnceFunc(func() {
		patchShoot(t, "race", "gardenlet", `{"metadata":{"annotations":{"example.com/written":"meanwhile"}}}`)
	})
	asked := 0
	w.changeOptions = func(o *Options) {
		o.Connections.Configs[Virtual].Wrap(transport.WrapperFunc(func(next http.RoundTripper) http.RoundTripper {
			return roundTripper(func(r *http.Request) (*http.Response, error) {
				if r.Method == http.MethodPatch && strings.Contains(r.URL.Path, "/shoots/race") && strings.Contains(r.URL.RawQuery, managerOperation) {
					asked++
					between()
				}
				return next.RoundTrip(r)
			})
		}))
	}
	c := w.newConverger()
	require.NoError(t, c.runOperations(testContext(t), Virtual))
	assert.Equal(t, 2, asked)
	assert.Equal(t, "reconcile", takeOperation(t, "race"))
	assert.Empty(t, c.currentRun.report.PendingOperations)
}
