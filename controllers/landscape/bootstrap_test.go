// SPDX-License-Identifier: Apache-2.0

package landscape

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/permit"
	"github.com/pergola-dev/pergola/landscapes"
)

// TestSeveralLandscapesBootstrapAtOnce checks that landscapes that start at once write the shared
// objects without a failure.
func TestSeveralLandscapesBootstrapAtOnce(t *testing.T) {
	needsServer(t)
	const many = 6
	problems := make([]error, many)
	var group sync.WaitGroup
	for i := range many {
		w := newFolderLandscape(t, fmt.Sprintf("boot-%d", i), nil)
		l, _, err := landscapes.Load(t.Context(), w.dir, landscapes.Options{})
		require.NoError(t, err)
		c, err := newConverger(l, Options{Connections: Connections{Configs: map[string]*rest.Config{Runtime: rest.CopyConfig(server.config)}}, Clock: clock.RealClock{}, Permits: Permits{Gate: permit.DefaultGate()}, Process: ProcessIdentity{Holder: "test"}})
		require.NoError(t, err)
		t.Cleanup(c.Close)
		group.Go(func() { problems[i] = c.applyBootstrap(testContext(t)) })
	}
	group.Wait()
	require.NoError(t, errors.Join(problems...))
}

func TestIsInventoryConflict(t *testing.T) {
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "configmaps"}, "x", errors.New("it was modified"))
	inventory := &apply.ObjectError{Op: "write the inventory", Err: fmt.Errorf("writing: %w", conflict)}
	object := &apply.ObjectError{Object: apply.Ref{Kind: "ConfigMap", Name: "a"}, Err: conflict}
	other := &apply.ObjectError{Err: errors.New("no disk")}
	assert.True(t, isInventoryConflict(apply.Errors{inventory}))
	assert.False(t, isInventoryConflict(apply.Errors{inventory, object}), "a field of another manager does not go by itself")
	assert.False(t, isInventoryConflict(apply.Errors{other}))
	assert.False(t, isInventoryConflict(conflict))
}
