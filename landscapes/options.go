// SPDX-License-Identifier: Apache-2.0

package landscapes

import (
	"fmt"
	"strings"
	"time"

	"filippo.io/age"

	"github.com/pergola-dev/pergola/landscapes/evaluation"
	"github.com/pergola-dev/pergola/schemas/resultcache"
)

// Options are the options of Load, LoadFS and Parse.
type Options struct {
	// Root is the repository: layers may be anywhere in it, and nothing outside is read. If empty,
	// it is the closest parent folder with .git, or else the landscape folder. Only Load uses it.
	Root string
	// AgeIdentities are the private keys for SOPS-encrypted Secrets. Without a matching key a
	// Secret is loaded with its keys but without values.
	AgeIdentities []age.Identity
	// Evaluator evaluates CUE files; the default is evaluation.InProcess, which has no time or
	// memory limit. It is used only for landscapes with CUE files.
	Evaluator evaluation.Evaluator
	// Limits bound the input; zero values mean the defaults.
	Limits Limits
	// ResultCache caches between runs which objects a file declares, so that unchanged files are
	// read only if their content is needed. It never stores content. nil disables the cache.
	ResultCache *resultcache.Store
}

// MaxFileSize is the default limit of Limits.FileSize, in bytes. Objects in a cluster are not
// larger.
const MaxFileSize = 1 << 20

// Limits bound the work that repository files can cause.
type Limits struct {
	// FileSize is the largest file in bytes; default MaxFileSize.
	FileSize int64
	// Files is the largest number of files in a landscape with all its layers; the default is
	// 50,000.
	Files int
	// Depth is the deepest nesting of folders, and of values in a document; the default is 64.
	Depth int
	// Values is the largest number of values in one document after anchors are expanded; the
	// default is 200,000.
	Values int
	// Evaluation is the longest time to evaluate all CUE files; the default is 2 minutes.
	Evaluation time.Duration
}

func (l Limits) withDefaults() Limits {
	if l.FileSize <= 0 {
		l.FileSize = MaxFileSize
	}
	if l.Files <= 0 {
		l.Files = 50_000
	}
	if l.Depth <= 0 {
		l.Depth = 64
	}
	if l.Values <= 0 {
		l.Values = 200_000
	}
	if l.Evaluation <= 0 {
		l.Evaluation = 2 * time.Minute
	}
	return l
}

// ParseAgeIdentities reads private keys in the format of SOPS_AGE_KEY and keys.txt: one
// AGE-SECRET-KEY-1… a line; comments begin with #. The error never shows a key.
func ParseAgeIdentities(text string) ([]age.Identity, error) {
	var identities []age.Identity
	for number, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		found, err := age.ParseIdentities(strings.NewReader(line))
		if err != nil {
			return nil, fmt.Errorf("line %d is not an age key; a key begins with AGE-SECRET-KEY-1", number+1)
		}
		identities = append(identities, found...)
	}
	return identities, nil
}
