// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/pergola-dev/pergola/hack/local/process"
	"github.com/pergola-dev/pergola/hack/local/statedir"
)

// stopGrace is how long a part may take to end before it is killed. It is short because the data is
// disposable.
func stopGrace(part string) time.Duration {
	if _, kubelet := kubeletNumber(part); kubelet {
		return 20 * time.Second // its pods get 10 s
	}
	if part == PartAPIServer {
		return 10 * time.Second
	}
	return 5 * time.Second
}

// Down ends all processes of the folder and keeps its data.
func (m *Manager) Down(ctx context.Context) error {
	state, err := m.Dir.Load()
	if err != nil {
		return err
	}
	for _, c := range state.Clusters {
		c.ShouldRun = false
	}
	if err := m.stopAll(ctx, state); err != nil {
		return err
	}
	return m.Dir.Save(state)
}

// stopAll stops the parts in reverse order of dependency: an API server that has lost etcd takes a
// minute to end.
func (m *Manager) stopAll(ctx context.Context, state *statedir.State) error {
	names, err := m.recordedClusters(state)
	if err != nil {
		return err
	}
	// These start processes themselves; once they have ended, the list of processes is final.
	var keepers []watchedPart
	for _, name := range names {
		keepers = append(keepers, watchedPart{cluster: name, part: PartStages})
	}
	if err := m.stopGroup(ctx, keepers); err != nil {
		return err
	}
	var clients, servers, last []watchedPart
	for _, name := range names {
		parts, err := m.recordedParts(name)
		if err != nil {
			return err
		}
		for _, part := range parts {
			switch {
			case name == sharedName:
				last = append(last, watchedPart{cluster: name, part: part})
			case part == PartAPIServer:
				servers = append(servers, watchedPart{cluster: name, part: part})
			default:
				clients = append(clients, watchedPart{cluster: name, part: part})
			}
		}
	}
	_, etcdRuns, err := m.readProcess(sharedName, PartEtcd)
	if err != nil {
		return err
	}
	for i := range servers {
		servers[i].ignoresSIGTERM = !etcdRuns
	}
	var failures []error
	for _, group := range [][]watchedPart{clients, servers, last} {
		failures = append(failures, m.stopGroup(ctx, group))
	}
	return errors.Join(failures...)
}

func (m *Manager) stopGroup(ctx context.Context, parts []watchedPart) error {
	failures := make([]error, len(parts))
	var group sync.WaitGroup
	for i, p := range parts {
		group.Go(func() {
			patience := stopGrace(p.part)
			if p.ignoresSIGTERM {
				patience = 0
			}
			if err := process.Stop(ctx, m.Dir.Record(p.cluster, p.part), patience); err != nil {
				failures[i] = fmt.Errorf("stopping %s/%s: %w", p.cluster, p.part, err)
			}
		})
	}
	group.Wait()
	return errors.Join(failures...)
}

// recordedClusters lists the clusters that have process records, including clusters missing from
// the state.
func (m *Manager) recordedClusters(state *statedir.State) ([]string, error) {
	names := []string{sharedName}
	for _, c := range state.Clusters {
		names = append(names, c.Name)
	}
	folders, err := filepath.Glob(filepath.Dir(m.Dir.Record("*", "x")))
	if err != nil {
		return nil, fmt.Errorf("listing processes: %w", err)
	}
	for _, folder := range folders {
		if name := filepath.Base(folder); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names, nil
}

// Clean ends all processes and removes the folder.
func (m *Manager) Clean(ctx context.Context) error {
	state, err := m.Dir.Load()
	if err != nil {
		// Processes are found by their records; a broken state must not prevent stopping them.
		state = &statedir.State{}
	}
	if err := m.stopAll(ctx, state); err != nil {
		return err
	}
	if err := os.RemoveAll(string(m.Dir)); err != nil {
		return fmt.Errorf("removing state folder: %w", err)
	}
	return nil
}
