// SPDX-License-Identifier: Apache-2.0

// Command bench measures Pergola beside a peer or a floor in the same run: time, CPU, peak memory,
// requests. README.md explains the rows. This program starts and measures processes. The program in
// cases/ measures inside of a process: memory of the starter would count for its children.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
)

// Exit codes: a broken contract is a finding.
const (
	exitOK = iota
	exitContract
	exitUsage
)

// settings are the paths of programs and the options of the command.
type settings struct {
	output, only                                   string
	repository, work, writeFolder                  string
	pergola, earlierBuild, cases, local, cue       string
	kubeconform, kubectl                           string
	engine, flux, fluxDefinitions, profile         string
	shoots, objects, runs, bundles, changes, drift int
	diffObjects, syncShoots, pushes                int
	syncProgram                                    string
	fluxWait                                       bool
	log                                            io.Writer
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code, err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
	}
	os.Exit(code)
}

func run(ctx context.Context) (int, error) {
	s := settings{log: os.Stderr}
	flag.StringVar(&s.output, "o", "text", "output format: text, json")
	flag.StringVar(&s.only, "only", "", "only these groups, separated by commas: validate, render, why, diff, live, apply, sync, garden, engine; without it all but engine")
	flag.StringVar(&s.repository, "repository", ".", "the root of the repository")
	flag.StringVar(&s.pergola, "pergola", "bin/pergola", "the program that is measured")
	flag.StringVar(&s.earlierBuild, "before", "", "an earlier build of it, peer of render and why; empty leaves it out")
	flag.StringVar(&s.cases, "cases", "bin/pergola-bench-cases", "the program of hack/bench/cases")
	flag.StringVar(&s.local, "local", "bin/pergola-local", "the program of hack/local")
	flag.StringVar(&s.cue, "cue", "", "the cue command, peer of validate; empty leaves it out")
	flag.StringVar(&s.kubeconform, "kubeconform", "", "the kubeconform command, peer of validate; empty leaves it out")
	flag.StringVar(&s.kubectl, "kubectl", "", "the kubectl command, peer of apply; empty leaves it out")
	flag.StringVar(&s.writeFolder, "write", "", "write the landscape of the group validate to this folder, and measure nothing")
	flag.IntVar(&s.shoots, "shoots", 10000, "number of Shoots to validate")
	flag.IntVar(&s.diffObjects, "diff-objects", 10000, "number of objects of the landscape of the group diff")
	flag.StringVar(&s.syncProgram, "sync", "", "the program of hack/bench/sync, for the groups sync and garden")
	flag.IntVar(&s.syncShoots, "sync-shoots", memoryLimitShoots, "number of Shoots of the landscape of the group sync")
	flag.IntVar(&s.pushes, "pushes", 30, "pushes of the group sync, for each way to detect them")
	flag.IntVar(&s.objects, "objects", 500, "number of objects to apply")
	flag.IntVar(&s.runs, "runs", 5, "runs of each case; apply, and validate with nothing known, have two less")
	flag.StringVar(&s.engine, "engine", "", "the program of hack/bench/engine, for the group engine")
	flag.StringVar(&s.flux, "flux", "", "kustomize-controller, peer of engine; empty leaves it out")
	flag.StringVar(&s.fluxDefinitions, "flux-definitions", "", "folders with the definitions that it needs, separated by commas")
	flag.BoolVar(&s.fluxWait, "flux-wait", false, "let it check the health of the objects that it applies, as Pergola always does")
	flag.StringVar(&s.profile, "profile", "", "folder for profiles of Pergola in the groups engine and sync; measures it in another program then")
	flag.IntVar(&s.bundles, "bundles", 1000, "number of bundles of the group engine")
	flag.IntVar(&s.changes, "changes", 20, "number of changes of one object in the group engine")
	flag.IntVar(&s.drift, "drift", 100, "number of objects that drift in the group engine")
	flag.Parse()
	if flag.NArg() > 0 || (s.output != "text" && s.output != "json") || s.runs < 1 || s.shoots < 1 || s.bundles < 1 || s.changes < 1 || s.drift < 1 || s.syncShoots < 1 || s.pushes < 0 {
		return exitUsage, errors.New("see -help")
	}
	if s.writeFolder != "" {
		if _, err := writeLandscape(s, s.writeFolder); err != nil {
			return exitUsage, err
		}
		return exitOK, nil
	}
	if err := s.makePathsAbsolute(); err != nil {
		return exitUsage, err
	}
	work, err := os.MkdirTemp("", "pergola-bench-")
	if err != nil {
		return exitUsage, err
	}
	defer os.RemoveAll(work)
	s.work = work
	// Programs that are started here must neither read nor fill the user's cache.
	if err := os.Setenv("PERGOLA_CACHE_DIR", filepath.Join(work, "cache")); err != nil {
		return exitUsage, err
	}

	report := newReport(ctx, s)
	for _, group := range []struct {
		name string
		run  func(context.Context, settings, *Report) error
	}{{"validate", measureValidate}, {"render", measureRender}, {"why", measureWhy}, {"diff", measureDiff}, {"live", measureLive}, {"apply", measureApply}, {"sync", measureSync}, {"garden", measureGarden}, {"engine", measureEngine}} {
		if s.only == "" && group.name == "engine" || s.only != "" && !strings.Contains(","+s.only+",", ","+group.name+",") {
			continue
		}
		if err := group.run(ctx, s, report); err != nil {
			return exitUsage, fmt.Errorf("%s: %w", group.name, err)
		}
	}
	if err := report.print(os.Stdout, s.output); err != nil {
		return exitUsage, err
	}
	if len(report.BrokenContracts) > 0 {
		return exitContract, errors.New(strings.Join(report.BrokenContracts, "\n"))
	}
	return exitOK, nil
}

// makePathsAbsolute makes the paths of programs independent of the working directory.
func (s *settings) makePathsAbsolute() error {
	for _, path := range []*string{&s.repository, &s.pergola, &s.earlierBuild, &s.cases, &s.local, &s.cue, &s.kubeconform, &s.kubectl, &s.syncProgram, &s.engine, &s.flux} {
		if *path == "" {
			continue
		}
		full, err := filepath.Abs(*path)
		if err != nil {
			return err
		}
		if _, err := os.Stat(full); err != nil {
			return fmt.Errorf("%w: hack/bench.sh builds the programs", err)
		}
		*path = full
	}
	return nil
}
