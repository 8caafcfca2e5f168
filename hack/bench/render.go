// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"path/filepath"
)

// measureRender measures landscapes/local, in a running process and as a command, and a Garden with
// all options on.
func measureRender(ctx context.Context, s settings, report *Report) error {
	for _, r := range []struct {
		title string
		more  []string
	}{{"render a Garden with all options on, once", nil}, {"the same, second time in a process", []string{"-warm"}}} {
		garden := append([]string{"-dir", filepath.Join(s.repository, "hack", "bench", "garden")}, r.more...)
		row, err := measure(ctx, s, r.title, s.runs, []*Case{
			{Name: "render.All", Subject: true, MeasuredInside: true, Command: append([]string{s.cases, "render"}, garden...)},
			{Name: "floor: CUE, Helm and krusty alone, one core", MeasuredInside: true, Command: append([]string{s.cases, "render-floor"}, garden...)},
		})
		if err != nil {
			return err
		}
		report.Rows = append(report.Rows, row)
	}
	landscape := filepath.Join(s.repository, "landscapes", "local")
	row, err := measure(ctx, s, "render landscapes/local, second time in a process", s.runs, []*Case{
		{Name: "render.All", Subject: true, MeasuredInside: true, Command: []string{s.cases, "render", "-dir", landscape, "-warm"}},
		{Name: "floor: CUE, Helm and krusty alone, one core", MeasuredInside: true, Command: []string{s.cases, "render-floor", "-dir", landscape, "-warm"}},
	})
	if err != nil {
		return err
	}
	report.Rows = append(report.Rows, row)

	row, err = measure(ctx, s, "render landscapes/local, as a command", s.runs, append([]*Case{
		{Name: "pergola render: validates, renders, prints", Subject: true, Command: []string{s.pergola, "render", landscape}},
		{Name: "floor: CUE, Helm and krusty alone, one core", Command: []string{s.cases, "render-floor", "-dir", landscape}},
	}, s.earlierCases("render", landscape)...))
	if err != nil {
		return err
	}
	report.Rows = append(report.Rows, row)
	return nil
}
