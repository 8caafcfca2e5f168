package main

import (
	"context"
	"path/filepath"
)

// render measures landscapes/local, in a process that runs already and as a command.
func render(ctx context.Context, s settings, report *Report) error {
	landscape := filepath.Join(s.repository, "landscapes", "local")
	row, err := measure(ctx, s, "render landscapes/local, second time in a process", s.runs, []*Case{
		{Name: "render.All", Subject: true, Inside: true, Command: []string{s.cases, "render", "-dir", landscape, "-warm"}},
		{Name: "floor: CUE, Helm and krusty alone, one core", Inside: true, Command: []string{s.cases, "render-floor", "-dir", landscape, "-warm"}},
	})
	if err != nil {
		return err
	}
	report.Rows = append(report.Rows, row)

	row, err = measure(ctx, s, "render landscapes/local, as a command", s.runs, []*Case{
		{Name: "pergola render: validates, renders, prints", Subject: true, Command: []string{s.pergola, "render", landscape}},
		{Name: "floor: CUE, Helm and krusty alone, one core", Command: []string{s.cases, "render-floor", "-dir", landscape}},
	})
	if err != nil {
		return err
	}
	report.Rows = append(report.Rows, row)
	return nil
}
