// SPDX-License-Identifier: Apache-2.0

package landscapes

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/landscapes/evaluation"
	"github.com/pergola-dev/pergola/schemas"
)

// NoLandscapeError reports that a folder does not exist or has no landscape.yaml.
type NoLandscapeError struct {
	// Dir is the folder as the caller named it.
	Dir string
	// Reason says why the folder is not a landscape.
	Reason string
}

func (e *NoLandscapeError) Error() string { return e.Dir + " is not a landscape: " + e.Reason }

// Unwrap makes it an fs.ErrNotExist.
func (e *NoLandscapeError) Unwrap() error { return fs.ErrNotExist }

// Load reads the landscape folder dir. Its violations are about files, relative to dir;
// Landscape.Validate reports on objects. It fails if dir does not exist, cannot be read, or has no
// landscape.yaml (NoLandscapeError). It also fails if CUE cannot run at all, or if ctx ends.
func Load(ctx context.Context, dir string, opts Options) (*Landscape, []schemas.Violation, error) {
	absolute, err := filepath.Abs(dir)
	if err == nil {
		absolute, err = filepath.EvalSymlinks(absolute)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, &NoLandscapeError{Dir: dir, Reason: "there is no such folder"}
	}
	if err != nil {
		return nil, nil, fmt.Errorf("finding the landscape folder %s: %w", dir, err)
	}
	if info, err := os.Stat(absolute); err == nil && !info.IsDir() {
		return nil, nil, &NoLandscapeError{Dir: dir, Reason: "it is a file; give the folder that has " + configFile}
	}
	root, err := repositoryRoot(absolute, opts.Root)
	if err != nil {
		return nil, nil, fmt.Errorf("finding the repository of %s: %w", dir, err)
	}
	inside, err := filepath.Rel(root, absolute)
	if err != nil || !filepath.IsLocal(inside) {
		return nil, nil, fmt.Errorf("the landscape folder %s is not in the repository %s", dir, opts.Root)
	}
	handle, err := os.OpenRoot(root)
	if err != nil {
		return nil, nil, fmt.Errorf("opening the repository of %s: %w", dir, err)
	}
	return loadFS(ctx, newFolderCache(handle), filepath.ToSlash(inside), dir, opts)
}

// repositoryRoot returns the given folder, or the closest parent with .git, or else dir.
func repositoryRoot(dir, given string) (string, error) {
	if given != "" {
		absolute, err := filepath.Abs(given)
		if err != nil {
			return "", err
		}
		return filepath.EvalSymlinks(absolute)
	}
	for parent := dir; ; parent = filepath.Dir(parent) {
		if _, err := os.Lstat(filepath.Join(parent, ".git")); err == nil {
			return parent, nil
		}
		if parent == filepath.Dir(parent) {
			return dir, nil
		}
	}
}

// LoadFS is Load for any file system, such as the tree of a Git commit. fsys is the repository; dir
// is the landscape folder in it, with slashes. A file system with symbolic links should implement
// fs.ReadLinkFS.
func LoadFS(ctx context.Context, fsys fs.FS, dir string, opts Options) (*Landscape, []schemas.Violation, error) {
	return loadFS(ctx, fsys, dir, dir, opts)
}

// loadFS is LoadFS for a folder whose name differs for the caller.
func loadFS(ctx context.Context, fsys fs.FS, folder, dir string, opts Options) (*Landscape, []schemas.Violation, error) {
	home := path.Clean(folder)
	if !fs.ValidPath(home) {
		return nil, nil, fmt.Errorf("the landscape folder %s is not a path inside the repository", dir)
	}
	if _, err := fs.Lstat(fsys, path.Join(home, configFile)); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil, &NoLandscapeError{Dir: dir, Reason: "it has no file " + configFile}
		}
		return nil, nil, fmt.Errorf("reading %s of the landscape %s: %w", configFile, dir, err)
	}
	l := newLoader(ctx, fsys, home, opts)
	l.landscape.Dir = dir
	if err := l.loadFolder(home); err != nil {
		if ctx.Err() != nil {
			return nil, nil, ctx.Err()
		}
		return nil, nil, fmt.Errorf("reading the landscape %s: %w", dir, err)
	}
	// In a damaged repository, unreadable or missing files are not findings.
	if kept, ok := fsys.(damageReportingFS); ok {
		if err := kept.Damaged(); err != nil {
			return nil, nil, fmt.Errorf("reading the landscape %s: %w", dir, err)
		}
	}
	l.reportNested()
	landscape, violations := l.finish()
	return landscape, violations, nil
}

