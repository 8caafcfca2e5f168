// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/namespacepolicies"
	"github.com/pergola-dev/pergola/deploy"
)

// TestNamespacePolicyRights runs the controller of namespace policies with the rights of
// the chart, and for the operator without the right to converge.
func TestNamespacePolicyRights(t *testing.T) {
	admin := connectAs(t, "", nil)
	for role, account := range map[deploy.Role]string{deploy.Operator: "policies-operator", deploy.Gardenlet: "policies-gardenlet"} {
		t.Run(string(role), func(t *testing.T) {
			in := renderRole(t, role, map[string]any{
				"serviceAccount": map[string]any{"name": account},
				"operator":       map[string]any{"ownRights": false, "impersonation": map[string]any{"serviceAccounts": []any{"converging"}}},
			})
			applyAsAdmin(t, admin, append(in.Definitions, in.Objects...)...)
			requests := &requestLog{}
			config := rest.CopyConfig(server)
			config.Impersonate.UserName = "system:serviceaccount:garden:" + account
			config.Wrap(requests.wrapTransport)
			c, err := namespacepolicies.New(config, namespacepolicies.Options{Role: string(role)})
			require.NoError(t, err)
			ctx, cancel := context.WithCancel(testContext(t))
			var group sync.WaitGroup
			group.Go(func() { c.Run(ctx) })
			t.Cleanup(group.Wait)
			t.Cleanup(cancel)
			policy := apply.Ref{APIVersion: "networking.k8s.io/v1", Kind: "NetworkPolicy", Namespace: "garden", Name: "allow-to-runtime-apiserver"}
			there := func() bool {
				_, err := admin.GetLive(testContext(t), policy)
				require.NoError(t, client.IgnoreNotFound(err))
				return err == nil
			}
			c.SetNetworks(&namespacepolicies.Networks{})
			require.Eventually(t, there, 20*time.Second, 50*time.Millisecond)
			c.SetNetworks(nil)
			require.Eventually(t, func() bool { return !there() }, 20*time.Second, 50*time.Millisecond)
			assert.Empty(t, requests.forbiddenRequests())
		})
	}
}
