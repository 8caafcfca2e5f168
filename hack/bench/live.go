// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
)

// measureLive measures commands for people on call, diff --live and tree, on clusters with
// landscapes/local.
func measureLive(ctx context.Context, s settings, report *Report) (err error) {
	if s.earlierBuild == "" {
		report.MissingPeers = append(report.MissingPeers, "the peer of diff --live and tree: there is no earlier build")
	}
	landscape := filepath.Join(s.repository, "landscapes", "local")
	state := filepath.Join(s.work, "live")
	defer func() { err = errors.Join(err, s.cleanClusters(state)) }()
	clusters, err := s.startClusters(ctx, state, "runtime", "virtual", "local")
	if err != nil {
		return err
	}
	var access []string
	for _, name := range slices.Sorted(maps.Keys(clusters)) {
		access = append(access, "--kubeconfig", name+"="+clusters[name])
	}
	apply := exec.CommandContext(ctx, s.pergola, append([]string{"apply", landscape}, access...)...)
	apply.Stdout, apply.Stderr = s.log, s.log
	if err := apply.Run(); err != nil {
		return fmt.Errorf("apply %s: %w", landscape, err)
	}
	for _, question := range []struct {
		title string
		args  []string
	}{
		{"diff --live of landscapes/local", append([]string{"diff", landscape, "--live"}, access...)},
		{"tree of the runtime cluster", []string{"tree", "--kubeconfig", clusters["runtime"]}},
	} {
		cases := append([]*Case{{Name: "pergola", Subject: true, Command: append([]string{s.pergola}, question.args...)}}, s.earlierCases(question.args...)...)
		for _, c := range cases {
			// controllers of the cluster may have changed something meanwhile
			c.AllowsFindings = true
		}
		row, err := measure(ctx, s, question.title, s.runs, cases)
		if err != nil {
			return err
		}
		report.Rows = append(report.Rows, row)
	}
	return nil
}
