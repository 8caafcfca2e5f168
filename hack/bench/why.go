// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"path/filepath"
)

// measureWhy measures `pergola why` for fields of a large component of the Garden, and of a Shoot.
func measureWhy(ctx context.Context, s settings, report *Report) error {
	if s.earlierBuild == "" {
		report.MissingPeers = append(report.MissingPeers, "the peer of why and render: there is no earlier build")
	}
	landscape := filepath.Join(s.repository, "landscapes", "local")
	for _, question := range []string{
		"Deployment garden/virtual-garden-kube-apiserver.spec.replicas",
		"Deployment shoot--local--local/kube-apiserver.spec.replicas",
	} {
		args := []string{"why", landscape, question, "--offline"}
		row, err := measure(ctx, s, "why "+question, s.runs, append([]*Case{
			{Name: "pergola why", Subject: true, Command: append([]string{s.pergola}, args...)},
		}, s.earlierCases(args...)...))
		if err != nil {
			return err
		}
		report.Rows = append(report.Rows, row)
	}
	return nil
}

// earlierCases returns the same command of an earlier build, if there is one.
func (s settings) earlierCases(args ...string) []*Case {
	if s.earlierBuild == "" {
		return nil
	}
	return []*Case{{Name: "peer: an earlier build", Command: append([]string{s.earlierBuild}, args...)}}
}
