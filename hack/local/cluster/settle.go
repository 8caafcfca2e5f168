package cluster

import (
	"context"
	"fmt"

	"github.com/pergola-dev/pergola/hack/local/restclient"
	"github.com/pergola-dev/pergola/hack/local/statedir"
)

// upParts starts everything beside the API server, once the objects are there that it needs.
func (m *Manager) upParts(ctx context.Context, c *statedir.Cluster, client *restclient.Client) error {
	if err := found(ctx, client, c); err != nil {
		return err
	}
	for _, part := range c.Parts {
		if part == PartAPIServer {
			continue
		}
		if part == PartKwok {
			if err := m.beforeKwok(ctx, c, client); err != nil {
				return err
			}
		}
		if err := m.ensure(ctx, c.Name, part, m.spec(c, part)); err != nil {
			return err
		}
	}
	return nil
}

// beforeKwok puts in what kwok looks for when it starts.
func (m *Manager) beforeKwok(ctx context.Context, c *statedir.Cluster, client *restclient.Client) error {
	err := m.wait(ctx, "Stages to be served", []running{{c.Name, PartAPIServer}}, func(ctx context.Context) error {
		return addBuiltinStages(ctx, client)
	})
	if err != nil {
		return err
	}
	if _, alive, err := m.alive(c.Name, PartKwok); err != nil || alive {
		return err
	}
	return dropNodeLeases(ctx, client)
}

type condition struct {
	Type   string `json:"type"`
	Status string `json:"status"`
}

type nodeObject struct {
	Spec struct {
		Taints []struct {
			Key string `json:"key"`
		} `json:"taints"`
	} `json:"spec"`
	Status struct {
		Conditions []condition `json:"conditions"`
	} `json:"status"`
}

// settled says what is missing until pods can be created and scheduled: Ready nodes without the taints
// of new nodes, and the service account that pods use by default.
func settled(ctx context.Context, client *restclient.Client, c *statedir.Cluster) error {
	for n := range c.Nodes {
		name := nodeName(c, n)
		var node nodeObject
		if err := client.Get(ctx, "/api/v1/nodes/"+name, &node); err != nil {
			return err
		}
		ready := false
		for _, condition := range node.Status.Conditions {
			ready = ready || condition.Type == "Ready" && condition.Status == "True"
		}
		if !ready {
			return fmt.Errorf("node %s is not ready", name)
		}
		// Only the controller manager takes taints off.
		if c.Has(PartControllerManager) && len(node.Spec.Taints) > 0 {
			return fmt.Errorf("node %s has the taint %s", name, node.Spec.Taints[0].Key)
		}
	}
	if c.Has(PartControllerManager) {
		return client.Get(ctx, "/api/v1/namespaces/default/serviceaccounts/default", nil)
	}
	return nil
}
