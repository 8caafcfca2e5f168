// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"filippo.io/age"

	"github.com/pergola-dev/pergola/landscapes"
)

// Environment variables of sops for age keys: the keys themselves, and a file with them.
const (
	envAgeKey     = "SOPS_AGE_KEY"
	envAgeKeyFile = "SOPS_AGE_KEY_FILE"
)

// ageIdentities reads the keys from where sops reads them.
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
