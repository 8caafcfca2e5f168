// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/pergola-dev/pergola/hack/local/restclient"
	"github.com/pergola-dev/pergola/hack/local/statedir"
)

// startParts applies the foundation and starts all parts except the API server.
func (m *Manager) startParts(ctx context.Context, c *statedir.Cluster, client *restclient.Client) error {
	if err := applyFoundation(ctx, client, c); err != nil {
		return err
	}
	for _, part := range c.Parts {
		if part == PartAPIServer {
			continue
		}
		if part == PartKwok {
			if err := m.prepareKwok(ctx, c, client); err != nil {
				return err
			}
		}
		if err := m.ensureRunning(ctx, c.Name, part, m.partSpec(c, part)); err != nil {
			return err
		}
	}
	return nil
}

// prepareKwok writes kwok's Stages and drops the previous kwok's Leases before a new kwok starts.
func (m *Manager) prepareKwok(ctx context.Context, c *statedir.Cluster, client *restclient.Client) error {
	file := m.Dir.Data(c.Name + "/" + PartKwok + ".yaml")
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return fmt.Errorf("creating folder of stages: %w", err)
	}
	if err := os.WriteFile(file, m.builtinStages, 0o600); err != nil {
		return fmt.Errorf("writing stages: %w", err)
	}
	record, alive, err := m.readProcess(c.Name, PartKwok)
	if err != nil || alive && record.Digest == m.partSpec(c, PartKwok).Digest() {
		return err
	}
	return dropNodeLeases(ctx, client)
}

// checkReady checks that the API server is ready; the error lists only the failed checks.
func checkReady(ctx context.Context, client *restclient.Client) error {
	err := client.Get(ctx, "/readyz", nil)
	var status *restclient.StatusError
	if !errors.As(err, &status) {
		return err
	}
	var failed []string
	for line := range strings.Lines(status.Message) {
		if check, found := strings.CutPrefix(line, "[-]"); found {
			failed = append(failed, strings.TrimSpace(check))
		}
	}
	if len(failed) == 0 {
		return err
	}
	return fmt.Errorf("its API server is not ready: %s", strings.Join(failed, ", "))
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

// checkSchedulable returns an error until pods can be created and scheduled: Ready nodes without
// the taints of new nodes, and the default service account.
func (m *Manager) checkSchedulable(ctx context.Context, client *restclient.Client, c *statedir.Cluster) error {
	// Only the controller manager removes taints.
	tainted := !c.HasPart(PartControllerManager)
	for n := range c.Nodes {
		if err := checkNodeReady(ctx, client, nodeName(c, n), "", tainted); err != nil {
			return err
		}
	}
	if c.HasPart(PartControllerManager) {
		if err := client.Get(ctx, "/api/v1/namespaces/default/serviceaccounts/default", nil); err != nil {
			return err
		}
	}
	return m.checkLivingNodes(ctx, client, c)
}

// checkNodeReady returns an error until the node is Ready; it may have one permanent taint, or any.
func checkNodeReady(ctx context.Context, client *restclient.Client, name, taint string, any bool) error {
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
	for _, one := range node.Spec.Taints {
		if !any && one.Key != taint {
			return fmt.Errorf("node %s has the taint %s", name, one.Key)
		}
	}
	return nil
}
