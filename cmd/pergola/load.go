package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"filippo.io/age"
	"github.com/spf13/cobra"

	"github.com/pergola-dev/pergola/components"
	"github.com/pergola-dev/pergola/landscapes"
	"github.com/pergola-dev/pergola/schemas"
	"github.com/pergola-dev/pergola/source"
)

// ageIdentities are read from where sops users have them.
func ageIdentities() ([]age.Identity, error) {
	var all []age.Identity
	if text := os.Getenv("SOPS_AGE_KEY"); text != "" {
		ids, err := landscapes.ParseAgeIdentities(text)
		if err != nil {
			return nil, fmt.Errorf("SOPS_AGE_KEY: %w", err)
		}
		all = append(all, ids...)
	}
	file := os.Getenv("SOPS_AGE_KEY_FILE")
	explicit := file != ""
	if !explicit {
		dir, err := os.UserConfigDir()
		if err != nil {
			return all, nil
		}
		file = filepath.Join(dir, "sops", "age", "keys.txt")
	}
	text, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) && !explicit {
		return all, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read age keys: %w", err)
	}
	ids, err := landscapes.ParseAgeIdentities(string(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return append(all, ids...), nil
}

// load reads a landscape from the work tree.
func load(cmd *cobra.Command, dir string) (l *landscapes.Landscape, violations []schemas.Violation, err error) {
	err = withOptions(cmd, func(opts landscapes.Options) error {
		l, violations, err = landscapes.Load(cmd.Context(), dir, opts)
		return err
	})
	return l, violations, err
}

// loadAt reads a landscape as it was in a revision. Where the revision has no landscape there, the commit is given nevertheless.
func loadAt(cmd *cobra.Command, repo *source.Repository, dir, rev string) (*landscapes.Landscape, []schemas.Violation, string, error) {
	rel, err := repo.Rel(dir)
	if err != nil {
		return nil, nil, "", err
	}
	revision, err := repo.At(rev)
	if err != nil {
		return nil, nil, "", err
	}
	var l *landscapes.Landscape
	var violations []schemas.Violation
	err = withOptions(cmd, func(opts landscapes.Options) error {
		l, violations, err = landscapes.LoadFS(cmd.Context(), revision.FS, rel, opts)
		return err
	})
	if err != nil {
		return nil, nil, revision.Commit, fmt.Errorf("revision %s: %w", rev, err)
	}
	l.Dir = dir
	return l, violations, revision.Commit, nil
}

// findings are all violations of a landscape in their order, with files as one would write them here.
func findings(cmd *cobra.Command, l *landscapes.Landscape, violations []schemas.Violation) ([]schemas.Violation, error) {
	found, err := l.Validate(cmd.Context(), schemas.Options{})
	if err != nil {
		return nil, err
	}
	all := slices.Concat(violations, found, configFindings(cmd, l))
	for i := range all {
		all[i].File = filepath.Join(l.Dir, all[i].File)
	}
	schemas.Sort(all)
	return all, nil
}

// valid refuses a landscape with errors and prints all of them; warnings are printed and pass. The revision, where there
// is one, stands before each.
func valid(cmd *cobra.Command, l *landscapes.Landscape, violations []schemas.Violation, revision string) error {
	all, err := findings(cmd, l, violations)
	if err != nil {
		return err
	}
	printFindings(cmd, all, revision)
	if schemas.HasErrors(all) {
		return finding{fmt.Errorf("the landscape is not valid: nothing was done")}
	}
	if l.Config.Spec.Catalogue == nil {
		fmt.Fprintf(cmd.ErrOrStderr(), "Warning: landscape.yaml names no spec.catalogue.version: taking catalogue %s\n", components.Version)
	}
	return nil
}

func printFindings(cmd *cobra.Command, all []schemas.Violation, revision string) {
	if revision != "" {
		revision += ": "
	}
	for _, v := range all {
		fmt.Fprintf(cmd.ErrOrStderr(), "%s%s\n", revision, v)
	}
}

// loadValid is load followed by valid.
func loadValid(cmd *cobra.Command, dir string) (*landscapes.Landscape, error) {
	l, violations, err := load(cmd, dir)
	if err != nil {
		return nil, err
	}
	return l, valid(cmd, l, violations, "")
}
