// SPDX-License-Identifier: Apache-2.0

package landscapes

import (
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/pergola-dev/pergola/internal/suggest"
	"github.com/pergola-dev/pergola/schemas"
)

// The folders at the top of a landscape that have no declarations.
const (
	overlayFolder   = "components" // overlays of components
	operationFolder = "operations" // one-shot operations
	goldenFolder    = "golden"     // the recorded render
)

// overlayFile makes a folder an overlay.
const overlayFile = "kustomization.yaml"

// specialFolders returns the special folders of a landscape, as paths in the repository.
func (l *loader) specialFolders(folder string, isLandscape bool) []string {
	if !isLandscape {
		return nil
	}
	return []string{path.Join(folder, overlayFolder), path.Join(folder, operationFolder), path.Join(folder, goldenFolder)}
}

// readSpecialFolders reads overlays and operations, and reports files in the wrong folder.
func (l *layer) readSpecialFolders() {
	for _, folder := range l.specialFolders(l.folder, true) {
		info, err := fs.Lstat(l.fs, folder)
		switch {
		case err != nil: // it does not exist
		case info.Mode()&fs.ModeSymlink != 0:
			l.report(folder, 0, 0, "landscape/link", schemas.TypeForbidden, "is a symbolic link: %s must be a folder of the landscape itself; to share it, put it into a folder of spec.layers", path.Base(folder))
		case !info.IsDir():
			l.report(folder, 0, 0, "landscape/file", schemas.TypeInvalid, "must be a folder: the name is reserved")
		case path.Base(folder) == overlayFolder:
			l.readOverlays(folder)
		case path.Base(folder) == operationFolder:
			l.readOperations(folder)
		default:
			l.checkTree(folder, 0, func(string) {})
		}
	}
}

// isDocumentation reports whether a file is only for people.
func isDocumentation(name string) bool {
	return strings.HasPrefix(name, ".") || path.Ext(name) == ".md"
}

func (l *layer) readOverlays(components string) {
	owners := []string{"garden", "seed", "shoot"}
	for _, owner := range l.subfolders(components) {
		if !slices.Contains(owners, owner) {
			l.report(path.Join(components, owner), 0, 0, "landscape/overlay", schemas.TypeNotSupported,
				"%q owns no components%s; overlays are in components/garden, components/seed or components/shoot", owner, didYouMean(owner, owners))
			continue
		}
		for _, component := range l.subfolders(path.Join(components, owner)) {
			folder := path.Join(components, owner, component)
			l.checkTree(folder, 0, func(name string) { l.checkPrivateKeys(name) })
			info, err := fs.Lstat(l.fs, path.Join(folder, overlayFile))
			if err != nil {
				l.report(folder, 0, 0, "landscape/overlay", schemas.TypeRequired, "the overlay has no file %s%s", overlayFile, l.overlayFileHint(folder))
			}
			if err == nil && info.Mode().IsRegular() {
				l.landscape.Overlays = append(l.landscape.Overlays, Overlay{Owner: owner, Component: component, Path: folder, Layer: l.layerName(l.folder)})
			}
		}
	}
}

// overlayFileHint suggests the file that should most likely be kustomization.yaml, or returns an
// empty string.
func (l *layer) overlayFileHint(folder string) string {
	var names []string
	for _, entry := range l.entries(folder) {
		if !entry.IsDir() && !isDocumentation(entry.Name()) {
			names = append(names, entry.Name())
		}
	}
	if name := suggest.Closest(overlayFile, names); name != "" {
		return ": rename " + name
	}
	return ""
}

// subfolders returns the folders in a folder, and reports other entries.
func (l *layer) subfolders(folder string) []string {
	var names []string
	for _, entry := range l.entries(folder) {
		name := path.Join(folder, entry.Name())
		switch {
		case entry.Type()&fs.ModeSymlink != 0:
			l.report(name, 0, 0, "landscape/link", schemas.TypeForbidden, "is a symbolic link: overlays must be folders of the landscape itself")
		case isDocumentation(entry.Name()):
		case entry.IsDir():
			names = append(names, entry.Name())
		default:
			l.report(name, 0, 0, "landscape/overlay", schemas.TypeInvalid, "is not an overlay: overlays are folders components/OWNER/COMPONENT with a kustomization.yaml")
		}
	}
	return names
}

func (l *layer) entries(folder string) []fs.DirEntry {
	entries, err := fs.ReadDir(l.fs, folder)
	if err != nil {
		l.report(folder, 0, 0, "landscape/file", schemas.TypeInvalid, "the folder cannot be read: %s", ioErrorText(err))
	}
	return entries
}

// checkTree reports links that leave a folder and irregular files, in a folder that another package
// reads. It calls visit for each regular file.
func (l *layer) checkTree(folder string, depth int, visit func(name string)) {
	if depth > l.limits.Depth {
		l.report(folder, 0, 0, "landscape/limits", schemas.TypeTooMany, "folders are nested more than %d deep", l.limits.Depth)
		return
	}
	entries := l.entries(folder)
	l.checkNames(folder, entries)
	for _, entry := range entries {
		name := path.Join(folder, entry.Name())
		switch {
		case entry.Type()&fs.ModeSymlink != 0:
			l.checkLink(name)
		case entry.IsDir():
			l.checkTree(name, depth+1, visit)
		case !entry.Type().IsRegular():
			l.reportIrregular(name, entry.Type())
		case !isDocumentation(entry.Name()):
			visit(name)
		}
	}
}

// reportNested warns of landscapes inside this one: their folders are not read, unless they are
// layers. Landscapes beside this one, in a layer that contains it, are expected.
func (l *loader) reportNested() {
	for _, folder := range l.nested {
		if l.mergedFolders[folder] {
			continue
		}
		name := path.Join(folder, configFile)
		l.report(name, 1, 1, "landscape/nested", schemas.TypeForbidden,
			"the folder is a separate landscape, not part of this one; to include it, list it in spec.layers, or remove its %s", configFile)
		l.violations[len(l.violations)-1].Severity = schemas.SeverityWarning
	}
}
