// SPDX-License-Identifier: Apache-2.0

package rotation

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
)

func TestHasNewPasswords(t *testing.T) {
	early, late := metav1.NewTime(time.Unix(1, 0)), metav1.NewTime(time.Unix(2, 0))
	for name, c := range map[string]struct {
		began, ended *metav1.Time
		want         bool
	}{
		"never":                  {nil, nil, false},
		"for the first time":     {&early, nil, true},
		"once more":              {&late, &early, true},
		"over":                   {&early, &late, false},
		"begun when it was over": {&early, &early, false},
	} {
		r := Rotation{}
		r.LastInitiationTime, r.LastCompletionTime = c.began, c.ended
		assert.Equal(t, c.want, State{Rotation: map[Kind]Rotation{Observability: r}}.HasNewPasswords(), name)
	}
}

// TestPasswordIsDistributed checks that Seeds are reconciled once each has a copy of the new
// password, without waiting for the result.
func TestPasswordIsDistributed(t *testing.T) {
	g := newTestGarden(t)
	copied := func(seed, name string) {
		t.Helper()
		namespace := "seed-" + seed
		if _, err := g.api.CoreV1().Namespaces().Get(t.Context(), namespace, metav1.GetOptions{}); err != nil {
			_, err = g.api.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
			require.NoError(t, err)
		}
		_, err := g.api.CoreV1().Secrets(namespace).Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name,
			Labels: map[string]string{"gardener.cloud/role": "global-monitoring"}}}, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	g.createSeed("ready", "", 0)
	copied("ready", "observability-ingress-new")
	g.createSeed("late", "", 0)
	copied("late", "observability-ingress-old")
	g.createSeed("busy", "renew-kubeconfig", 0)
	g.createSeed("silent", "", time.Hour)
	g.createSeed("unattended", "", -1)
	clk := clocktesting.NewFakeClock(time.Now())
	told := make(chan string, 10000)
	end := make(chan error, 1)
	go func() {
		end <- g.newRequester(clk, func(m string) { told <- m }).DistributeMonitoringPassword(t.Context(), "observability-ingress-new")
	}()
	step := func(what string, ok func() bool) {
		t.Helper()
		require.Eventually(t, func() bool {
			if clk.HasWaiters() {
				clk.Step(seedsInterval)
			}
			return ok()
		}, 30*time.Second, 20*time.Millisecond, what)
	}
	assert.Equal(t, "namespaces of seeds wait for a copy of Secret garden/observability-ingress-new", <-told)
	assert.Empty(t, g.operationOf("ready"), "all have the copy first")
	copied("late", "observability-ingress-new")
	step("those that are idle are asked", func() bool {
		return g.operationOf("ready") == "reconcile" && g.operationOf("late") == "reconcile" && g.operationOf("silent") == "reconcile"
	})
	assert.Equal(t, "renew-kubeconfig", g.operationOf("busy"), "what it was asked for before comes first")
	assert.Empty(t, g.operationOf("unattended"))
	g.finishOperation("busy")
	step("it does not wait for the end", hasEnded(t, end))
	assert.Equal(t, "reconcile", g.operationOf("busy"))
}
