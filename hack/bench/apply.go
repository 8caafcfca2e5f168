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
	ofPergola = "bench-pergola"
	ofFloor   = "bench-floor"
	ofKubectl = "bench-kubectl"
)

type applyCases struct {
	settings
	kubeconfig, manifest string
	version              string // kubectl's version
}

// apply measures the engine on an API server of its own.
func apply(ctx context.Context, s settings, report *Report) (err error) {
	a := applyCases{settings: s, manifest: filepath.Join(s.work, "objects.yaml")}
	state := filepath.Join(s.work, "cluster")
	defer func() { err = errors.Join(err, s.stop(state)) }()
	cluster, err := s.start(ctx, state)
	if err != nil {
		return err
	}
	a.kubeconfig = cluster.Kubeconfig
	if s.kubectl == "" {
		report.LeftOut = append(report.LeftOut, "kubectl apply, there is no kubectl on the PATH")
	} else {
		a.version = kubectlVersion(ctx, s.kubectl)
		if err := a.do(ctx, "manifest", ofKubectl, "-file", a.manifest); err != nil {
			return err
		}
	}
	runs := max(1, s.runs-2)

	row, err := measure(ctx, s, fmt.Sprintf("apply %d objects to an empty cluster, as a command", s.objects), runs, a.ways("apply", true))
	if err != nil {
		return err
	}
	report.Rows = append(report.Rows, row)

	if row, err = measure(ctx, s, "apply them again, unchanged, after a restart", runs, a.ways("apply", false)); err != nil {
		return err
	}
	report.Rows = append(report.Rows, row)
	report.Broken = append(report.Broken, unchanged(row, s.objects)...)

	row, err = measure(ctx, s, "apply them again, unchanged, same process", runs, []*Case{
		{Name: "engine", Subject: true, Inside: true, Command: a.command("apply-again", ofPergola)},
		{Name: "floor: bare patches, 16 at a time", Inside: true, Command: a.command("floor-again", ofFloor)},
	})
	if err != nil {
		return err
	}
	report.Rows = append(report.Rows, row)
	report.Broken = append(report.Broken, unchanged(row, s.objects)...)
	return nil
}

// ways returns the three ways to apply; wipe empties the namespace before each run.
func (a applyCases) ways(command string, wipe bool) []*Case {
	before := func(namespace string) func(context.Context) error {
		if !wipe {
			return nil
		}
		return func(ctx context.Context) error { return a.do(ctx, "wipe", namespace) }
	}
	cases := []*Case{
		{Name: "engine", Subject: true, Command: a.command(command, ofPergola), Before: before(ofPergola)},
		{Name: "floor: bare patches, 16 at a time", Command: a.command("floor", ofFloor), Before: before(ofFloor)},
	}
	if a.kubectl != "" {
		cases = append(cases, &Case{
			Name: "peer: kubectl " + a.version + " apply --server-side", Before: before(ofKubectl), Env: []string{"KUBECACHEDIR=" + filepath.Join(a.work, "kubectl")},
			Command: []string{a.kubectl, "--kubeconfig", a.kubeconfig, "apply", "--server-side", "-f", a.manifest},
		})
	}
	return cases
}

// unchanged returns violations of the contract: unchanged objects cost some lists and watches, and
// no request for each object.
func unchanged(row Row, objects int) []string {
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
			broken = append(broken, fmt.Sprintf("%s: %d requests %s, and there must be none for unchanged objects beyond some lists and watches", row.Title, n, verb))
		}
	}
	return broken
}

func (a applyCases) command(name, namespace string, more ...string) []string {
	return append([]string{a.cases, name, "-kubeconfig", a.kubeconfig, "-namespace", namespace, "-objects", strconv.Itoa(a.objects)}, more...)
}

func (a applyCases) do(ctx context.Context, name, namespace string, more ...string) error {
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
		return "of an unknown version"
	}
	return answer.ClientVersion.GitVersion
}
