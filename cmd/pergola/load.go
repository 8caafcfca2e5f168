package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"filippo.io/age"
	"github.com/spf13/cobra"

	"github.com/pergola-dev/pergola/landscapes"
	"github.com/pergola-dev/pergola/schemas"
	"github.com/pergola-dev/pergola/source"
)

// Variables of the environment that sops has for age keys: the keys themselves, and a file with them.
const (
	envAgeKey     = "SOPS_AGE_KEY"
	envAgeKeyFile = "SOPS_AGE_KEY_FILE"
)

// ageIdentities are read from where sops users have them.
func ageIdentities() ([]age.Identity, error) {
	var all []age.Identity
	if text := os.Getenv(envAgeKey); text != "" {
		ids, err := landscapes.ParseAgeIdentities(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", envAgeKey, err)
		}
		all = append(all, ids...)
	}
	file := os.Getenv(envAgeKeyFile)
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
	where := "age keys of sops"
	if explicit {
		where = envAgeKeyFile
	}
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%s: file %s does not exist; set the variable to a file with age keys, or unset it", where, file)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", where, err)
	}
	ids, err := landscapes.ParseAgeIdentities(string(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %s: %w", where, file, err)
	}
	return append(all, ids...), nil
}

// load reads a landscape from the work tree.
func load(cmd *cobra.Command, dir string) (l *landscapes.Landscape, violations []schemas.Violation, err error) {
	err = withOptions(cmd, func(opts landscapes.Options) error {
		opts.Kept = keptFor(cmd, dir)
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
		opts.Kept = keptFor(cmd, dir)
		l, violations, err = landscapes.LoadFS(cmd.Context(), revision.FS, rel, opts)
		return err
	})
	if err != nil {
		return nil, nil, revision.Commit, fmt.Errorf("revision %s: %w", rev, err)
	}
	l.Dir = dir
	return l, violations, revision.Commit, nil
}

// loadValid is load followed by valid.
func loadValid(cmd *cobra.Command, dir string) (*landscapes.Landscape, error) {
	l, violations, err := load(cmd, dir)
	if err != nil {
		return nil, err
	}
	return l, valid(cmd, l, violations, "")
}
