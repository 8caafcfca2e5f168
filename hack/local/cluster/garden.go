// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"os"

	"github.com/pergola-dev/pergola/hack/local/statedir"
)

// VirtualGarden is the cluster that replaces a Garden's API server where pods are only played. The
// zero value is none.
type VirtualGarden struct {
	// Runtime is the cluster of the Garden; Played is its replacement for the virtual garden.
	Runtime, Played string
}

// playVirtualGarden writes the access to the virtual garden to the Secret that a Garden would
// write. Controllers that find this Secret do not change it.
func (m *Manager) playVirtualGarden(ctx context.Context, state *statedir.State, v VirtualGarden) error {
	runtime, played := state.Cluster(v.Runtime), state.Cluster(v.Played)
	if runtime == nil || played == nil {
		return nil
	}
	kubeconfig, err := os.ReadFile(m.Dir.Kubeconfig(played.Name))
	if err != nil {
		return fmt.Errorf("reading the kubeconfig of %s: %w", played.Name, err)
	}
	client, err := m.Client(runtime)
	if err != nil {
		return err
	}
	const namespace, secret = "garden", "gardener-internal"
	for _, p := range []pathObject{
		{"/api/v1/namespaces/" + namespace, object{"apiVersion": "v1", "kind": "Namespace", "metadata": object{"name": namespace}}},
		{"/api/v1/namespaces/" + namespace + "/secrets/" + secret, object{
			"apiVersion": "v1", "kind": "Secret", "metadata": object{"name": secret, "namespace": namespace}, "stringData": object{"kubeconfig": string(kubeconfig)},
		}},
	} {
		if err := client.Apply(ctx, p.path, p.object); err != nil {
			return fmt.Errorf("making %s the virtual garden of %s: %w", played.Name, runtime.Name, err)
		}
	}
	return nil
}
