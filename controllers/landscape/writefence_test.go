// SPDX-License-Identifier: Apache-2.0

package landscape

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestWriteFence checks that writes fail when another process may hold the lease, and reads do not.
func TestWriteFence(t *testing.T) {
	for name, sure := range map[string]bool{"sure": true, "not sure": false} {
		t.Run(name, func(t *testing.T) {
			sent := 0
			f := NewWriteFence(func() bool { return sure })(roundTripper(func(*http.Request) (*http.Response, error) { sent++; return nil, nil }))
			for method, writes := range map[string]bool{http.MethodGet: false, http.MethodHead: false, http.MethodPost: true, http.MethodPatch: true, http.MethodPut: true, http.MethodDelete: true} {
				before := sent
				_, err := f.RoundTrip(httptest.NewRequest(method, "/", nil))
				if sure || !writes {
					require.NoError(t, err)
					assert.Equal(t, before+1, sent, method)
				} else {
					require.ErrorIs(t, err, ErrLeaseUncertain)
					assert.Equal(t, before, sent, method)
				}
			}
		})
	}
}
