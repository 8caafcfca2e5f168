// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"sync"
	"time"

	"github.com/pergola-dev/pergola/hack/local/binaries"
	"github.com/pergola-dev/pergola/hack/local/process"
	"github.com/pergola-dev/pergola/hack/local/stages"
	"github.com/pergola-dev/pergola/hack/local/statedir"
)

// Manager manages the clusters of one state folder.
type Manager struct {
	Dir    statedir.Dir
	Source binaries.Source
	// LocalExecutable is the executable that has the command keep-stages.
	LocalExecutable string
	// PergolaExecutable is the executable that pods of Pergola's image run. It need not exist.
	PergolaExecutable string
	// Out takes progress messages for people.
	Out io.Writer
	// Now is the clock for the validity of certificates.
	Now func() time.Time

	executablePaths binaries.Paths
	etcdPort        int
	clusters        []*statedir.Cluster
	// proxy goes into people's kubeconfigs: other servers, such as a Shoot's API server, are behind
	// it.
	proxy  string
	images map[string]string
	// builtinStages and otherStages are Stages in the format of kwok's --config.
	builtinStages, otherStages []byte

	mutex sync.Mutex // guards Out, and the ports in the state during parallel starts
}

func (m *Manager) printLine(format string, args ...any) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	fmt.Fprintf(m.Out, format+"\n", args...)
}

// setInputs sets the fields that the parts depend on.
func (m *Manager) setInputs(paths binaries.Paths, state *statedir.State) error {
	all, err := stages.Load()
	if err != nil {
		return err
	}
	builtin, others := stages.SplitBuiltin(stages.ForPodMode(all, state.Living))
	if m.builtinStages, err = stages.Encode(builtin); err != nil {
		return err
	}
	if m.otherStages, err = stages.Encode(others); err != nil {
		return err
	}
	m.executablePaths, m.etcdPort, m.clusters, m.images = paths, state.EtcdPort, state.Clusters, state.Images
	m.proxy = state.ProxyURL()
	return nil
}

// BuildExecutables builds the executables that clusters need, so that Up finds them.
func (m *Manager) BuildExecutables(ctx context.Context, options Options) error {
	var needed []string
	for _, name := range options.Clusters {
		parts := options.clusterParts(name)
		if options.Kubelets > 0 {
			parts = append(parts, PartAddons)
		}
		needed = append(needed, binaryNames(parts)...)
	}
	_, err := m.Source.Ensure(ctx, needed)
	return err
}

// PartEndedError reports that a part ended although it should run.
type PartEndedError struct {
	Cluster, Part string
	// Log is the part's log and Tail its last lines.
	Log  string
	Tail []string
}

// Error implements error; its text ends with the end of the log.
func (e *PartEndedError) Error() string {
	text := fmt.Sprintf("%s/%s has ended unexpectedly; the end of %s:", e.Cluster, e.Part, e.Log)
	if len(e.Tail) == 0 {
		return text + " it is empty"
	}
	for _, line := range e.Tail {
		text += "\n    " + line
	}
	return text
}

const tailLines = 15

func (m *Manager) newPartEndedError(cluster, part string) *PartEndedError {
	log := m.Dir.Log(cluster, part)
	return &PartEndedError{Cluster: cluster, Part: part, Log: log, Tail: process.ReadTail(log, tailLines)}
}

func (m *Manager) readProcess(cluster, part string) (*process.Record, bool, error) {
	record, err := process.ReadRecord(m.Dir.Record(cluster, part))
	if err != nil {
		return nil, false, err
	}
	return record, record.IsAlive(), nil
}

// recordedParts lists the parts of a cluster that have a process record, dead or alive.
func (m *Manager) recordedParts(cluster string) ([]string, error) {
	files, err := filepath.Glob(m.Dir.Record(cluster, "*"))
	if err != nil {
		return nil, fmt.Errorf("listing processes of %s: %w", cluster, err)
	}
	var parts []string
	for _, file := range files {
		name := filepath.Base(file)
		parts = append(parts, name[:len(name)-len(filepath.Ext(name))])
	}
	return parts, nil
}
