package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

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
func load(dir string) (*landscapes.Landscape, []schemas.Violation, error) {
	ids, err := ageIdentities()
	if err != nil {
		return nil, nil, err
	}
	return landscapes.Load(dir, landscapes.Options{AgeIdentities: ids})
}

// loadAt reads a landscape as it was in a revision.
func loadAt(repo *source.Repository, dir, rev string) (*landscapes.Landscape, []schemas.Violation, string, error) {
	ids, err := ageIdentities()
	if err != nil {
		return nil, nil, "", err
	}
	rel, err := repo.Rel(dir)
	if err != nil {
		return nil, nil, "", err
	}
	revision, err := repo.At(rev)
	if err != nil {
		return nil, nil, "", err
	}
	l, violations, err := landscapes.LoadFS(revision.FS, rel, landscapes.Options{AgeIdentities: ids})
	if err != nil {
		return nil, nil, "", fmt.Errorf("revision %s: %w", rev, err)
	}
	return l, violations, revision.Commit, nil
}

// valid refuses a landscape with errors and prints all of them; warnings are printed and pass.
func valid(ctx context.Context, cmd *cobra.Command, l *landscapes.Landscape, violations []schemas.Violation) error {
	found, err := l.Validate(ctx, schemas.Options{})
	if err != nil {
		return err
	}
	violations = append(violations, found...)
	schemas.Sort(violations)
	for _, v := range violations {
		fmt.Fprintln(cmd.ErrOrStderr(), v)
	}
	if schemas.HasErrors(violations) {
		return finding{fmt.Errorf("the landscape is not valid: nothing was done")}
	}
	if l.Config.Spec.Catalogue == nil {
		fmt.Fprintf(cmd.ErrOrStderr(), "Warning: landscape.yaml names no spec.catalogue.version: taking catalogue %s\n", components.Version)
	}
	return nil
}

// loadValid is load followed by valid.
func loadValid(cmd *cobra.Command, dir string) (*landscapes.Landscape, error) {
	l, violations, err := load(dir)
	if err != nil {
		return nil, err
	}
	return l, valid(cmd.Context(), cmd, l, violations)
}
