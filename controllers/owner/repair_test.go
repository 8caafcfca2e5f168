package owner

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pergola-dev/pergola/apply"
)

// TestTheRestIsWatched: a run that ends before it comes to a bundle, be its time over, has drift of that told which this engine has not applied; and again
// what was told and not repaired.
func TestTheRestIsWatched(t *testing.T) {
	for name, direct := range map[string]bool{"direct": true, "managed": false} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			b := s.bundle(direct, s.configMap("edited"), s.configMap("same"))
			s.mustApply(b)
			s.work.Engine = apply.NewEngine(apply.Options{})
			events := make(chan apply.DriftEvent, 10)
			watching, stop := context.WithCancel(s.ctx)
			defer stop()
			go s.work.Engine.Watch(watching, s.work.owner.Local, func(e apply.DriftEvent) { events <- e })
			_, err := s.resource("configmaps", s.ns).Patch(s.ctx, "edited", types.MergePatchType, []byte(`{"data":{"a":"by hand"}}`), metav1.PatchOptions{FieldManager: "kubectl-edit"})
			require.NoError(t, err)
			s.eventually("the cache knows", func() bool {
				live, err := s.work.owner.Local.Get(s.ctx, apply.RefOf(s.configMap("edited")))
				return err == nil && live.Object["data"].(map[string]any)["a"] == "by hand"
			})
			over, cancel := context.WithCancel(s.ctx)
			cancel()
			for range 2 {
				s.work.watchTheRest(over)
				assert.Equal(t, "edited", (<-events).Ref.Name)
			}
			_, found, err := s.work.Repair(s.ctx, s.work.owner, setName(b.Owner, b.Name))
			require.NoError(t, err)
			assert.True(t, found)
			value := s.get("edited").Object["data"].(map[string]any)["a"]
			assert.Equal(t, "b", value)
		})
	}
}
