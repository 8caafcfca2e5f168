// SPDX-License-Identifier: Apache-2.0

package record

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/internal/printable"
	"github.com/pergola-dev/pergola/plan/golden"
	"github.com/pergola-dev/pergola/render"
)

// Changes counts the files that a record changed.
type Changes struct{ Written, Removed, Unchanged int }

func (c Changes) String() string {
	return fmt.Sprintf("%s written, %d removed, %d unchanged", printable.WithCount(c.Written, "file"), c.Removed, c.Unchanged)
}

// Write replaces the files of the previous render and removes files that are no longer rendered.
func Write(dir string, files map[string][]byte) (done Changes, err error) {
	recorded, err := readTree(dir)
	if err != nil {
		return done, err
	}
	if alien := unrecordedFile(recorded); alien != "" {
		return done, fmt.Errorf("%s contains files that are not from a recorded render (%s): give an empty folder, or a folder with only a previous render", dir, alien)
	}
	for name := range recorded {
		if _, ok := files[name]; ok {
			continue
		}
		if err := os.Remove(filepath.Join(dir, filepath.FromSlash(name))); err != nil {
			return done, err
		}
		done.Removed++
		for parent := path.Dir(name); parent != "."; parent = path.Dir(parent) {
			if os.Remove(filepath.Join(dir, filepath.FromSlash(parent))) != nil {
				break // not empty
			}
		}
	}
	for name, content := range files {
		if old, ok := recorded[name]; ok && bytes.Equal(old, content) {
			done.Unchanged++
			continue
		}
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return done, err
		}
		if err := os.WriteFile(path, content, 0o644); err != nil {
			return done, err
		}
		done.Written++
	}
	return done, nil
}

// unrecordedFile returns a file that no bundle.yaml lists, or "": a render must only remove files
// of a render.
func unrecordedFile(recorded map[string][]byte) string {
	for _, name := range slices.Sorted(maps.Keys(recorded)) {
		if strings.HasPrefix(name, render.FlowFolder+"/") && path.Ext(name) == ".yaml" {
			continue
		}
		bundle, ok := recorded[path.Join(path.Dir(name), "bundle.yaml")]
		if !ok || path.Base(name) != "bundle.yaml" && !bytes.Contains(bundle, []byte(path.Base(name)+"  # ")) {
			return name
		}
	}
	return ""
}

// neighbourRecordHint suggests a neighbouring folder with golden files.
func neighbourRecordHint(dir string) string {
	above := filepath.Dir(dir)
	entries, _ := os.ReadDir(above)
	for _, e := range entries {
		if beside := filepath.Join(above, e.Name()); beside != filepath.Clean(dir) && isRecord(beside) {
			return fmt.Sprintf("%s has some: give --dir %s, or ", beside, beside)
		}
	}
	return ""
}

// isRecord reports whether a folder is a record, which always has flows.
func isRecord(dir string) bool {
	info, err := os.Stat(filepath.Join(dir, render.FlowFolder))
	return err == nil && info.IsDir()
}

// Report is the result of a comparison with a record.
type Report struct {
	Files       int                 `json:"files"`
	Differences []golden.Difference `json:"differences"`
}

// Compare compares a record with newly rendered files.
func Compare(dir string, files map[string][]byte) (report Report, err error) {
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return report, fmt.Errorf("%s is a file: give the folder of the golden files", dir)
	}
	recorded, err := readTree(dir)
	if err != nil {
		return report, err
	}
	if len(recorded) == 0 {
		return report, fmt.Errorf("%s has no golden files: nothing is recorded: %srun golden with --update first", dir, neighbourRecordHint(dir))
	}
	report = Report{Files: len(files), Differences: []golden.Difference{}}
	for _, name := range slices.Sorted(maps.Keys(union(files, recorded))) {
		found := golden.Compare(name, recorded[name], files[name])
		for i := range found {
			found[i].Origin = originOfFile(files, name)
		}
		report.Differences = append(report.Differences, found...)
	}
	return report, nil
}

// WithoutDigests returns the differences without the digests in bundle.yaml, which repeat changes
// of objects: a forge shows only few annotations.
func (r Report) WithoutDigests() []golden.Difference {
	said := map[string]bool{}
	for _, d := range r.Differences {
		if path.Base(d.File) != "bundle.yaml" {
			said[path.Dir(d.File)] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(r.Differences), func(d golden.Difference) bool {
		return d.Action == golden.Changed && path.Base(d.File) == "bundle.yaml" && said[path.Dir(d.File)] &&
			!slices.ContainsFunc(d.Fields, func(f change.Field) bool { return !strings.HasPrefix(f.Path, "digest.") })
	})
}

func union(a, b map[string][]byte) map[string][]byte {
	out := maps.Clone(a)
	maps.Copy(out, b)
	return out
}

// originOfFile returns the origin of the object in a file, as its bundle.yaml lists it.
func originOfFile(files map[string][]byte, name string) string {
	for line := range bytes.Lines(files[path.Join(path.Dir(name), "bundle.yaml")]) {
		text := strings.Trim(strings.TrimPrefix(strings.TrimSpace(string(line)), "- "), "'")
		if origin, ok := strings.CutPrefix(text, path.Base(name)+"  # "); ok {
			return origin
		}
	}
	return ""
}

func readTree(dir string) (map[string][]byte, error) {
	out := map[string][]byte{}
	root := os.DirFS(dir)
	err := fs.WalkDir(root, ".", func(p string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) && p == "." {
			return fs.SkipAll
		}
		if err != nil || d.IsDir() {
			return err
		}
		out[p], err = fs.ReadFile(root, p)
		return err
	})
	return out, err
}

// WriteCases writes the files of all cases of a catalogue that render, and removes stale files.
func WriteCases(dir string, report *golden.Report) (done Changes, err error) {
	for _, name := range report.Stale {
		if err := os.Remove(filepath.Join(dir, filepath.FromSlash(name))); err != nil {
			return done, err
		}
		// fails if it is not empty
		_ = os.Remove(filepath.Join(dir, filepath.FromSlash(path.Dir(name))))
		done.Removed++
	}
	for name, content := range report.Files {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if old, err := os.ReadFile(file); err == nil && string(old) == string(content) {
			done.Unchanged++
			continue
		}
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return done, err
		}
		if err := os.WriteFile(file, content, 0o644); err != nil {
			return done, err
		}
		done.Written++
	}
	return done, nil
}
