// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// firstCommit is the last commit before the rule about subjects.
const firstCommit = "4ba72fef"

// foreignFilePattern matches files that others wrote or that a program writes.
var foreignFilePattern = regexp.MustCompile(`(^|/)(testdata|golden|cases|files)/|^LICENSE$|^docs/reference/(cli/|(rules|landscape|metrics)\.md$)|^schemas/base/`)

func main() {
	found, err := run(os.Args[1:])
	for _, f := range found {
		fmt.Println(f)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "prose:", err)
		os.Exit(2)
	}
	if len(found) > 0 {
		fmt.Fprintf(os.Stderr, "prose: %d findings\n", len(found))
		os.Exit(1)
	}
}

func run(args []string) ([]finding, error) {
	listed := append([]string{"ls-files", "-co", "--exclude-standard", "--"}, args...)
	out, err := exec.Command("git", append([]string{"-c", "core.quotePath=false"}, listed...)...).Output()
	if err != nil {
		return nil, fmt.Errorf("listing files: %w", err)
	}
	var found []finding
	for file := range strings.Lines(string(out)) {
		file = strings.TrimSpace(file)
		if foreignFilePattern.MatchString(file) {
			continue
		}
		more, err := checkFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue // deleted in the work tree
		}
		if err != nil {
			return found, fmt.Errorf("%s: %w", file, err)
		}
		found = append(found, more...)
	}
	if len(args) > 0 {
		return found, nil
	}
	subjects, err := checkSubjects()
	return append(found, subjects...), err
}

func checkFile(file string) ([]finding, error) {
	extension := filepath.Ext(file)
	switch extension {
	case ".go", ".md", ".cue", ".yaml", ".sh":
	default:
		return nil, nil
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	switch extension {
	case ".go":
		return checkGo(file, raw)
	case ".md":
		return checkMarkdown(file, raw), nil
	case ".cue":
		return checkCUE(file, raw)
	}
	return checkComments(file, raw, "#"), nil
}

var commitSubjectPattern = regexp.MustCompile(`^[a-z0-9][\w./,{} -]*: [^A-Z ].*[^.]$`)

// checkSubjects checks the subjects of the commits after firstCommit. A clone without that commit,
// such as a shallow one, has no range to check.
func checkSubjects() ([]finding, error) {
	if exec.Command("git", "merge-base", "--is-ancestor", firstCommit, "HEAD").Run() != nil {
		fmt.Fprintln(os.Stderr, "prose: left out: commit subjects (the clone does not reach back to "+firstCommit+")")
		return nil, nil
	}
	raw, err := exec.Command("git", "log", "--no-merges", "--format=%h %s", firstCommit+"..HEAD").Output()
	if err != nil {
		return nil, fmt.Errorf("reading commits: %w", err)
	}
	var out []finding
	for l := range bytes.Lines(raw) {
		commit, text, _ := strings.Cut(strings.TrimSpace(string(l)), " ")
		switch {
		case len([]rune(text)) > maxSubject:
			out = append(out, finding{"commit " + commit, 0, "subject", fmt.Sprintf("%d characters (at most %d): %s", len([]rune(text)), maxSubject, text)})
		case !commitSubjectPattern.MatchString(text):
			out = append(out, finding{"commit " + commit, 0, "subject", "not of the form `area: imperative`: " + text})
		}
	}
	return out, nil
}
