// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
)

// measureValidate measures the validation of a landscape with many Shoots: all of it, and again
// after a change of one Shoot.
func measureValidate(ctx context.Context, s settings, report *Report) error {
	l, err := writeLandscape(s, filepath.Join(s.work, "landscape"))
	if err != nil {
		return err
	}
	peers, err := l.peerCases(ctx, s)
	if err != nil {
		return err
	}
	for _, peer := range []struct{ name, command string }{{"cue vet", s.cue}, {"kubeconform", s.kubeconform}} {
		if peer.command == "" {
			report.MissingPeers = append(report.MissingPeers, peer.name+": the command is missing")
		}
	}
	title := fmt.Sprintf("validate %d Shoots", s.shoots)
	cache, err := newCache(ctx, s)
	if err != nil {
		return err
	}
	all, err := measure(ctx, s, title+", nothing known", max(1, s.runs-2), append([]*Case{{
		Name: "pergola validate: structure and rules", Subject: true, Command: cache.validate(s, l), Before: cache.clear,
	}}, peers...))
	if err != nil {
		return err
	}
	report.Rows = append(report.Rows, all)
	known := all.Results[1:] // peers have no cache

	if cache.dir == "" {
		report.MissingPeers = append(report.MissingPeers, "pergola validate in a new process with its results: it has no --cache-dir")
	} else {
		// The cache has the results of the row above.
		again, err := measure(ctx, s, title+", one changed, new process", s.runs, []*Case{{
			Name: "pergola validate with its cache", Subject: true, Command: cache.validate(s, l), Before: func(context.Context) error { return l.change() },
		}})
		if err != nil {
			return err
		}
		again.addResults(known...)
		report.Rows = append(report.Rows, again)
	}

	// The first validation takes most of the time and is not measured: all runs are in one process.
	inside, err := measure(ctx, s, title+", one changed, same process", 1, []*Case{{
		Name: "landscapes.Load and Validate, with their previous results", Subject: true, MeasuredInside: true, Command: []string{s.cases, "validate-again", "-dir", l.dir, "-runs", strconv.Itoa(s.runs)},
	}})
	if err != nil {
		return err
	}
	inside.addResults(known...)
	report.Rows = append(report.Rows, inside)
	return nil
}

// peerCases check only the structure of the Shoots: no rules, and no landscape around them. They
// start in the folder of the landscape, because a command line cannot hold so many whole paths.
func (l *landscape) peerCases(ctx context.Context, s settings) ([]*Case, error) {
	var peers []*Case
	if s.cue != "" {
		schema := filepath.Join(s.repository, "schemas", "base", "core.gardener.cloud_v1beta1_shoot.cue")
		peers = append(peers, &Case{Name: "peer: cue vet, same version, structure alone", Dir: l.dir,
			Command: append([]string{s.cue, "vet", "-c", "-d", "#Shoot", schema}, l.files...)})
	}
	if s.kubeconform != "" {
		folder := filepath.Join(s.work, "schemas")
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return nil, err
		}
		if out, err := exec.CommandContext(ctx, s.cases, "json-schemas", "-file", folder).CombinedOutput(); err != nil {
			return nil, fmt.Errorf("JSON schemas: %w\n%s", err, tail(string(out)))
		}
		peers = append(peers, kubeconformCase(s.kubeconform, folder, l))
	}
	return peers, nil
}

// kubeconformCase returns a case that takes schemas from a folder.
func kubeconformCase(command, schemas string, l *landscape) *Case {
	location := filepath.Join(schemas, "{{.Group}}_{{.ResourceKind}}_{{.ResourceAPIVersion}}.json")
	return &Case{Name: "peer: kubeconform -strict, structure alone", Dir: l.dir,
		Command: append([]string{command, "-strict", "-schema-location", location}, l.folders...)}
}

// cache is pergola's cache of results; without a folder there is no cache.
type cache struct{ dir string }

func newCache(ctx context.Context, s settings) (cache, error) {
	help, err := exec.CommandContext(ctx, s.pergola, "validate", "--help").Output()
	if err != nil {
		return cache{}, fmt.Errorf("pergola validate --help: %w", err)
	}
	if !bytes.Contains(help, []byte("--cache-dir")) {
		return cache{}, nil
	}
	return cache{filepath.Join(s.work, "known")}, nil
}

func (c cache) validate(s settings, l *landscape) []string {
	command := []string{s.pergola, "validate", l.dir}
	if c.dir != "" {
		command = append(command, "--cache-dir", c.dir)
	}
	return command
}

func (c cache) clear(context.Context) error {
	if c.dir == "" {
		return nil
	}
	if err := os.RemoveAll(c.dir); err != nil {
		return err
	}
	return os.Mkdir(c.dir, 0o700)
}
