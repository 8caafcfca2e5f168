// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pergola-dev/pergola/hack/local/process"
	"github.com/pergola-dev/pergola/hack/local/statedir"
)

// Options select the clusters to bring up, and configure them.
type Options struct {
	// Clusters are the names.
	Clusters []string
	// Nodeless names the clusters that store objects but run no pods.
	Nodeless []string
	// Parts are the parts of every cluster; nil means all that make sense for it.
	Parts []string
	// Nodes is the number of fake nodes of a cluster that runs pods.
	Nodes int
	// Kubelets is the number of additional nodes that run living pods, if the images are
	// executables of this machine. They work only in the namespaces of package hold. With 0 all
	// pods are played.
	Kubelets int
	// Images map further image repositories to executables of this machine. They are stored in the
	// state.
	Images map[string]string
	// VirtualGarden is a virtual garden that is only played.
	VirtualGarden VirtualGarden
	// Timeout bounds the time from the first process to the last cluster being ready.
	Timeout time.Duration
}

func (o Options) clusterParts(name string) []string {
	switch {
	case o.Parts != nil:
		return o.Parts
	case slices.Contains(o.Nodeless, name):
		return nodelessParts()
	}
	return AllParts()
}

// Up brings the clusters up and waits until they are ready. It does not touch parts that run as
// they should, and restarts dead parts. Other clusters of the folder do not change. If Up fails or
// ctx ends, started parts continue to run; Down ends them.
func (m *Manager) Up(ctx context.Context, options Options) error {
	state, err := m.assignResources(options)
	if err != nil {
		return err
	}
	var needed []string
	for _, name := range options.Clusters {
		needed = append(needed, binaryNames(state.Cluster(name).Parts)...)
	}
	paths, err := m.Source.Ensure(ctx, needed)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, options.Timeout, fmt.Errorf("not ready after %s", options.Timeout))
	defer cancel()
	if err := m.setInputs(paths, state); err != nil {
		return err
	}
	if err := m.startEtcd(ctx, state); err != nil {
		return err
	}
	if err := m.startClusters(ctx, state, options.Clusters); err != nil {
		return err
	}
	return m.playVirtualGarden(ctx, state, options.VirtualGarden)
}

// assignResources assigns ports, indexes and parts to the named clusters and records them.
func (m *Manager) assignResources(options Options) (*statedir.State, error) {
	state, err := m.Dir.Load()
	if err != nil {
		return nil, err
	}
	for _, name := range options.Clusters {
		c := state.Cluster(name)
		if c == nil {
			c = state.Add(name)
		}
		c.Parts, c.ShouldRun, c.Nodes, c.Kubelets = options.clusterParts(name), true, 0, 0
		if c.HasPart(PartKwok) {
			c.Nodes = options.Nodes
		}
		if c.HasPart(PartScheduler) && c.HasPart(PartControllerManager) && c.HasPart(PartKwok) {
			c.Kubelets = options.Kubelets
			c.Parts = append(c.Parts, livingParts(c.Kubelets)...)
		}
	}
	state.Living = options.Kubelets > 0
	if state.Images == nil {
		state.Images = map[string]string{}
	}
	maps.Copy(state.Images, options.Images)
	_, etcdRuns, err := m.readProcess(sharedName, PartEtcd)
	if err != nil {
		return nil, err
	}
	if !etcdRuns {
		if err := claimPorts(state, &state.EtcdPort, &state.EtcdPeerPort); err != nil {
			return nil, err
		}
	}
	for _, name := range options.Clusters {
		c := state.Cluster(name)
		_, runs, err := m.readProcess(name, PartAPIServer)
		if err != nil {
			return nil, err
		}
		if !runs {
			if err := claimPorts(state, &c.Port); err != nil {
				return nil, err
			}
		}
	}
	return state, m.Dir.Save(state)
}

// claimPorts keeps each port that is still free and replaces the others.
func claimPorts(state *statedir.State, ports ...*int) error {
	for _, port := range ports {
		if *port != 0 && statedir.WaitForPort(*port) {
			continue
		}
		free, err := statedir.FreePort(state.Ports())
		if err != nil {
			return err
		}
		*port = free
	}
	return nil
}

func (m *Manager) startEtcd(ctx context.Context, state *statedir.State) error {
	renewed, err := m.ensureSharedCredentials(m.Now())
	if err != nil {
		return err
	}
	if renewed {
		// Every process that uses the old certificates must end.
		if err := m.stopAll(ctx, state); err != nil {
			return err
		}
	}
	return m.retryPorts(state, []*int{&state.EtcdPort, &state.EtcdPeerPort}, func() error {
		m.etcdPort = state.EtcdPort
		if err := m.ensureRunning(ctx, sharedName, PartEtcd, m.etcdSpec(state)); err != nil {
			return err
		}
		client, err := m.etcdClient(state)
		if err != nil {
			return err
		}
		return m.waitFor(ctx, "etcd to answer", []watchedPart{{cluster: sharedName, part: PartEtcd}}, func(ctx context.Context) error {
			return client.Get(ctx, "/health", nil)
		})
	})
}

