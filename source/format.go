// SPDX-License-Identifier: Apache-2.0

package source

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/format/config"
)

// repositoryFormat says how a repository stores objects and references, according to its
// configuration.
type repositoryFormat struct {
	// usesReftable says that references are stored in a format that only git reads.
	usesReftable bool
	// promisor is the remote with the missing objects of a partial clone; it is empty for a full
	// clone; filter describes the missing objects.
	promisor, filter string
}

// readOnlyExtensions are extensions that do not affect readers:
// https://git-scm.com/docs/repository-version.
var readOnlyExtensions = map[string]bool{"noop": true, "noop-v1": true, "preciousobjects": true, "worktreeconfig": true, "relativeworktrees": true,
	"compatobjectformat": true, "partialclone": true}

// readFormat reads the configuration of a repository. The error about an unreadable format says how
// to convert it.
func readFormat(name string) (repositoryFormat, error) {
	data, err := os.ReadFile(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return repositoryFormat{}, err
	}
	cfg := config.New()
	if err := config.NewDecoder(bytes.NewReader(data)).Decode(cfg); err != nil {
		return repositoryFormat{}, fmt.Errorf("read %s: %w", name, newBoundedError(err))
	}
	if version := cfg.Section("core").Option("repositoryformatversion"); version != "" && version != "0" && version != "1" {
		return repositoryFormat{}, newError(ReasonInvalid, "%s has format version %s, but only 0 and 1 can be read: clone it with an older git", name, boundedLine(version, 20))
	}
	var out repositoryFormat
	for _, option := range cfg.Section("extensions").Options {
		key, value := strings.ToLower(option.Key), strings.ToLower(option.Value)
		switch {
		case readOnlyExtensions[key], key == "objectformat" && value == "sha1", key == "refstorage" && value == "files":
		case key == "refstorage" && value == "reftable":
			out.usesReftable = true
		case key == "objectformat":
			return repositoryFormat{}, newError(ReasonInvalid, "%s says that objects have %s names, but only SHA-1 names can be read: "+
				"run `git init --object-format=sha1 NEW`, then `git fast-export --all | git -C NEW fast-import`", name, strings.ToUpper(boundedLine(value, 20)))
		default:
			return repositoryFormat{}, newError(ReasonInvalid, "%s has the unknown extension %s, which may change how objects are stored: clone the repository without it",
				name, boundedLine(option.Key+"="+option.Value, 80))
		}
		if key == "partialclone" {
			out.promisor = option.Value
		}
	}
	for _, remote := range cfg.Section("remote").Subsections {
		filter := remote.Option("partialclonefilter")
		if out.promisor == "" && (filter != "" || isPromisor(remote)) {
			out.promisor = remote.Name
		}
		if remote.Name == out.promisor && filter != "" {
			out.filter = fmt.Sprintf(" (filter %s)", boundedLine(filter, 80))
		}
	}
	out.promisor = boundedLine(out.promisor, 80)
	return out, nil
}

// isPromisor reports whether a remote promises objects. A key without a value is true in Git.
func isPromisor(remote *config.Subsection) bool {
	switch strings.ToLower(remote.Option("promisor")) {
	case "true", "yes", "on", "1":
		return true
	case "":
		return remote.HasOption("promisor")
	}
	return false
}
