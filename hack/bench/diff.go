// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// objectsPerShoot is the number of objects of a Shoot in the group diff: the Shoot and the objects
// of landscape/access.yaml.tmpl.
const objectsPerShoot = 4

// measureDiff measures diffs of two revisions: one Shoot changes in a large landscape, and a change
// affects every owner of a smaller one.
func measureDiff(ctx context.Context, s settings, report *Report) error {
	if _, err := exec.LookPath("git"); err != nil {
		report.MissingPeers = append(report.MissingPeers, "diff: git is missing")
		return nil
	}
	shoots := s
	shoots.shoots = max(1, s.diffObjects/objectsPerShoot)
	repository := filepath.Join(s.work, "diff")
	l, err := writeLandscape(shoots, filepath.Join(repository, "landscape"))
	if err != nil {
		return err
	}
	for i := range shoots.shoots {
		x := newShoot(i, 0, l.Seeds, l.Projects)
		if err := l.writeTemplate("projects/"+x.Project.Name+"/shoots/"+x.Name+"-access.yaml", "access.yaml", x); err != nil {
			return err
		}
	}
	if err := runGit(ctx, repository, [][]string{{"init", "-q"}, {"add", "-A"}, commitArgs("all"), {"gc", "-q"}}); err != nil {
		return err
	}
	if err := l.change(); err != nil {
		return err
	}
	if err := runGit(ctx, repository, [][]string{commitArgs("one", "-a")}); err != nil {
		return err
	}
	i := l.changes * shootStep % len(l.files)
	changed := newShoot(i, l.changes, l.Seeds, l.Projects)
	cache := filepath.Join(s.work, "diff-known")
	row, err := measure(ctx, s, fmt.Sprintf("diff of one Shoot in %d objects, two revisions", shoots.shoots*objectsPerShoot), s.runs, []*Case{
		{Name: "pergola diff with its cache", Subject: true, AllowsFindings: true, Before: once(func(ctx context.Context) error {
			// as the pipeline does before a diff
			return exec.CommandContext(ctx, s.pergola, "validate", l.dir, "--cache-dir", cache).Run()
		}), Command: []string{s.pergola, "diff", l.dir, "--from", "HEAD~1", "--to", "HEAD", "--cache-dir", cache}},
		{Name: "floor: git diff", Dir: repository, Command: []string{"git", "diff", "--exit-code", "--quiet", "HEAD", "HEAD"}},
		{Name: "floor: that Shoot rendered twice, in a process that runs", MeasuredInside: true,
			Command: []string{s.cases, "render-owner", "-dir", l.dir, "-owner", "shoot garden-" + changed.Project.Name + "/" + changed.Name, "-runs", "2"}},
	})
	if err != nil {
		return err
	}
	report.Rows = append(report.Rows, row)
	return measureDiffOfAllOwners(ctx, s, report)
}

// affectedShoots is the number of Shoots in the landscape whose owners are all affected.
const affectedShoots = 50

// pinnedImage changes the inputs of every owner, whether it uses the image or not.
const pinnedImage = `  images:
  - name: kube-apiserver
    repository: mirror.example.com/kube-apiserver
`

// measureDiffOfAllOwners measures a diff that affects every owner. Its floor renders both
// revisions.
func measureDiffOfAllOwners(ctx context.Context, s settings, report *Report) error {
	small := s
	small.shoots = affectedShoots
	repository := filepath.Join(s.work, "diff-all")
	l, err := writeLandscape(small, filepath.Join(repository, "landscape"))
	if err != nil {
		return err
	}
	if err := runGit(ctx, repository, [][]string{{"init", "-q"}, {"add", "-A"}, commitArgs("all")}); err != nil {
		return err
	}
	config := filepath.Join(l.dir, "landscape.yaml")
	text, err := os.ReadFile(config)
	if err != nil {
		return err
	}
	if err := os.WriteFile(config, append(text, pinnedImage...), 0o644); err != nil {
		return err
	}
	if err := runGit(ctx, repository, [][]string{commitArgs("another image", "-a")}); err != nil {
		return err
	}
	cache := filepath.Join(s.work, "diff-all-known")
	row, err := measure(ctx, s, fmt.Sprintf("diff that reaches all %d owners", 1+len(l.Seeds)+small.shoots), max(1, s.runs-2), []*Case{
		{Name: "pergola diff with its cache", Subject: true, AllowsFindings: true, Before: once(func(ctx context.Context) error {
			return exec.CommandContext(ctx, s.pergola, "validate", l.dir, "--cache-dir", cache).Run()
		}), Command: []string{s.pergola, "diff", l.dir, "--from", "HEAD~1", "--to", "HEAD", "--cache-dir", cache}},
		{Name: "floor: the landscape rendered twice, in a process that runs", MeasuredInside: true,
			Command: []string{s.cases, "render", "-dir", l.dir, "-runs", "2"}},
	})
	if err != nil {
		return err
	}
	report.Rows = append(report.Rows, row)
	return nil
}

func commitArgs(message string, more ...string) []string {
	return append([]string{"-c", "user.name=bench", "-c", "user.email=bench@example.com", "commit", "-q", "-m", message}, more...)
}

func runGit(ctx context.Context, dir string, commands [][]string) error {
	for _, args := range commands {
		cmd := exec.CommandContext(ctx, "git", args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("git %s: %w\n%s", args[len(args)-1], err, tail(string(out)))
		}
	}
	return nil
}

// once calls do only before the first run.
func once(do func(context.Context) error) func(context.Context) error {
	done := false
	return func(ctx context.Context) error {
		if done {
			return nil
		}
		done = true
		return do(ctx)
	}
}
