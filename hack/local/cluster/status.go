// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"time"

	"github.com/pergola-dev/pergola/hack/local/process"
	"github.com/pergola-dev/pergola/hack/local/statedir"
)

// States of a part and of a cluster.
const (
	// Running means that the process runs, or that the cluster is ready.
	Running = "running"
	// Stopped means that it was stopped, or never started.
	Stopped = "stopped"
	// Crashed means that the process has ended although it should run.
	Crashed = "crashed"
	// NotReady means that all processes run, but the API server or the nodes are not ready.
	NotReady = "notReady"
)

// Status is the state of all clusters of a folder.
type Status struct {
	Dir string `json:"dir"`
	// Kubeconfig has a context for every cluster.
	Kubeconfig string `json:"kubeconfig"`
	// Living reports whether pods are living; Proxy is then the URL of the proxy to them.
	Living   bool            `json:"living"`
	Proxy    string          `json:"proxy,omitempty"`
	Shared   []PartStatus    `json:"shared"`
	Clusters []ClusterStatus `json:"clusters"`
}

// ClusterStatus is the state of one cluster.
type ClusterStatus struct {
	Name       string `json:"name"`
	State      string `json:"state"`
	Message    string `json:"message,omitempty"`
	Server     string `json:"server"`
	Context    string `json:"context"`
	Kubeconfig string `json:"kubeconfig"`
	// Parts are the processes of the cluster.
	Parts []PartStatus `json:"parts"`
}

// PartStatus is the state of one process.
type PartStatus struct {
	Name  string `json:"name"`
	State string `json:"state"`
	PID   int    `json:"pid,omitempty"`
	Port  int    `json:"port,omitempty"`
	Log   string `json:"log"`
	// Tail is the end of the log of a part that has crashed.
	Tail []string `json:"tail,omitempty"`
}

// IsHealthy reports whether there are clusters and all of them are ready.
func (s Status) IsHealthy() bool {
	for _, part := range s.Shared {
		if part.State != Running {
			return false
		}
	}
	for _, c := range s.Clusters {
		if c.State != Running {
			return false
		}
	}
	return len(s.Clusters) > 0
}

// Status checks all processes and API servers. A stopped cluster is reported as such and is not
// healthy.
func (m *Manager) Status(ctx context.Context) (Status, error) {
	status := Status{Dir: string(m.Dir), Kubeconfig: m.Dir.MergedKubeconfig(), Shared: []PartStatus{}, Clusters: []ClusterStatus{}}
	state, err := m.Dir.Load()
	if err != nil {
		return status, err
	}
	status.Living, status.Proxy = state.Living, state.ProxyURL()
	anyWanted := false
	for _, c := range state.Clusters {
		one, err := m.clusterStatus(ctx, c)
		if err != nil {
			return status, err
		}
		anyWanted = anyWanted || c.ShouldRun
		status.Clusters = append(status.Clusters, one)
	}
	if len(state.Clusters) > 0 {
		etcd, err := m.partStatus(sharedName, PartEtcd, state.EtcdPort, anyWanted)
		if err != nil {
			return status, err
		}
		status.Shared = append(status.Shared, etcd)
	}
	return status, nil
}

func (m *Manager) partStatus(cluster, part string, port int, wanted bool) (PartStatus, error) {
	status := PartStatus{Name: part, State: Stopped, Log: m.Dir.Log(cluster, part)}
	record, alive, err := m.readProcess(cluster, part)
	if err != nil {
		return status, err
	}
	switch {
	case alive:
		status.State, status.PID, status.Port = Running, record.PID, port
	case wanted && record != nil && !record.IsFromEarlierBoot():
		status.State, status.Tail = Crashed, process.ReadTail(status.Log, tailLines)
	}
	return status, nil
}

func (m *Manager) clusterStatus(ctx context.Context, c *statedir.Cluster) (ClusterStatus, error) {
	status := ClusterStatus{
		Name: c.Name, State: Running, Server: c.Server(), Context: "pergola-" + c.Name,
		Kubeconfig: m.Dir.Kubeconfig(c.Name), Parts: []PartStatus{},
	}
	if !c.ShouldRun {
		status.State = Stopped
	}
	for _, part := range c.Parts {
		port := 0
		if part == PartAPIServer {
			port = c.Port
		}
		one, err := m.partStatus(c.Name, part, port, c.ShouldRun)
		if err != nil {
			return status, err
		}
		status.Parts = append(status.Parts, one)
		if one.State != Running && status.State == Running {
			status.State, status.Message = one.State, part+" is "+one.State
		}
	}
	if second, err := m.partStatus(c.Name, partExtensions, 0, false); err != nil {
		return status, err
	} else if second.State == Running {
		status.Parts = append(status.Parts, second) // it runs only while CRDs need it
	}
	if status.State != Running {
		return status, nil
	}
	if err := m.checkHealth(ctx, c); err != nil {
		status.State, status.Message = NotReady, err.Error()
	}
	return status, nil
}

// checkHealth checks a cluster's health once, without waiting for it.
func (m *Manager) checkHealth(ctx context.Context, c *statedir.Cluster) error {
	ctx, cancel := context.WithTimeoutCause(ctx, 5*time.Second, fmt.Errorf("no answer within 5s"))
	defer cancel()
	client, err := m.Client(c)
	if err != nil {
		return err
	}
	if err := checkReady(ctx, client); err != nil {
		return err
	}
	return m.checkSchedulable(ctx, client, c)
}
