// SPDX-License-Identifier: Apache-2.0

package evaluation

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestWorkersAreConfined: workers have kernel limits, and their own network where the machine
// allows it.
func TestWorkersAreConfined(t *testing.T) {
	pool := newPool(t, Limits{Memory: 512 << 20})
	_, err := pool.Evaluate(t.Context(), pkg(namespaceCUE))
	require.NoError(t, err)
	pid := pool.idle[0].cmd.Process.Pid
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/limits", pid))
	require.NoError(t, err)
	for _, want := range []string{"Max data size 805306368", "Max core file size 0", "Max cpu time 6"} {
		assert.Contains(t, strings.Join(strings.Fields(string(data)), " "), want)
	}
	if !pool.lacksNamespaces.Load() {
		ours, err := os.Readlink("/proc/self/ns/net")
		require.NoError(t, err)
		theirs, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", pid))
		require.NoError(t, err)
		assert.NotEqual(t, ours, theirs)
	}
}

// TestWithoutNamespaces: workers also run on a machine that forbids namespaces.
func TestWithoutNamespaces(t *testing.T) {
	pool := newPool(t, Limits{})
	pool.lacksNamespaces.Store(true)
	result, err := pool.Evaluate(t.Context(), pkg(namespaceCUE))
	require.NoError(t, err)
	assert.Len(t, result.Objects, 1)
}
