// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"

	"github.com/pergola-dev/pergola/hack/local/cluster"
	"github.com/pergola-dev/pergola/hack/local/hold"
	"github.com/pergola-dev/pergola/hack/local/statedir"
)

// insideNamespacesEnv is set for this program inside the namespaces of a state folder. The process
// that started it there holds the lock.
const insideNamespacesEnv = "PERGOLA_LOCAL_INSIDE"

func isInNamespaces() bool { return os.Getenv(insideNamespacesEnv) != "" }

// runInNamespaces runs this program inside the namespaces, with out as its stdout. A finding that
// it reports is not an error of again.
func runInNamespaces(ctx context.Context, holder *hold.Holder, self string, out *os.File, args ...string) error {
	folder, err := os.Getwd()
	if err != nil {
		return fmt.Errorf("finding the working folder: %w", err)
	}
	code, err := holder.Run(ctx, hold.Command{
		Path: self, Args: args, Env: append(os.Environ(), insideNamespacesEnv+"=1"), Dir: folder, Stdin: os.Stdin, Stdout: out, Stderr: os.Stderr,
	})
	switch {
	case err != nil:
		return err
	case code == exitFinding:
		return errFinding
	case code != 0:
		return errAlreadyPrinted
	}
	return nil
}

// errAlreadyPrinted ends a command with exit code 2; the command has printed its errors itself.
var errAlreadyPrinted = errors.New("it failed inside the namespaces")

// findHolder returns the holder of the clusters of a state folder, or nil if they have none, or if
// the caller is inside it.
func findHolder(m *cluster.Manager) (*hold.Holder, error) {
	if isInNamespaces() {
		return nil, nil
	}
	return hold.Find(string(m.Dir))
}

// statusOf returns the status of a state folder's clusters, with process ids as the caller sees
// them.
func statusOf(ctx context.Context, m *cluster.Manager) (cluster.Status, error) {
	holder, err := findHolder(m)
	if err != nil {
		return cluster.Status{}, err
	}
	if holder == nil {
		return m.Status(ctx)
	}
	status, err := statusInNamespaces(ctx, m, holder)
	if err != nil {
		return status, err
	}
	outside, err := holder.HostPIDs()
	if err != nil {
		return status, err
	}
	for _, c := range append(status.Clusters, cluster.ClusterStatus{Parts: status.Shared}) {
		for i := range c.Parts {
			c.Parts[i].PID = outside[c.Parts[i].PID]
		}
	}
	return status, nil
}

// statusInNamespaces gets the status from inside, where the processes are visible.
func statusInNamespaces(ctx context.Context, m *cluster.Manager, holder *hold.Holder) (status cluster.Status, err error) {
	out, in, err := os.Pipe()
	if err != nil {
		return status, fmt.Errorf("creating a pipe: %w", err)
	}
	defer out.Close()
	decoded := make(chan error, 1)
	go func() { decoded <- json.NewDecoder(out).Decode(&status) }()
	err = runInNamespaces(ctx, holder, m.LocalExecutable, in, "status", "-o", "json", "--dir", string(m.Dir), "--bin", m.Source.Bin)
	_ = in.Close()
	unreadable := <-decoded
	switch {
	case err != nil && !errors.Is(err, errFinding):
		return status, err
	case unreadable != nil:
		return status, fmt.Errorf("reading the status of the inside: %w", unreadable)
	}
	return status, nil
}

// startLivingClusters brings clusters up inside the namespaces and forwards their ports. The caller
// holds the lock.
func startLivingClusters(ctx context.Context, m *cluster.Manager, options cluster.Options) error {
	// Go modules cannot be downloaded inside: there is no network.
	if err := m.BuildExecutables(ctx, options); err != nil {
		return err
	}
	holder, err := hold.Ensure(ctx, string(m.Dir), m.LocalExecutable)
	if err != nil {
		return err
	}
	state, err := forwardClusterPorts(ctx, m, holder, options.Clusters)
	if err != nil {
		return err
	}
	if err := runInNamespaces(ctx, holder, m.LocalExecutable, os.Stdout, os.Args[1:]...); err != nil {
		return err
	}
	for _, c := range state.Clusters {
		// the proxy resolves names of the first cluster, and all clusters know the landscape's
		if c.Name == options.Clusters[0] {
			return holder.SetResolver(ctx, net.JoinHostPort(c.DNS(), "53"))
		}
	}
	return nil
}

// forwardClusterPorts chooses the ports by which clusters and the proxy are reached from outside,
// which are the same inside.
func forwardClusterPorts(ctx context.Context, m *cluster.Manager, holder *hold.Holder, names []string) (*statedir.State, error) {
	state, err := m.Dir.Load()
	if err != nil {
		return nil, err
	}
	state.Living = true
	for _, name := range names {
		c := state.Cluster(name)
		if c == nil {
			c = state.Add(name)
		}
		if err := forwardPort(state, &c.Port, func(port int) error {
			return holder.Forward(ctx, port, net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		}); err != nil {
			return nil, err
		}
	}
	if err := forwardPort(state, &state.ProxyPort, func(port int) error { return holder.Proxy(ctx, port) }); err != nil {
		return nil, err
	}
	return state, m.Dir.Save(state)
}

// forwardPort keeps a port that is available and replaces another one.
func forwardPort(state *statedir.State, port *int, have func(port int) error) error {
	if *port != 0 && have(*port) == nil {
		return nil
	}
	const attempts = 3 // another process may take it meanwhile
	for attempt := 1; ; attempt++ {
		free, err := statedir.FreePort(state.Ports())
		if err != nil {
			return err
		}
		if err = have(free); err == nil {
			*port = free
			return nil
		}
		if attempt == attempts {
			return err
		}
	}
}
