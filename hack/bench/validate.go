package main

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// shoot is a realistic one: three worker pools of different sizes. NAME stands for its name.
//
//go:embed shoot.yaml
var shoot string

// surroundings are the files of landscapes/local that Shoots refer to.
var surroundings = [...]string{
	"landscape.yaml", "garden/garden.yaml", "garden/secrets.yaml", "gardenconfig/cloudprofile.yaml", "seeds/local.yaml", "seeds/secrets.yaml",
	"projects/local/project.yaml", "projects/local/credentials.yaml",
}

// validate measures the validation of a landscape with many Shoots.
func validate(ctx context.Context, s settings, report *Report) error {
	landscape, files, err := writeLandscape(s)
	if err != nil {
		return err
	}
	title := fmt.Sprintf("validate %d Shoots", s.shoots)
	cases := []*Case{{Name: "pergola validate: structure and rules", Subject: true, Command: []string{s.pergola, "validate", landscape}}}
	peer := -1
	if s.cue == "" {
		report.LeftOut = append(report.LeftOut, "cue vet, there is no cue command")
	} else {
		schema := filepath.Join(s.repository, "schemas", "base", "core.gardener.cloud_v1beta1_shoot.cue")
		peer = len(cases)
		cases = append(cases, &Case{Name: "peer: cue vet, same version, structure alone",
			Command: append([]string{s.cue, "vet", "-c", "-d", "#Shoot", schema}, files...)})
	}
	row, err := measure(ctx, s, title, s.runs, cases)
	if err != nil {
		return err
	}
	report.Rows = append(report.Rows, row)

	again, err := measure(ctx, s, title+" again, one changed, same process", s.runs, []*Case{
		{Name: "schemas.Validate with a cache", Subject: true, Inside: true, Command: []string{s.cases, "validate-again", "-dir", landscape}},
	})
	if err != nil {
		return err
	}
	if peer >= 0 {
		again.with(row.Results[peer]) // it keeps nothing between runs
	}
	report.Rows = append(report.Rows, again)
	return nil
}

func writeLandscape(s settings) (dir string, shoots []string, err error) {
	dir = filepath.Join(s.work, "landscape")
	for _, name := range surroundings {
		data, err := os.ReadFile(filepath.Join(s.repository, "landscapes", "local", filepath.FromSlash(name)))
		if err != nil {
			return "", nil, err
		}
		if err := write(filepath.Join(dir, filepath.FromSlash(name)), data); err != nil {
			return "", nil, err
		}
	}
	for i := range s.shoots {
		name := fmt.Sprintf("shoot-%05d", i)
		file := filepath.Join(dir, "projects", "local", "shoots", name+".yaml")
		if err := write(file, []byte(strings.ReplaceAll(shoot, "NAME", name))); err != nil {
			return "", nil, err
		}
		shoots = append(shoots, file)
	}
	return dir, shoots, nil
}

func write(file string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, data, 0o644)
}
