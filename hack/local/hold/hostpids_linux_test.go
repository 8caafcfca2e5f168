// SPDX-License-Identifier: Apache-2.0

package hold

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestHostPIDs checks that a process inside is found by the id that ps shows.
func TestHostPIDs(t *testing.T) {
	holder, dir := startTestHolder(t)
	said, code := runOutput(t, holder, shellCommand("setsid -f sh -c 'echo $$ >"+dir+"/pid; exec sleep 601' </dev/null >/dev/null 2>&1; while ! [ -s "+dir+"/pid ]; do sleep 0.01; done"))
	require.Zero(t, code, said)
	text, err := os.ReadFile(dir + "/pid")
	require.NoError(t, err)
	inside, err := strconv.Atoi(strings.TrimSpace(string(text)))
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		ids, err := holder.HostPIDs()
		require.NoError(t, err)
		assert.Equal(t, holder.PID(), ids[1], "the holder itself")
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", ids[inside]))
		return string(line) == "sleep\x00601\x00"
	}, testTimeout, 10*time.Millisecond)
}

func TestProcessIDs(t *testing.T) {
	for name, test := range map[string]struct {
		status          string
		outside, inside int
		found           bool
	}{
		"inside":   {"Name:\tx\nNSpid:\t4711\t12\nThreads:\t1\n", 4711, 12, true},
		"nested":   {"NSpid:\t4711\t12\t1\n", 4711, 1, true},
		"same":     {"NSpid:\t7\n", 7, 7, true},
		"ended":    {"", 0, 0, false},
		"old":      {"Name:\tx\nPid:\t3\n", 0, 0, false},
		"nonsense": {"NSpid:\tx\n", 0, 0, false},
	} {
		outside, inside, found := processIDs(test.status)
		assert.Equal(t, test.found, found, name)
		assert.Equal(t, test.outside, outside, name)
		assert.Equal(t, test.inside, inside, name)
	}
}
