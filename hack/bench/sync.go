// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// most is the memory limit of the operator for 2,000 Shoots, the pages of its program included.
const (
	maxOperatorMemory = 500 << 20
	memoryLimitShoots = 2000
)

// measureSync measures the operator with a landscape in a Git repository.
func measureSync(ctx context.Context, s settings, report *Report) error {
	if _, err := exec.LookPath("git"); err != nil {
		report.MissingPeers = append(report.MissingPeers, "sync: git is missing")
		return nil
	}
	landscape := filepath.Join(s.work, "sync-landscape")
	synced := s
	synced.shoots = s.syncShoots
	l, err := writeLandscape(synced, landscape)
	if err != nil {
		return err
	}
	samples, err := s.runSyncBenchmark(ctx, "sync", landscape, "-pushes", fmt.Sprint(s.pushes))
	if err != nil {
		return err
	}
	report.Rows = append(report.Rows, syncRows(samples, fmt.Sprintf("1 Garden, %d Seeds, %d Shoots", len(l.Seeds), s.syncShoots))...)
	report.BrokenContracts = append(report.BrokenContracts, syncViolations(samples, s.syncShoots)...)
	return nil
}

// runSyncBenchmark runs the program of hack/bench/sync with a landscape, on its own clusters.
func (s settings) runSyncBenchmark(ctx context.Context, group, landscape string, more ...string) (samples map[string]Sample, err error) {
	work, state := filepath.Join(s.work, group), filepath.Join(s.work, group+"-clusters")
	if err := os.Mkdir(work, 0o700); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.cleanClusters(state)) }()
	kubeconfigs, err := s.startClusters(ctx, state, "runtime", "virtual")
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, s.syncProgram, append([]string{"-operator", s.pergola, "-runtime", kubeconfigs["runtime"], "-virtual", kubeconfigs["virtual"], "-landscape", landscape,
		"-key", filepath.Join(s.repository, "landscapes", "local", ".sops", "age.key"), "-work", work}, more...)...)
	if s.profile != "" {
		cmd.Args = append(cmd.Args, "-profile", s.profile)
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, s.log
	if err := cmd.Run(); err != nil {
		// without the log the error has to be enough
		text, _ := os.ReadFile(filepath.Join(work, "operator.log"))
		return nil, fmt.Errorf("%w\nend of the log of the operator:\n%s", err, tail(string(text)))
	}
	if err := json.Unmarshal(out.Bytes(), &samples); err != nil {
		return nil, fmt.Errorf("reading the samples: %w", err)
	}
	return samples, nil
}

func syncRows(samples map[string]Sample, size string) []Row {
	var rows []Row
	for _, r := range []struct{ name, title, floor string }{
		{"first", size + ": first sync", ""},
		{"idle", "a minute in which nothing changes", ""},
		{"webhook", "push of one Shoot to its first apply, webhook", "floor"},
		{"polling", "the same, polling the source every second", "floor"},
		{"polls", "a minute in which nothing changes, polling so", ""},
		{"reviewed", "an overlay of all Shoots, with a required review", ""},
		{"restart", "a restart, nothing changed", ""},
	} {
		sample, ok := samples[r.name]
		if !ok {
			continue
		}
		rows = append(rows, operatorRow(r.title, sample, samples, r.floor, "git fetch, one bare patch"))
	}
	return rows
}

// syncViolations checks memory and requests, which hardly depend on how busy the machine is.
func syncViolations(samples map[string]Sample, shoots int) []string {
	var broken []string
	for name, sample := range samples {
		if shoots <= memoryLimitShoots && sample.PeakBytes > maxOperatorMemory {
			broken = append(broken, fmt.Sprintf("the operator used %d MB (%s), and at most %d are allowed", sample.PeakBytes>>20, name, maxOperatorMemory>>20))
		}
	}
	for _, name := range []string{"idle", "polls"} {
		for request, n := range samples[name].Requests {
			if strings.HasSuffix(request, " leases") || strings.HasPrefix(request, "watch ") || request == "probe health" || request == "git info/refs" && name == "polls" {
				continue
			}
			broken = append(broken, fmt.Sprintf("%d times %s while nothing changes (%s): only lease renewals, watches, health probes every 30 s and one refs request at a time are allowed", n, request, name))
		}
	}
	return broken
}