// finish checks the merged declarations and returns the landscape.
func (l *loader) finish() (*Landscape, []schemas.Violation) {
	l.landscape.Declarations = l.merged.list
	for i := range l.landscape.Declarations {
		l.checkSettings(&l.landscape.Declarations[i])
	}
	l.checkConfig()
	l.convertConfig()
	l.landscape.Incomplete = l.isIncomplete()
	schemas.SortViolations(l.violations)
	return l.landscape, l.violations
}

func newLoader(ctx context.Context, fsys fs.FS, home string, opts Options) *loader {
	evaluator := opts.Evaluator
	if evaluator == nil {
		evaluator = evaluation.InProcess{}
	}
	return &loader{
		ctx: ctx, evaluator: evaluator, fs: fsys, home: home, opts: opts, limits: opts.Limits.withDefaults(), keys: newKeySet(opts.AgeIdentities),
		mergedFolders: map[string]bool{}, openFolders: map[string]bool{}, merged: newDeclarations(),
		landscape: &Landscape{FS: fsys, Path: home, Config: &landscapev1alpha1.Landscape{}, resultCache: opts.ResultCache, Keys: publicKeys(opts.AgeIdentities)},
	}
}

// convertConfig sets the typed form of landscape.yaml. It skips fields of the spec with a wrong
// type, which the schema reports. The other fields still have an effect, or they would cause false
// findings.
func (l *loader) convertConfig() {
	d := l.landscape.ConfigDeclaration
	if d == nil {
		return
	}
	object := d.Object().DeepCopy().Object
	if spec, is := object["spec"].(map[string]any); is {
		maps.DeleteFunc(spec, func(field string, value any) bool {
			one := map[string]any{"spec": map[string]any{field: value}}
			return runtime.DefaultUnstructuredConverter.FromUnstructured(one, &landscapev1alpha1.Landscape{}) != nil
		})
	}
	config := &landscapev1alpha1.Landscape{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object, config); err == nil {
		l.landscape.Config = config
	}
}

// Parse reads one manifest, from a file or standard input, without a landscape. Places contain the
// name; the suffix .cue selects CUE instead of YAML or JSON. Server metadata are retained, so the
// input may come from an API server. The error is as in Load.
func Parse(ctx context.Context, name string, data []byte, opts Options) ([]Declaration, []schemas.Violation, error) {
	l := newLoader(ctx, nil, ".", opts)
	l.keepsServerMetadata = true
	if limit := l.limits.FileSize; int64(len(data)) > limit {
		l.reportTooLong(name, int64(len(data)))
		return nil, l.violations, nil
	}
	if p := checkText(name, data); p != nil {
		l.report(name, p.line, p.column, "landscape/file", schemas.TypeInvalid, "%s", p.message)
		return nil, l.violations, nil
	}
	layer := &layer{loader: l, folder: ".", found: newDeclarations()}
	if strings.HasSuffix(name, ".cue") {
		layer.inputs = []layerInput{{pkg: l.newPackage([]evaluation.File{{Name: name, Data: data}})}}
	} else {
		layer.inputs = []layerInput{{found: l.parseYAML(name, data)}}
	}
	if err := layer.finish(); err != nil {
		if ctx.Err() != nil {
			return nil, nil, ctx.Err()
		}
		return nil, nil, fmt.Errorf("reading %s: %w", name, err)
	}
	for i := range layer.found.list {
		l.checkSettings(&layer.found.list[i])
	}
	schemas.SortViolations(l.violations)
	return layer.found.list, l.violations, nil
}
