// SPDX-License-Identifier: Apache-2.0

package recovery

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"filippo.io/age"

	"github.com/pergola-dev/pergola/landscapes"
)

// ParseRecipients parses public age keys, separated by lines or commas; comments begin with #.
func ParseRecipients(text string) ([]age.Recipient, error) {
	var out []age.Recipient
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "#") {
			continue
		}
		for one := range strings.SplitSeq(line, ",") {
			if one = strings.TrimSpace(one); one == "" {
				continue
			}
			found, err := age.ParseRecipients(strings.NewReader(one))
			if err != nil {
				if strings.HasPrefix(strings.ToUpper(one), "AGE-SECRET-KEY-") {
					return nil, errors.New("this is a private age key: give its public key, which begins with age1")
				}
				if strings.HasPrefix(one, "age1") {
					return nil, fmt.Errorf("%q is not a public age key: it is incomplete or has a wrong character; copy it again", one)
				}
				return nil, fmt.Errorf("%q is not a public age key, which begins with age1", one)
			}
			out = append(out, found...)
		}
	}
	return out, nil
}

// SopsRecipients returns the recipients of all rules in the closest .sops.yaml at or above the
// folder, within the repository. All rules apply: a person who can decrypt one Secret of the
// landscape has access to it anyway.
func SopsRecipients(dir string) ([]age.Recipient, error) {
	path, raw, err := findSops(dir)
	if err != nil {
		return nil, err
	}
	rules, problems := landscapes.ParseSopsRules(raw)
	for _, p := range problems {
		if !p.IsIgnored {
			return nil, fmt.Errorf("%s:%d: %s", path, p.Line, p.Message)
		}
	}
	var keys []string
	for _, rule := range rules {
		keys = append(keys, rule.Recipients...)
	}
	slices.Sort(keys)
	out, err := ParseRecipients(strings.Join(slices.Compact(keys), "\n"))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s has no age recipients: name the recipients of the backup with --recipient", path)
	}
	return out, nil
}

func findSops(dir string) (path string, raw []byte, err error) {
	at, err := filepath.Abs(dir)
	if err != nil {
		return "", nil, fmt.Errorf("finding the landscape: %w", err)
	}
	for {
		path = filepath.Join(at, landscapes.SopsFile)
		raw, err = os.ReadFile(path)
		if err == nil {
			return path, raw, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return "", nil, fmt.Errorf("reading the recipients of encrypted Secrets: %w", err)
		}
		if _, err := os.Stat(filepath.Join(at, ".git")); err == nil || at == filepath.Dir(at) {
			return "", nil, fmt.Errorf("the landscape has no %s, which would name the recipients: name those of the backup with --recipient", landscapes.SopsFile)
		}
		at = filepath.Dir(at)
	}
}
