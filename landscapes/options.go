package landscapes

import (
	"fmt"
	"strings"
	"time"

	"filippo.io/age"

	"github.com/pergola-dev/pergola/landscapes/evaluation"
	"github.com/pergola-dev/pergola/schemas/kept"
)

// Options of Load, LoadFS and Parse.
type Options struct {
	// Root is the repository: layers may lie anywhere in it, and nothing outside of it is read.
	// Empty: the closest parent folder that holds .git, or else the landscape folder itself. Only
	// used by Load.
	Root string
	// AgeIdentities are the private keys to decrypt SOPS-encrypted Secrets with. Without a fitting
	// key a Secret is loaded with its names and keys but without values.
	AgeIdentities []age.Identity
	// Evaluator evaluates CUE files; default evaluation.InProcess, which has no limits of time and
	// memory. It is not used for landscapes without CUE files.
	Evaluator evaluation.Evaluator
	// Limits bound what is read; zero values mean the defaults.
	Limits Limits
	// Kept holds between runs what files declare, so that those that did not change are read by
	// whoever needs their content, and no one else. It never holds the content. nil keeps nothing.
	Kept *kept.Store
}

// MaxFileSize is how large a file of a landscape may be in bytes, unless Limits say otherwise.
// Objects in a cluster are not larger.
const MaxFileSize = 1 << 20

// Limits bound the work that files from a repository can cause.
type Limits struct {
	// FileSize is the largest file in bytes; default MaxFileSize.
	FileSize int64
	// Files is the largest number of files in a landscape with all its layers; default 50,000.
	Files int
	// Depth is the deepest nesting of folders, and of values in a document; default 64.
	Depth int
	// Values is the largest number of values in one document after anchors are expanded; default
	// 200,000.
	Values int
	// Evaluation is how long the evaluation of all CUE files may take together; default 2 minutes.
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

// ParseAgeIdentities reads private keys in the form of SOPS_AGE_KEY and of keys.txt: one
// AGE-SECRET-KEY-1… a line, comments begin with #. The error never shows a key.
func ParseAgeIdentities(text string) ([]age.Identity, error) {
	var identities []age.Identity
	for number, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		found, err := age.ParseIdentities(strings.NewReader(line))
		if err != nil {
			return nil, fmt.Errorf("line %d is no age key; a key begins with AGE-SECRET-KEY-1", number+1)
		}
		identities = append(identities, found...)
	}
	return identities, nil
}
