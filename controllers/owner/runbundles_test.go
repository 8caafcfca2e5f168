// SPDX-License-Identifier: Apache-2.0

package owner

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/pergola-dev/pergola/apply/flow"
	"github.com/pergola-dev/pergola/render"
)

func TestAPanicOfOneBundleIsItsError(t *testing.T) {
	work := &run{reconciler: &Reconciler{Clock: clocktesting.NewFakeClock(time.Now())}, owner: &ownerSession{}, report: &Report{}}
	// Without a cluster the apply panics.
	err := work.runBundles(t.Context(), []render.Bundle{{Name: "a", Delivery: render.Delivery{Direct: true}, Cluster: render.ClusterRuntime}}, nil, func(flow.State, string) {})
	require.ErrorContains(t, err, "a fault of Pergola")
}
