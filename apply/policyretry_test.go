// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
)

type policyRoundTripper func(*http.Request) (*http.Response, error)

func (f policyRoundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestPolicyWithoutParametersIsRetried: an apply waits for a policy that does not know its
// parameters yet, but not forever.
func TestPolicyWithoutParametersIsRetried(t *testing.T) {
	const refusal = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"configmaps \"c\" is forbidden: ValidatingAdmissionPolicy 'only-one' ` +
		`denied request: failed to configure policy: failed to find resource referenced by paramKind: 'example.org/v1, Kind=Some'"}`
	for name, test := range map[string]struct {
		refusals int64
		applied  bool
	}{"for some seconds": {3, true}, "for ever": {1 << 40, false}} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			var patches atomic.Int64
			config := rest.CopyConfig(server.config)
			config.Wrap(func(next http.RoundTripper) http.RoundTripper {
				return policyRoundTripper(func(r *http.Request) (*http.Response, error) {
					if r.Method != http.MethodPatch || !strings.HasSuffix(r.URL.Path, "/configmaps/c") || patches.Add(1) > test.refusals {
						return next.RoundTrip(r)
					}
					header := http.Header{"Content-Type": {"application/json"}}
					return &http.Response{StatusCode: http.StatusForbidden, Header: header, Body: io.NopCloser(strings.NewReader(refusal)), Request: r}, nil
				})
			})
			clk := clocktesting.NewFakeClock(time.Now())
			c, err := newCluster("test", config, ClusterOptions{Clock: clk})
			require.NoError(t, err)
			defer c.Close()
			began := clk.Now()
			ended := make(chan error, 1)
			go func() {
				_, err := f.e.Apply(f.ctx, c, f.set(f.configMap("c", "x")), NewMemoryInventory(), ApplyOptions{})
				ended <- err
			}()
			for done := false; !done; {
				select {
				case err = <-ended:
					done = true
				case <-time.After(time.Millisecond):
					if clk.HasWaiters() {
						clk.Step(100 * time.Millisecond)
					}
				}
			}
			if test.applied {
				require.NoError(t, err)
				assert.Equal(t, test.refusals+1, patches.Load())
				return
			}
			assert.Equal(t, ReasonWebhookDenied, ReasonOf(err))
			assert.ErrorContains(t, err, "define the kind from which only-one takes its parameters")
			assert.GreaterOrEqual(t, clk.Since(began), policyRetryTimeout)
		})
	}
}
