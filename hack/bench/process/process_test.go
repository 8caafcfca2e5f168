// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestProcess: a computing process is not idle, a waiting one is, an ended one is an error.
func TestProcess(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	p, err := Start(log, []string{"A=b"}, "/bin/sh", "-c", "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; echo $A; exec sleep 60")
	require.NoError(t, err)
	_, err = p.WaitUntilIdle(t.Context())
	require.NoError(t, err)
	said, err := os.ReadFile(log)
	require.NoError(t, err)
	assert.Equal(t, "b\n", string(said), "it was busy before that")
	require.NoError(t, ResetPeak(p.PID()))
	used, err := ReadMemory(p.PID())
	require.NoError(t, err)
	assert.Positive(t, used.WithoutFilePages)
	assert.Greater(t, used.Peak, used.WithoutFilePages)
	require.NoError(t, p.CheckAlive())
	during, cancel := p.ContextUntilExit(t.Context())
	defer cancel()
	require.NoError(t, during.Err())
	require.NoError(t, p.Stop(t.Context()))
	require.Error(t, p.CheckAlive())
	<-during.Done()
	assert.ErrorContains(t, context.Cause(during), "the controller has ended")
	_, err = p.WaitUntilIdle(t.Context())
	assert.Error(t, err)
}
