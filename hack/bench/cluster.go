// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
)

// cluster is an API server with its own etcd.
type cluster struct {
	Kubeconfig      string
	APIServer, Etcd int // process ids
}

// clusterProcess is a process of a cluster.
type clusterProcess struct {
	Name string `json:"name"`
	PID  int    `json:"pid"`
}

type clusterStatus struct {
	Shared   []clusterProcess `json:"shared"`
	Clusters []struct {
		Name       string           `json:"name"`
		Kubeconfig string           `json:"kubeconfig"`
		Parts      []clusterProcess `json:"parts"`
	} `json:"clusters"`
}

func (s settings) runUp(ctx context.Context, state string, args ...string) (clusterStatus, error) {
	cmd := exec.CommandContext(ctx, s.local, append([]string{"up", "--dir", state, "--json"}, args...)...)
	cmd.Stderr = s.log
	var status clusterStatus
	out, err := cmd.Output()
	if err != nil {
		return status, fmt.Errorf("start the API server: %w", err)
	}
	if err := json.Unmarshal(out, &status); err != nil {
		return status, fmt.Errorf("status of the API server: %w", err)
	}
	return status, nil
}

// startClusters starts whole clusters, with controllers and played nodes, and returns their
// kubeconfigs by name.
func (s settings) startClusters(ctx context.Context, state string, names ...string) (map[string]string, error) {
	status, err := s.runUp(ctx, state, "--clusters", strings.Join(names, ","))
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for _, c := range status.Clusters {
		out[c.Name] = c.Kubeconfig
	}
	return out, nil
}

// startAPIServer starts etcd and an API server with their own state folder.
func (s settings) startAPIServer(ctx context.Context, state string) (cluster, error) {
	status, err := s.runUp(ctx, state, "--clusters", "bench", "--parts", "apiserver")
	if err != nil {
		return cluster{}, err
	}
	for _, c := range status.Clusters {
		if c.Name != "bench" {
			continue
		}
		started := cluster{Kubeconfig: c.Kubeconfig}
		for _, p := range append(status.Shared, c.Parts...) {
			switch p.Name {
			case "etcd":
				started.Etcd = p.PID
			case "kube-apiserver":
				started.APIServer = p.PID
			}
		}
		return started, nil
	}
	return cluster{}, errors.New("no cluster bench in the status of the API server")
}

// cleanClusters ends the processes and removes their data, also when the bench was interrupted.
func (s settings) cleanClusters(state string) error {
	out, err := exec.Command(s.local, "clean", "--dir", state).CombinedOutput()
	if err != nil {
		return fmt.Errorf("stop the API server: %w\n%s", err, tail(string(out)))
	}
	return nil
}
