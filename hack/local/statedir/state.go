// SPDX-License-Identifier: Apache-2.0

package statedir

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
)

// formatVersion changes when older state folders are no longer readable.
const formatVersion = 1

// State has the decisions that must not change after the clusters are created: people's kubeconfigs
// stay valid across down and up.
type State struct {
	Version int `json:"version"`
	// EtcdPort and EtcdPeerPort belong to the one etcd that serves all clusters of the folder.
	EtcdPort     int `json:"etcdPort"`
	EtcdPeerPort int `json:"etcdPeerPort"`
	// ProxyPort is the port of the proxy to everything inside; it is 0 if there is none.
	ProxyPort int `json:"proxyPort,omitempty"`
	// Living reports whether pods are living, in namespaces of the folder (package hold).
	Living bool `json:"living,omitempty"`
	// Images map further image repositories to executables of this machine.
	Images map[string]string `json:"images,omitempty"`
	// Clusters are in the order of creation.
	Clusters []*Cluster `json:"clusters"`
}

// ProxyURL returns the URL of the proxy to everything inside, or "" if there is none.
func (s *State) ProxyURL() string {
	if !s.Living || s.ProxyPort == 0 {
		return ""
	}
	return fmt.Sprintf("http://127.0.0.1:%d", s.ProxyPort)
}

// Cluster is one cluster of the folder.
type Cluster struct {
	Name string `json:"name"`
	// Index is unique in the folder and determines the address ranges.
	Index int `json:"index"`
	// Port is the loopback port of the API server.
	Port int `json:"port"`
	// Parts are the processes of the cluster, in starting order.
	Parts []string `json:"parts"`
	// Nodes is the number of fake nodes.
	Nodes int `json:"nodes"`
	// Kubelets is the number of nodes that run living pods.
	Kubelets int `json:"kubelets,omitempty"`
	// ShouldRun is true between up and down of the cluster.
	ShouldRun bool `json:"wanted"`
}

// ServiceCIDR returns the range of the cluster's Service addresses.
func (c *Cluster) ServiceCIDR() string { return fmt.Sprintf("10.%d.0.0/16", 96+c.Index) }

// PodCIDR returns the address range of fake pods. It is multicast: connecting a TCP socket to a
// multicast address fails at once on every operating system. So a call to a fake pod (a webhook, an
// aggregated API) is refused without a timeout.
func (c *Cluster) PodCIDR() string { return fmt.Sprintf("239.%d.0.0/16", 64+c.Index) }

// NodeIP returns the address of the n-th fake node; connecting to it fails at once, too.
func (c *Cluster) NodeIP(n int) string { return fmt.Sprintf("239.%d.255.%d", 64+c.Index, 10+n) }

// ServiceIP returns the n-th Service address; the first is the API server's.
func (c *Cluster) ServiceIP(n int) string { return fmt.Sprintf("10.%d.0.%d", 96+c.Index, n) }

// DNS returns the address of the cluster's DNS server, conventionally the tenth.
func (c *Cluster) DNS() string { return c.ServiceIP(10) }

// KubeletIP returns the address of the n-th node that runs living pods.
func (c *Cluster) KubeletIP(n int) string { return fmt.Sprintf("10.%d.255.%d", 160+c.Index, 10+n) }

// KubeletPods returns the address range of the pods on that node.
func (c *Cluster) KubeletPods(n int) string { return fmt.Sprintf("10.%d.%d.0/24", 160+c.Index, n) }

// LoadBalancers returns the address range of load balancers.
func (c *Cluster) LoadBalancers() string { return fmt.Sprintf("10.%d.254.0/24", 160+c.Index) }

// Server returns the URL of the API server.
func (c *Cluster) Server() string { return fmt.Sprintf("https://127.0.0.1:%d", c.Port) }

// HasPart reports whether the part belongs to the cluster.
func (c *Cluster) HasPart(part string) bool { return slices.Contains(c.Parts, part) }

// Cluster returns the cluster with that name, or nil.
func (s *State) Cluster(name string) *Cluster {
	for _, cluster := range s.Clusters {
		if cluster.Name == name {
			return cluster
		}
	}
	return nil
}

// Add adds a new cluster with the first free index.
func (s *State) Add(name string) *Cluster {
	index := 0
	for slices.ContainsFunc(s.Clusters, func(c *Cluster) bool { return c.Index == index }) {
		index++
	}
	cluster := &Cluster{Name: name, Index: index}
	s.Clusters = append(s.Clusters, cluster)
	return cluster
}

// Load reads the state; without a file it returns an empty state.
func (d Dir) Load() (*State, error) {
	state := &State{Version: formatVersion}
	data, err := os.ReadFile(d.stateFile())
	if errors.Is(err, fs.ErrNotExist) {
		return state, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading state: %w", err)
	}
	if err := json.Unmarshal(data, state); err != nil {
		return nil, fmt.Errorf("reading %s: %w (clean removes it)", d.stateFile(), err)
	}
	if state.Version != formatVersion {
		return nil, fmt.Errorf("%s has format %d, and this program writes %d: take the clusters down with the program that made them, or remove the folder",
			d.stateFile(), state.Version, formatVersion)
	}
	return state, nil
}

// Save writes the state atomically.
func (d Dir) Save(state *State) error {
	data, err := json.MarshalIndent(state, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding state: %w", err)
	}
	temporary := d.stateFile() + ".new"
	if err := os.WriteFile(temporary, append(data, '\n'), 0o600); err != nil {
		return fmt.Errorf("writing state: %w", err)
	}
	if err := os.Rename(temporary, d.stateFile()); err != nil {
		return fmt.Errorf("writing state: %w", err)
	}
	return nil
}