// retryPorts runs start again, with other ports, if the started part died because another process
// took its port.
func (m *Manager) retryPorts(state *statedir.State, ports []*int, start func() error) error {
	const attempts = 3
	for attempt := 1; ; attempt++ {
		err := start()
		var died *PartEndedError
		if err == nil || attempt == attempts || !errors.As(err, &died) || !strings.Contains(died.Error(), "address already in use") {
			return err
		}
		m.printLine("%s/%s: its port is in use, trying another", died.Cluster, died.Part)
		if err := m.replacePorts(state, ports); err != nil {
			return err
		}
	}
}

func (m *Manager) replacePorts(state *statedir.State, ports []*int) error {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	for _, port := range ports {
		*port = 0
	}
	if err := claimPorts(state, ports...); err != nil {
		return err
	}
	return m.Dir.Save(state)
}

// startClusters brings the clusters up in parallel and reports all that fail.
func (m *Manager) startClusters(ctx context.Context, state *statedir.State, names []string) error {
	failures := make([]error, len(names))
	var group sync.WaitGroup
	for i, name := range names {
		group.Go(func() {
			c := state.Cluster(name)
			err := m.retryPorts(state, []*int{&c.Port}, func() error { return m.startCluster(ctx, c) })
			if err != nil {
				failures[i] = fmt.Errorf("cluster %s: %w", name, err)
			}
		})
	}
	group.Wait()
	return errors.Join(append(failures, m.writeMerged(state))...)
}

func (m *Manager) startCluster(ctx context.Context, c *statedir.Cluster) error {
	start := time.Now()
	renewed, err := m.ensureCredentials(c, m.Now())
	if err != nil {
		return err
	}
	if err := m.stopOutdated(ctx, c, renewed); err != nil {
		return err
	}
	if err := m.ensureRunning(ctx, c.Name, PartAPIServer, m.partSpec(c, PartAPIServer)); err != nil {
		return err
	}
	client, err := m.Client(c)
	if err != nil {
		return err
	}
	base := []watchedPart{{cluster: sharedName, part: PartEtcd}, {cluster: c.Name, part: PartAPIServer}}
	if err := m.waitFor(ctx, "its API server", base, func(ctx context.Context) error { return checkReady(ctx, client) }); err != nil {
		return err
	}
	if err := m.startParts(ctx, c, client); err != nil {
		return err
	}
	everything := base
	for _, part := range c.Parts {
		everything = append(everything, watchedPart{cluster: c.Name, part: part})
	}
	if err := m.waitFor(ctx, "it to be ready", everything, func(ctx context.Context) error { return m.checkSchedulable(ctx, client, c) }); err != nil {
		return err
	}
	m.printLine("%s: ready after %s at %s", c.Name, time.Since(start).Round(100*time.Millisecond), c.Server())
	return nil
}

// stopOutdated stops the parts that the cluster no longer has and, with new certificates, all
// parts.
func (m *Manager) stopOutdated(ctx context.Context, c *statedir.Cluster, all bool) error {
	parts, err := m.recordedParts(c.Name)
	if err != nil {
		return err
	}
	if slices.Contains(parts, PartStages) && !c.HasPart(PartStages) {
		parts = append([]string{PartStages}, parts...) // first, because it restarts the next one
	}
	for _, part := range parts {
		outdated := !c.HasPart(part) && (part != partExtensions || !c.HasPart(PartStages))
		if all || outdated {
			if err := process.Stop(ctx, m.Dir.Record(c.Name, part), stopGrace(part)); err != nil {
				return fmt.Errorf("stopping %s: %w", part, err)
			}
		}
	}
	return nil
}

// ensureRunning starts the part unless it already runs with this spec.
func (m *Manager) ensureRunning(ctx context.Context, cluster, part string, spec process.Spec) error {
	record, alive, err := m.readProcess(cluster, part)
	if err != nil {
		return err
	}
	if alive && record.Digest == spec.Digest() {
		return nil
	}
	if alive {
		m.printLine("%s: restarting %s, because its settings have changed", cluster, part)
	} else if record != nil && !record.IsFromEarlierBoot() {
		m.printLine("%s", m.newPartEndedError(cluster, part).Error())
		m.printLine("%s: starting %s again", cluster, part)
	}
	recordPath := m.Dir.Record(cluster, part)
	if err := process.Stop(ctx, recordPath, stopGrace(part)); err != nil {
		return fmt.Errorf("stopping %s: %w", part, err)
	}
	// A part that is started after ctx ends would never be checked.
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if _, err := process.Start(spec, recordPath); err != nil {
		return fmt.Errorf("starting %s: %w", part, err)
	}
	return nil
}

// watchedPart identifies a part that must not end during a wait.
type watchedPart struct {
	cluster, part string
	// ignoresSIGTERM means that the part does not end on SIGTERM.
	ignoresSIGTERM bool
}

// waitFor calls check until it succeeds. It fails early, with the end of the log, if a part dies,
// and with the last error of check when ctx ends.
func (m *Manager) waitFor(ctx context.Context, what string, parts []watchedPart, check func(context.Context) error) error {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		err := check(ctx)
		if err == nil {
			return nil
		}
		for _, p := range parts {
			_, alive, recordErr := m.readProcess(p.cluster, p.part)
			if recordErr != nil {
				return recordErr
			}
			if !alive {
				return m.newPartEndedError(p.cluster, p.part)
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w (last: %s)", what, context.Cause(ctx), strings.TrimSpace(err.Error()))
		case <-tick.C:
		}
	}
}
