package statedir

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
)

// formatVersion changes when older state folders cannot be understood any more.
const formatVersion = 1

// State is what was decided when the clusters were made and must be the same the next time: the
// kubeconfigs that people hold stay valid across down and up.
type State struct {
	Version int `json:"version"`
	// EtcdPort and EtcdPeerPort belong to the one etcd that serves all clusters of the folder.
	EtcdPort     int `json:"etcdPort"`
	EtcdPeerPort int `json:"etcdPeerPort"`
	// ProxyPort is that of the proxy by which everything inside is reached; 0 where there is none.
	ProxyPort int `json:"proxyPort,omitempty"`
	// Living says that pods run for real, in namespaces of the folder (package hold).
	Living bool `json:"living,omitempty"`
	// Images are the repositories of images that are executables of this machine, and the files,
	// besides those that are known.
	Images map[string]string `json:"images,omitempty"`
	// Clusters are in the order in which they were made.
	Clusters []*Cluster `json:"clusters"`
}

// Proxy is the address of the proxy by which everything inside is reached; empty where there is
// none.
func (s *State) Proxy() string {
	if !s.Living || s.ProxyPort == 0 {
		return ""
	}
	return fmt.Sprintf("http://127.0.0.1:%d", s.ProxyPort)
}

// Cluster is one cluster of the folder.
type Cluster struct {
	Name string `json:"name"`
	// Index is unique in the folder and decides the address ranges.
	Index int `json:"index"`
	// Port is the API server's, on loopback.
	Port int `json:"port"`
	// Parts are the processes the cluster consists of, in starting order.
	Parts []string `json:"parts"`
	// Nodes is the number of fake nodes.
	Nodes int `json:"nodes"`
	// Kubelets is the number of nodes that run pods for real.
	Kubelets int `json:"kubelets,omitempty"`
	// Wanted says that the cluster was brought up and not taken down since.
	Wanted bool `json:"wanted"`
}

// ServiceCIDR is the range of the cluster's Service addresses.
func (c *Cluster) ServiceCIDR() string { return fmt.Sprintf("10.%d.0.0/16", 96+c.Index) }

// PodCIDR is the range of the addresses of fake pods. It is multicast space on purpose: connecting
// a TCP socket to a multicast address fails at once on every operating system, so that a call to a
// fake pod (a webhook, an aggregated API) is refused instead of hanging until it times out.
func (c *Cluster) PodCIDR() string { return fmt.Sprintf("239.%d.0.0/16", 64+c.Index) }

// NodeIP is the address of the n-th fake node; it fails at once, too.
func (c *Cluster) NodeIP(n int) string { return fmt.Sprintf("239.%d.255.%d", 64+c.Index, 10+n) }

// ServiceIP is the n-th address of that range: the first is the API server's.
func (c *Cluster) ServiceIP(n int) string { return fmt.Sprintf("10.%d.0.%d", 96+c.Index, n) }

// DNS is the address of the cluster's DNS server, the usual one of the range.
func (c *Cluster) DNS() string { return c.ServiceIP(10) }

// KubeletIP is the address of the n-th node that runs pods for real, KubeletPods the range of its
// pods.
func (c *Cluster) KubeletIP(n int) string { return fmt.Sprintf("10.%d.255.%d", 160+c.Index, 10+n) }

// KubeletPods is the range of the addresses of the pods on that node.
func (c *Cluster) KubeletPods(n int) string { return fmt.Sprintf("10.%d.%d.0/24", 160+c.Index, n) }

// LoadBalancers is the range of the addresses of load balancers in front of them.
func (c *Cluster) LoadBalancers() string { return fmt.Sprintf("10.%d.254.0/24", 160+c.Index) }

// Server is the URL of the API server.
func (c *Cluster) Server() string { return fmt.Sprintf("https://127.0.0.1:%d", c.Port) }

// Has says whether the part belongs to the cluster.
func (c *Cluster) Has(part string) bool { return slices.Contains(c.Parts, part) }

// Cluster returns the cluster of that name, or nil.
func (s *State) Cluster(name string) *Cluster {
	for _, cluster := range s.Clusters {
		if cluster.Name == name {
			return cluster
		}
	}
	return nil
}

// Add makes a new cluster with the first free index.
func (s *State) Add(name string) *Cluster {
	index := 0
	for slices.ContainsFunc(s.Clusters, func(c *Cluster) bool { return c.Index == index }) {
		index++
	}
	cluster := &Cluster{Name: name, Index: index}
	s.Clusters = append(s.Clusters, cluster)
	return cluster
}

// Load reads the state; a folder without one gives an empty state.
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
		return nil, fmt.Errorf("%s has format %d, this program writes %d: take the clusters down with the program that made them, or remove the folder",
			d.stateFile(), state.Version, formatVersion)
	}
	return state, nil
}

// Save writes the state so that a reader never sees half of it.
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
