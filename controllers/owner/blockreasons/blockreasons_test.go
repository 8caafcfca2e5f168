// SPDX-License-Identifier: Apache-2.0

package blockreasons

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/apply/flow"
)

// TestBlockedStepsNameTheirCause checks that a waiting step of a timed-out run names the step
// that it waits for.
func TestBlockedStepsNameTheirCause(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(context.Context) (context.Context, context.CancelFunc)
		want string
	}{
		"out of time": {func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, 20*time.Millisecond)
		}, "because etcd-druid failed: no pods"},
		"interrupted": {func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			cancel()
			return ctx, cancel
		}, "not started: context canceled"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := c.end(t.Context())
			defer cancel()
			nothing := func(context.Context, func(flow.State, string)) error { return nil }
			g := flow.Graph{Nodes: []flow.Node{
				{ID: "ground", Run: nothing},
				{ID: "etcd-druid", Run: func(ctx context.Context, report func(flow.State, string)) error {
					report(flow.Applied, "")
					<-ctx.Done()
					return errors.New("no pods")
				}},
				{ID: "etcd", Run: nothing, Needs: []flow.Edge{{ID: "ground"}, {ID: "etcd-druid", Until: flow.RolledOut}}},
				{ID: "api", Run: nothing, Needs: []flow.Edge{{ID: "etcd-druid", Until: flow.Applied}, {ID: "etcd"}}},
			}}
			b := New(g)
			heard := map[string]string{}
			result, err := flow.Run(ctx, g, flow.Options{OnEvent: func(e flow.Event) {
				if e = b.WithReason(e); e.State == flow.Blocked {
					heard[e.ID] = e.Message
				}
			}})
			if name == "out of time" {
				require.ErrorContains(t, err, "etcd-druid: no pods")
			}
			b.SetReasons(result.Nodes)
			for _, id := range []string{"etcd", "api"} {
				assert.Equal(t, c.want, heard[id], id)
				assert.Equal(t, c.want, result.Node(id).Message, id)
			}
		})
	}
}
