// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/health/condition"
	"github.com/pergola-dev/pergola/source/gittest"
	"github.com/pergola-dev/pergola/source/receiver"
)

// TestSameNameInTwoNamespaces: of two Landscapes of one name in two namespaces, the first is
// synced. The other one touches nothing of it and reports why.
func TestSameNameInTwoNamespaces(t *testing.T) {
	w, other := newTestEnv(t), newTestEnv(t)
	everywhere := func(r *Role) { r.Namespace = "" }
	stop := w.startOperator(everywhere)
	s := w.newServedRepository("twin")
	twin := &servedRepository{testRepository: &testRepository{T: t, namespace: other.namespace, name: s.name}, server: gittest.New(t, t.TempDir(), "landscape")}
	twin.dir = twin.server.Work
	own := "of-the-twin"
	twin.push("begin", map[string]string{"landscape.yaml": twin.landscapeFile(""), "own.yaml": twin.configMap(own, "1")})
	s.push("more", map[string]string{"more.yaml": s.configMap("more", "1")})
	w.followServed(s, repositoryURL(gittest.ServeHTTP(t, s.server.Root).URL))
	w.awaitApplied(s, "", "1")

	often := func(spec *landscapev1alpha1.LandscapeSpec) { spec.Interval = &metav1.Duration{Duration: testInterval} }
	other.followServed(twin, repositoryURL(gittest.ServeHTTP(t, twin.server.Root).URL), often)
	untouched := func() {
		t.Helper()
		l := other.awaitReady(twin.name, "False NameTaken: Landscape "+w.namespace+"/"+s.name+" already has this name")
		assert.NotNil(t, condition.Get(l.Status.Conditions, landscapev1alpha1.LandscapeStalled))
		require.Never(t, func() bool { return other.configMapValue(own) != "" || w.configMapValue("more") == "" }, time.Second, testInterval)
		l = other.getLandscape(twin.name)
		assert.Empty(t, l.Status.History)
		assert.Empty(t, l.Status.LastAppliedRevision)
	}
	untouched()
	twin.push("another", map[string]string{"own.yaml": twin.configMap(own, "2")})
	w.awaitApplied(s, s.pushValue("2"), "2")
	untouched()
	w.restartOperator(&stop, everywhere)
	w.awaitApplied(s, s.pushValue("3"), "3")
	untouched()

	// Without the first one its objects stay until a person requests a sync.
	require.NoError(t, w.client.Delete(context.Background(), w.getLandscape(s.name)))
	gone := func() {
		t.Helper()
		other.awaitReady(twin.name, "False NameTaken: the other Landscape of this name no longer exists")
		require.Never(t, func() bool { return other.configMapValue(own) != "" || w.configMapValue("more") == "" }, time.Second, testInterval)
	}
	gone()
	w.restartOperator(&stop, everywhere)
	gone()
	handle, err := NewLandscapeClient(testServer.config, receiver.Key{Namespace: other.namespace, Name: twin.name}, clock.RealClock{}, "me")
	require.NoError(t, err)
	_, err = handle.Sync(t.Context())
	require.NoError(t, err)
	other.awaitReady(twin.name, "True Applied")
	assert.Equal(t, "2", other.configMapValue(own))
}

// restartOperator stops an operator and starts another one.
func (w *testEnv) restartOperator(stop *func(), change ...func(*Role)) {
	w.Helper()
	(*stop)()
	*stop = w.startOperator(change...)
}

// TestOwnsNameBefore: the result does not depend on the order of the arguments.
func TestOwnsNameBefore(t *testing.T) {
	now := metav1.NewTime(noon)
	of := func(namespace string, age time.Duration, syncs int) *landscapev1alpha1.Landscape {
		l := &landscapev1alpha1.Landscape{ObjectMeta: metav1.ObjectMeta{Name: "x", Namespace: namespace, CreationTimestamp: metav1.NewTime(now.Add(-age))}}
		l.Status.History = make([]landscapev1alpha1.SyncRecord, syncs)
		return l
	}
	for name, test := range map[string]struct{ first, second *landscapev1alpha1.Landscape }{
		"the older one":                          {of("b", time.Hour, 0), of("a", time.Minute, 0)},
		"in the same second, by namespace":       {of("a", time.Hour, 0), of("b", time.Hour, 0)},
		"the one that was synced already":        {of("b", time.Minute, 1), of("a", time.Hour, 0)},
		"both were synced, then the older one":   {of("b", time.Hour, 1), of("a", time.Minute, 3)},
		"in the same second, and one was synced": {of("b", time.Hour, 2), of("a", time.Hour, 0)},
	} {
		t.Run(name, func(t *testing.T) {
			assert.True(t, hasNamePrecedence(test.first, test.second))
			assert.False(t, hasNamePrecedence(test.second, test.first))
		})
	}
}
