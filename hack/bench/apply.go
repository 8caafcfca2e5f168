// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
)

// Each way to apply has its own namespace, and finds no objects of another way.
const (
	pergolaNamespace = "bench-pergola"
	floorNamespace   = "bench-floor"
	kubectlNamespace = "bench-kubectl"
)

type applyCases struct {
	settings
	kubeconfig, manifest string
	kubectlVersion       string // kubectl's version
}

// measureApply measures the engine on its own API server.
func measureApply(ctx context.Context, s settings, report *Report) (err error) {
	a := applyCases{settings: s, manifest: filepath.Join(s.work, "objects.yaml")}
	state := filepath.Join(s.work, "cluster")
	defer func() { err = errors.Join(err, s.cleanClusters(state)) }()
	cluster, err := s.startAPIServer(ctx, state)
	if err != nil {
		return err
	}
	a.kubeconfig = cluster.Kubeconfig
	if s.kubectl == "" {
		report.MissingPeers = append(report.MissingPeers, "kubectl apply: kubectl is not on the PATH")
	} else {
		a.kubectlVersion = kubectlVersion(ctx, s.kubectl)
		if err := a.runCase(ctx, "manifest", kubectlNamespace, "-file", a.manifest); err != nil {
			return err
		}
	}
	runs := max(1, s.runs-2)

	row, err := measure(ctx, s, fmt.Sprintf("apply %d objects to an empty cluster, as a command", s.objects), runs, a.applyMethods("apply", true))
	if err != nil {
		return err
	}
	report.Rows = append(report.Rows, row)

	if row, err = measure(ctx, s, "apply them again, unchanged, after a restart", runs, a.applyMethods("apply", false)); err != nil {
		return err
	}
	report.Rows = append(report.Rows, row)
	report.BrokenContracts = append(report.BrokenContracts, unchangedViolations(row, s.objects)...)

	row, err = measure(ctx, s, "apply them again, unchanged, same process", runs, []*Case{
		{Name: "engine", Subject: true, MeasuredInside: true, Command: a.command("apply-again", pergolaNamespace)},
		{Name: "floor: bare patches, 16 at a time", MeasuredInside: true, Command: a.command("floor-again", floorNamespace)},
	})
	if err != nil {
		return err
	}
	report.Rows = append(report.Rows, row)
	report.BrokenContracts = append(report.BrokenContracts, unchangedViolations(row, s.objects)...)
	return nil
}

// applyMethods returns the three ways to apply; wipe empties the namespace before each run.
func (a applyCases) applyMethods(command string, wipe bool) []*Case {
	before := func(namespace string) func(context.Context) error {
		if !wipe {
			return nil
		}
		return func(ctx context.Context) error { return a.runCase(ctx, "wipe", namespace) }
	}
	cases := []*Case{
		{Name: "engine", Subject: true, Command: a.command(command, pergolaNamespace), Before: before(pergolaNamespace)},
		{Name: "floor: bare patches, 16 at a time", Command: a.command("floor", floorNamespace), Before: before(floorNamespace)},
	}
	if a.kubectl != "" {
		cases = append(cases, &Case{
			Name: "peer: kubectl " + a.kubectlVersion + " apply --server-side", Before: before(kubectlNamespace), Env: []string{"KUBECACHEDIR=" + filepath.Join(a.work, "kubectl")},
			Command: []string{a.kubectl, "--kubeconfig", a.kubeconfig, "apply", "--server-side", "-f", a.manifest},
		})
	}
	return cases
}

// unchangedViolations returns violations of the contract: unchanged objects cost some lists and
// watches, and no request for each object.
func unchangedViolations(row Row, objects int) []string {
	var broken []string
	for _, r := range row.Results {
		if !r.Subject {
			continue
		}
		if r.Requests == nil {
			broken = append(broken, row.Title+": the requests were not counted")
		}
		for verb, n := range r.Requests {
			switch verb {
			case "list", "watch", "discovery":
				if n < objects/10 {
					continue
				}
			}
			broken = append(broken, fmt.Sprintf("%s: %d requests %s, and unchanged objects must cause only some lists and watches", row.Title, n, verb))
		}
	}
	return broken
}

func (a applyCases) command(name, namespace string, more ...string) []string {
	return append([]string{a.cases, name, "-kubeconfig", a.kubeconfig, "-namespace", namespace, "-objects", strconv.Itoa(a.objects)}, more...)
}

func (a applyCases) runCase(ctx context.Context, name, namespace string, more ...string) error {
	command := a.command(name, namespace, more...)
	out, err := exec.CommandContext(ctx, command[0], command[1:]...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", name, err, tail(string(out)))
	}
	return nil
}

// kubectlVersion is part of the name, because versions differ much; some builds have no version.
func kubectlVersion(ctx context.Context, kubectl string) string {
	var answer struct {
		ClientVersion struct {
			GitVersion string `json:"gitVersion"`
		} `json:"clientVersion"`
	}
	out, err := exec.CommandContext(ctx, kubectl, "version", "--client", "-o", "json").Output()
	if err != nil || json.Unmarshal(out, &answer) != nil {
		return "(unknown version)"
	}
	return answer.ClientVersion.GitVersion
}
