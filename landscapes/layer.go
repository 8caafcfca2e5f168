// SPDX-License-Identifier: Apache-2.0

package landscapes

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/pergola-dev/pergola/landscapes/evaluation"
	"github.com/pergola-dev/pergola/schemas"
)

// layer is one folder with its declarations, before it is merged onto its bases.
type layer struct {
	*loader
	folder string
	found  *declarations
	// inputs are the inputs in order, before CUE is evaluated.
	inputs []layerInput
}

// layerInput is an unread file, its objects, or an unevaluated CUE package.
type layerInput struct {
	file  string
	found []Declaration
	pkg   evaluation.Package
}

// finish reads the files, evaluates the CUE packages and adds all objects to the layer.
func (l *layer) finish() error {
	if err := l.readFiles(); err != nil {
		return err
	}
	var packages []evaluation.Package
	for _, r := range l.inputs {
		if len(r.pkg.Files) > 0 {
			packages = append(packages, r.pkg)
		}
	}
	evaluated, err := l.evaluate(packages)
	if err != nil {
		return err
	}
	count := 0
	for _, r := range l.inputs {
		count += len(r.found)
	}
	for _, found := range evaluated {
		count += len(found)
	}
	l.found.reserve(count)
	for _, r := range l.inputs {
		if len(r.pkg.Files) > 0 {
			r.found, evaluated = evaluated[0], evaluated[1:]
		}
		l.addAll(r.found)
	}
	return nil
}

// readConfig reads landscape.yaml. The second result reports whether the file exists.
func (l *layer) readConfig() (*Declaration, bool) {
	name := path.Join(l.folder, configFile)
	info, err := fs.Lstat(l.fs, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false
	}
	if err == nil && info.Mode()&fs.ModeSymlink != 0 && !l.checkLink(name) {
		return nil, true
	}
	data, ok := l.readTextFile(name)
	if !ok {
		return nil, true
	}
	found := l.parseYAML(name, data)
	for i := range found {
		if found[i].kind.Kind == configKind {
			for _, other := range append(found[:i:i], found[i+1:]...) {
				l.report(name, other.Line, other.Column, "landscape/config", schemas.TypeForbidden, "%s belongs in its own file: %s holds only the Landscape", identityOf(&other), configFile)
			}
			found[i].Layer = l.layerName(l.folder)
			return &found[i], true
		}
	}
	if len(found) > 0 || len(splitDocuments(data)) == 0 {
		l.report(name, 1, 1, "landscape/config", schemas.TypeRequired, "must hold an object of kind Landscape (landscape.pergola.dev/v1alpha1) with a metadata.name")
	}
	return nil, true
}

// walk reads the declarations of a folder and its subfolders, except the files and folders in skip.
func (l *layer) walk(folder string, depth int, skip []string) error {
	if err := l.ctx.Err(); err != nil {
		return err
	}
	if depth > l.limits.Depth {
		l.report(folder, 0, 0, "landscape/limits", schemas.TypeTooMany, "folders are nested more than %d deep", l.limits.Depth)
		return nil
	}
	entries, err := fs.ReadDir(l.fs, folder)
	if err != nil {
		l.report(folder, 0, 0, "landscape/file", schemas.TypeInvalid, "the folder cannot be read: %s", ioErrorText(err))
		return nil
	}
	l.checkNames(folder, entries)
	var cueFiles []string
	for _, entry := range entries {
		name := path.Join(folder, entry.Name())
		if strings.HasPrefix(entry.Name(), ".") || folder == l.folder && entry.Name() == configFile || slices.Contains(skip, name) {
			continue
		}
		switch {
		case entry.Type()&fs.ModeSymlink != 0:
			l.checkLink(name)
		case entry.IsDir() && entry.Name() == moduleFolder: // for CUE editors
		case entry.IsDir() && l.isLandscape(name):
			if l.folder == l.home || !isWithin(l.folder, l.home) {
				l.nested = append(l.nested, name)
			}
		case entry.IsDir():
			if err := l.walk(name, depth+1, skip); err != nil {
				return err
			}
		case !entry.Type().IsRegular():
			l.reportIrregular(name, entry.Type())
		case !isDeclarationFile(entry.Name()):
			l.checkOtherFile(name)
		case path.Ext(entry.Name()) == ".cue" && !evaluation.IsSelected(name):
			l.checkIgnoredCUE(name)
		case path.Ext(entry.Name()) == ".cue":
			cueFiles = append(cueFiles, name)
		default:
			if l.countFile(name) {
				l.inputs = append(l.inputs, layerInput{file: name})
			}
		}
	}
	for _, pkg := range l.readCUE(folder, cueFiles) {
		l.inputs = append(l.inputs, layerInput{pkg: pkg})
	}
	return nil
}

// checkNames warns of confusing names. Names that differ only in case lose a file when cloned to
// some file systems. A name may also be similar to landscape.yaml.
func (l *layer) checkNames(folder string, entries []fs.DirEntry) {
	warn := func(name, rule, format string, args ...any) {
		l.report(path.Join(folder, name), 1, 1, rule, schemas.TypeInvalid, format, args...)
		l.violations[len(l.violations)-1].Severity = schemas.SeverityWarning
	}
	seen := map[string]string{}
	for _, entry := range entries {
		name := entry.Name()
		lower := strings.ToLower(name)
		switch other := seen[lower]; {
		case other != "":
			warn(name, "landscape/file", "differs from %s only in letter case, so a clone on a case-insensitive file system has only one of them; rename one", other)
		case name != configFile && strings.TrimSuffix(lower, path.Ext(lower)) == "landscape" && isDeclarationFile(lower) && l.isLandscape(folder):
			warn(name, ruleConfig, "is ignored, because the settings of the landscape are in %s; move its content there, and remove the file", configFile)
		}
		seen[lower] = name
	}
}

// isLandscape reports whether a folder is a separate landscape.
func (l *layer) isLandscape(folder string) bool {
	_, err := fs.Lstat(l.fs, path.Join(folder, configFile))
	return err == nil
}

func isDeclarationFile(name string) bool {
	switch path.Ext(name) {
	case ".yaml", ".yml", ".json", ".cue":
		return true
	}
	return false
}

// addAll adds objects to the layer, each identity once.
func (l *layer) addAll(found []Declaration) {
	layer := l.layerName(l.folder)
	for _, d := range found {
		d.Layer = layer
		if first, double := l.found.add(d); double {
			place := d.KeyPosition("metadata.name")
			l.violations = append(l.violations, schemas.Violation{
				Severity: schemas.SeverityError, File: place.File, Line: place.Line, Column: place.Column, Kind: d.kind.Kind,
				Namespace: d.namespace, Name: d.name, Field: "metadata.name", Type: schemas.TypeDuplicate, Rule: "landscape/duplicate",
				Message: fmt.Sprintf("the object is already declared in %s:%d:%d; remove one of them, or choose another name", first.File, first.Line, first.Column),
			})
		}
	}
}
