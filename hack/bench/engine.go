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
)

// requestsOfNewBundle is a contract: the maximum of requests for a new bundle of four objects.
const requestsOfNewBundle = 9

// scenario is a row of the table.
type scenario struct {
	name, title string
	// floor says that bare patches do the same.
	floor bool
}

func engineScenarios(s settings) []scenario {
	return []scenario{
		{"empty", fmt.Sprintf("%d bundles of 4 objects, from empty", s.bundles), true},
		{"restart", "the same, unchanged, after a restart", true},
		{"again", "the same, unchanged, requested in the same process", true},
		{"change", fmt.Sprintf("one object of one bundle changed, %d times", s.changes), true},
		{"drift", fmt.Sprintf("%d objects drift at once", min(s.drift, s.bundles)), true},
	}
}

// measureEngine measures the resource manager, bare patches and Flux one after the other, each on
// its own API server.
func measureEngine(ctx context.Context, s settings, report *Report) error {
	contenders := []struct{ name, label, controller string }{
		{"pergola", "pergola resource-manager", s.pergola},
		{"floor", "floor: bare patches, 16 at a time", ""},
		{"flux", "peer: Flux kustomize-controller v1.7.3", s.flux},
	}
	samples := map[string]map[string]Sample{}
	for _, c := range contenders {
		if c.name == "flux" && s.flux == "" {
			report.MissingPeers = append(report.MissingPeers, "Flux: the program is missing")
			continue
		}
		var err error
		if samples[c.name], err = s.runContender(ctx, c.name, c.controller); err != nil {
			return err
		}
	}
	for _, scenario := range engineScenarios(s) {
		row := Row{Title: scenario.title, Runs: 1}
		for _, c := range contenders {
			if sample, ok := samples[c.name][scenario.name]; ok {
				row.Results = append(row.Results, Result{Name: c.label, Subject: c.name == "pergola", Sample: sample, AllSeconds: []float64{sample.Seconds}})
			}
		}
		row.fillRatios()
		report.Rows = append(report.Rows, row)
	}
	report.BrokenContracts = append(report.BrokenContracts, engineViolations(samples["pergola"], s.bundles)...)
	return nil
}

// runContender runs one contender through all scenarios.
func (s settings) runContender(ctx context.Context, name, controller string) (samples map[string]Sample, err error) {
	state := filepath.Join(s.work, name)
	defer func() { err = errors.Join(err, s.cleanClusters(state)) }()
	cluster, err := s.startAPIServer(ctx, state)
	if err != nil {
		return nil, err
	}
	log := filepath.Join(s.work, name+".log")
	cmd := exec.CommandContext(ctx, s.engine, "measure", "-contender", name, "-kubeconfig", cluster.Kubeconfig,
		"-apiserver", fmt.Sprint(cluster.APIServer), "-etcd", fmt.Sprint(cluster.Etcd), "-controller", controller, "-log", log,
		"-definitions", s.fluxDefinitions, "-bundles", fmt.Sprint(s.bundles), "-changes", fmt.Sprint(s.changes), "-drift", fmt.Sprint(s.drift),
		fmt.Sprintf("-wait=%t", s.fluxWait))
	if name == "pergola" && s.profile != "" {
		cmd.Args = append(cmd.Args, "-profile", s.profile)
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, s.log
	if err := cmd.Run(); err != nil {
		text, _ := os.ReadFile(log)
		return nil, fmt.Errorf("%w\nend of the log of %s:\n%s", err, name, tail(string(text)))
	}
	if err := json.Unmarshal(out.Bytes(), &samples); err != nil {
		return nil, fmt.Errorf("reading the samples of %s: %w", name, err)
	}
	return samples, nil
}

// engineViolations checks requests, whose number does not depend on how busy the machine is.
func engineViolations(samples map[string]Sample, bundles int) []string {
	var broken []string
	if n := samples["empty"].perUnit(); n > requestsOfNewBundle+0.1 {
		broken = append(broken, fmt.Sprintf("%.1f requests for a new bundle, and at most %d are allowed", n, requestsOfNewBundle))
	}
	for _, name := range []string{"restart", "again"} {
		for request, n := range samples[name].Requests {
			if n >= max(2, bundles/10) {
				broken = append(broken, fmt.Sprintf("%d times %s for unchanged bundles (%s), which must cause only some lists and watches", n, request, name))
			}
		}
	}
	return broken
}
