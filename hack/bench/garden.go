// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
)

// maxFlagPushes limits the changes of a flag.
const maxFlagPushes = 5

// measureGarden measures the operator with a Garden that has all options on, and nothing else.
func measureGarden(ctx context.Context, s settings, report *Report) error {
	if _, err := exec.LookPath("git"); err != nil {
		report.MissingPeers = append(report.MissingPeers, "garden: git is missing")
		return nil
	}
	samples, err := s.runSyncBenchmark(ctx, "garden", filepath.Join(s.repository, "hack", "bench", "garden"), "-garden", "-pushes", fmt.Sprint(min(s.pushes, maxFlagPushes)))
	if err != nil {
		return err
	}
	for _, r := range []struct{ name, title, floor string }{
		{"first", "a Garden with all options on: first sync", ""},
		{"unchanged", "the Garden reconciled, nothing changed", "one list of each kind it has objects of"},
		{"flag", "push of a flag to the patch of kube-apiserver", "git fetch, render, one bare patch"},
	} {
		if sample, ok := samples[r.name]; ok {
			report.Rows = append(report.Rows, operatorRow(r.title, sample, samples, r.name+"-floor", r.floor))
		}
	}
	return nil
}

// operatorRow returns a row of the operator, with its floor if it has one.
func operatorRow(title string, sample Sample, samples map[string]Sample, floor, name string) Row {
	row := Row{Title: title, Runs: 1, Results: []Result{{Name: "pergola operator", Subject: true, Sample: sample, AllSeconds: []float64{sample.Seconds}}}}
	if floor, ok := samples[floor]; ok {
		row.Results = append(row.Results, Result{Name: "floor: " + name, Sample: floor, AllSeconds: []float64{floor.Seconds}})
	}
	row.fillRatios()
	return row
}
