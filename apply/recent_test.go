package apply

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
)

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// Who asks again within the time that is good enough for him makes no request; for another namespace, or something newer, there is one.
func TestListRecent(t *testing.T) {
	f := newFixture(t)
	var asked atomic.Int64
	config := rest.CopyConfig(server.config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTrip(func(r *http.Request) (*http.Response, error) {
			if strings.HasSuffix(r.URL.Path, "/configmaps") {
				asked.Add(1)
			}
			return next.RoundTrip(r)
		})
	})
	clock := clocktesting.NewFakeClock(time.Now())
	c, err := NewCluster("recent", config, ClusterOptions{Clock: clock})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	f.mustApply(f.set(f.configMap("c", "x")))
	list := func(namespace string, age time.Duration) (names []string) {
		items, err := c.ListRecent(f.ctx, corev1.SchemeGroupVersion.WithResource("configmaps"), namespace, clock.Now().Add(-age))
		require.NoError(t, err)
		for _, item := range items {
			names = append(names, item.GetName())
		}
		return names
	}
	assert.Contains(t, list(f.ns, 0), "c")
	list(f.ns, time.Second)
	clock.Step(3 * time.Second)
	list(f.ns, 5*time.Second)
	assert.EqualValues(t, 1, asked.Load())
	list(f.ns, 2*time.Second)
	assert.EqualValues(t, 2, asked.Load(), "what is older than asked for is not given")
	assert.NotContains(t, list(metav1.NamespaceDefault, time.Minute), "c")
	assert.EqualValues(t, 3, asked.Load())
	clock.Step(2 * time.Minute)
	list(f.ns, time.Second)
	assert.Len(t, c.recent.lists, 1, "what nobody has asked for lately is let go")
}
