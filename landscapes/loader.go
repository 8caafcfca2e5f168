// SPDX-License-Identifier: Apache-2.0

package landscapes

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pergola-dev/pergola/landscapes/evaluation"
	"github.com/pergola-dev/pergola/schemas"
)

// configFile marks a folder as a landscape.
const configFile = "landscape.yaml"

// loader reads one landscape. It collects violations instead of stopping at the first one.
type loader struct {
	ctx                 context.Context
	evaluator           evaluation.Evaluator
	evaluationTime      time.Duration // time spent on CUE files
	fs                  fs.FS
	home                string // the landscape folder
	opts                Options
	limits              Limits
	keys                keySet
	violations          []schemas.Violation
	files               int
	isLimitReported     bool
	keepsServerMetadata bool // the objects come from an API server, so server metadata are retained

	// mergedFolders and open are the folders already merged and being read, to load each once and
	// to find cycles.
	mergedFolders, openFolders map[string]bool
	// nested are landscapes in subfolders of this one.
	nested    []string
	landscape *Landscape
	merged    *declarations
}

// report adds a violation about a file. The name is its path in the repository.
func (l *loader) report(file string, line, column int, rule string, typ schemas.ViolationType, format string, args ...any) {
	l.violations = append(l.violations, schemas.Violation{
		Severity: schemas.SeverityError, File: l.relative(file), Line: line, Column: column,
		Type: typ, Rule: rule, Message: fmt.Sprintf(format, args...),
	})
}

// relative returns a path relative to the landscape folder.
func (l *loader) relative(name string) string {
	if rest, ok := strings.CutPrefix(name, l.home+"/"); ok {
		return rest
	}
	if l.home == "." || name == l.home {
		return strings.TrimPrefix(name, l.home+"/")
	}
	relative, err := filepath.Rel(filepath.FromSlash(l.home), filepath.FromSlash(name))
	if err != nil {
		return name
	}
	return filepath.ToSlash(relative)
}

// layerName returns the name of a folder in Declaration.Layer and Overlay.Layer.
func (l *loader) layerName(folder string) string {
	if folder == l.home {
		return ""
	}
	return l.relative(folder)
}

// loadFolder merges the layers of a folder, and then the folder itself.
func (l *loader) loadFolder(folder string) error {
	if l.mergedFolders[folder] {
		return nil
	}
	l.openFolders[folder] = true
	defer delete(l.openFolders, folder)

	layer := &layer{loader: l, folder: folder, found: newDeclarations()}
	config, hasConfig := layer.readConfig()
	var bases []string
	if config != nil {
		bases = l.layersOf(config, folder)
	}
	for _, base := range bases {
		if err := l.loadFolder(base); err != nil {
			return err
		}
	}
	if hasConfig {
		layer.readSpecialFolders()
	}
	skip := append(bases, l.specialFolders(folder, hasConfig)...)
	if config != nil {
		if facts := l.rebaseFacts(config, folder); facts != "" {
			skip = append(skip, facts)
		}
	}
	if err := layer.walk(folder, 0, skip); err != nil {
		return err
	}
	if err := layer.finish(); err != nil {
		return err
	}
	l.mergedFolders[folder] = true
	l.landscape.Layers = append(l.landscape.Layers, l.relativeFolder(folder))
	l.merged.mergeLayer(layer.found, func(d *Declaration, field, meant string) {
		l.reportField(d, field, schemas.TypeInvalid, ruleRemoval, fmt.Sprintf("null removes a field of lower layers, but none has this field; did you mean %q?", meant))
	})
	if config != nil {
		l.mergeConfig(config)
	}
	return nil
}

func (l *loader) relativeFolder(folder string) string {
	if folder == l.home {
		return "."
	}
	return l.relative(folder)
}

func (l *loader) mergeConfig(config *Declaration) {
	if before := l.landscape.ConfigDeclaration; before != nil {
		mergeDeclaration(before, config)
		return
	}
	l.landscape.ConfigDeclaration = config
}

// layersOf returns the layers of a landscape.yaml, and reports invalid ones.
func (l *loader) layersOf(config *Declaration, folder string) []string {
	spec, _ := config.Object().Object["spec"].(map[string]any)
	list, isList := spec["layers"].([]any)
	if spec["layers"] != nil && !isList {
		// The field is retained so that package schemas reports its type: a landscape without its
		// layers must not be valid.
		return nil
	}
	for _, item := range list {
		if _, ok := item.(string); !ok {
			return nil
		}
	}
	delete(spec, "layers") // not inherited
	var bases []string
	for i, item := range list {
		name, _ := item.(string)
		base, problem := l.resolveLayer(folder, name)
		switch {
		case problem != "":
		case l.openFolders[base]:
			problem = fmt.Sprintf("the layer %q builds on this landscape: layers must not form a cycle", name)
		case slices.Contains(bases, base):
			problem = fmt.Sprintf("the layer %q is listed twice", name)
		}
		if problem == "" {
			bases = append(bases, base)
			continue
		}
		l.landscape.IsLayerMissing = true
		field := fmt.Sprintf("spec.layers[%d]", i)
		place := config.Position(field)
		l.violations = append(l.violations, schemas.Violation{
			Severity: schemas.SeverityError, File: place.File, Line: place.Line, Column: place.Column, Kind: config.kind.Kind,
			Name: config.name, Field: field, Type: schemas.TypeInvalid, Rule: "landscape/layer", Message: problem,
		})
	}
	return bases
}

// resolveLayer returns the folder of a layer in the repository, or a problem.
func (l *loader) resolveLayer(folder, name string) (string, string) {
	if path.IsAbs(name) || filepath.IsAbs(name) || strings.Contains(name, `\`) {
		return "", fmt.Sprintf("the layer %q must be a relative path with slashes", name)
	}
	base := path.Join(folder, name)
	if !fs.ValidPath(base) {
		return "", fmt.Sprintf("the layer %q leaves the repository", name)
	}
	if problem := l.checkPath(base); problem != "" {
		return "", fmt.Sprintf("the layer %q %s", name, problem)
	}
	info, err := fs.Stat(l.fs, base)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		var folders []string
		entries, _ := fs.ReadDir(l.fs, path.Dir(base))
		for _, entry := range entries {
			if entry.IsDir() {
				folders = append(folders, path.Join(path.Dir(name), entry.Name()))
			}
		}
		return "", fmt.Sprintf("the layer %q does not exist%s", name, didYouMean(name, folders))
	case err != nil:
		return "", fmt.Sprintf("the layer %q cannot be read", name)
	case !info.IsDir():
		return "", fmt.Sprintf("the layer %q is not a folder", name)
	}
	return base, ""
}

// checkPath refuses paths through symbolic links: they could lead anywhere.
func (l *loader) checkPath(name string) string {
	for parent := name; parent != "."; parent = path.Dir(parent) {
		info, err := fs.Lstat(l.fs, parent)
		if err == nil && info.Mode()&fs.ModeSymlink != 0 {
			return "is, or lies behind, a symbolic link"
		}
	}
	return ""
}
