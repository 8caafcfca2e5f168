package landscapes

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/pergola-dev/pergola/schemas"
)

// layer is one folder with its declarations, before it is merged onto those below.
type layer struct {
	*loader
	folder string
	found  *declarations
}

// readConfig reads landscape.yaml. The second result tells whether the file exists.
func (l *layer) readConfig() (*Declaration, bool) {
	name := path.Join(l.folder, configFile)
	if _, err := fs.Lstat(l.fs, name); errors.Is(err, fs.ErrNotExist) {
		return nil, false
	}
	data, ok := l.read(name)
	if !ok {
		return nil, true
	}
	found := l.parseYAML(name, data)
	for i := range found {
		if found[i].Object.GetKind() == "Landscape" {
			for _, other := range append(found[:i:i], found[i+1:]...) {
				l.report(name, other.Line, other.Column, "landscape/config", schemas.TypeForbidden, "%s belongs into a file of its own: %s holds the Landscape only", identityOf(other.Object), configFile)
			}
			found[i].Layer = l.layerName(l.folder)
			return &found[i], true
		}
	}
	if len(found) > 0 {
		l.report(name, 1, 1, "landscape/config", schemas.TypeRequired, "must hold an object of kind Landscape (landscape.pergola.dev/v1alpha1)")
	}
	return nil, true
}

// walk reads the declarations of a folder and those below it, but not the files and folders to skip.
func (l *layer) walk(folder string, depth int, skip []string) {
	if depth > l.limits.Depth {
		l.report(folder, 0, 0, "landscape/limits", schemas.TypeTooMany, "folders are nested more than %d deep", l.limits.Depth)
		return
	}
	entries, err := fs.ReadDir(l.fs, folder)
	if err != nil {
		l.report(folder, 0, 0, "landscape/file", schemas.TypeInvalid, "the folder cannot be read: %s", reason(err))
		return
	}
	var cueFiles []string
	for _, entry := range entries {
		name := path.Join(folder, entry.Name())
		if strings.HasPrefix(entry.Name(), ".") || folder == l.folder && entry.Name() == configFile || slices.Contains(skip, name) {
			continue
		}
		switch {
		case entry.Type()&fs.ModeSymlink != 0:
			l.checkLink(name)
		case entry.IsDir():
			if !l.isLandscape(name) {
				l.walk(name, depth+1, skip)
			}
		case !isDeclarationFile(entry.Name()):
		case !entry.Type().IsRegular():
			l.report(name, 0, 0, "landscape/file", schemas.TypeInvalid, "is not a regular file")
		case path.Ext(entry.Name()) == ".cue":
			cueFiles = append(cueFiles, name)
		default:
			if data, ok := l.read(name); ok {
				l.addAll(l.parseYAML(name, data))
			}
		}
	}
	l.addAll(l.readCUE(folder, cueFiles))
}

// isLandscape tells whether a folder inside is a landscape of its own, which is no part of this one.
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

// checkLink refuses symbolic links that lead out of the layer. Links inside are not followed, since what they name is
// read under its own name.
func (l *layer) checkLink(name string) {
	target, err := fs.ReadLink(l.fs, name)
	if err != nil {
		l.report(name, 0, 0, "landscape/link", schemas.TypeForbidden, "is a symbolic link that cannot be read")
		return
	}
	resolved := path.Join(path.Dir(name), target)
	inside := !path.IsAbs(target) && (l.folder == "." && fs.ValidPath(resolved) || resolved == l.folder || strings.HasPrefix(resolved, l.folder+"/"))
	if !inside {
		l.report(name, 0, 0, "landscape/link", schemas.TypeForbidden, "is a symbolic link to %q, which leaves the landscape; copy the file, or make its folder a layer", target)
		return
	}
	if _, err := fs.Stat(l.fs, name); err != nil {
		l.report(name, 0, 0, "landscape/link", schemas.TypeInvalid, "is a symbolic link to %q, which leads to nothing", target)
	}
}

// read gives the content of a file within the limits; it reports what is wrong and returns false then.
func (l *loader) read(name string) ([]byte, bool) {
	if l.files++; l.files > l.limits.Files {
		if !l.limitSaid {
			l.limitSaid = true
			l.report(name, 0, 0, "landscape/limits", schemas.TypeTooMany, "the landscape has more than %d files; this one and those after it are not read", l.limits.Files)
		}
		return nil, false
	}
	file, err := l.fs.Open(name)
	if err != nil {
		l.report(name, 0, 0, "landscape/file", schemas.TypeInvalid, "cannot be read: %s", reason(err))
		return nil, false
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, l.limits.FileSize+1))
	if err != nil {
		l.report(name, 0, 0, "landscape/file", schemas.TypeInvalid, "cannot be read: %s", reason(err))
		return nil, false
	}
	if int64(len(data)) > l.limits.FileSize {
		l.report(name, 0, 0, "landscape/limits", schemas.TypeTooLong, "is larger than %d bytes", l.limits.FileSize)
		return nil, false
	}
	if p := checkText(data); p != nil {
		l.report(name, p.line, p.column, "landscape/file", schemas.TypeInvalid, "%s", p.message)
		return nil, false
	}
	return data, true
}

// reason gives the words of an I/O error without the path, which may be one of the machine.
func reason(err error) string {
	var pathError *fs.PathError
	if errors.As(err, &pathError) {
		return pathError.Err.Error()
	}
	return err.Error()
}

// readSpecialFolders records overlays, and the operations of the landscape itself.
func (l *layer) readSpecialFolders() {
	l.readOverlays()
	if l.folder != l.home {
		return
	}
	entries, err := fs.ReadDir(l.fs, path.Join(l.folder, "operations"))
	if err != nil {
		return
	}
	for _, entry := range entries {
		name := path.Join(l.folder, "operations", entry.Name())
		extension := path.Ext(entry.Name())
		switch {
		case strings.HasPrefix(entry.Name(), ".") || extension == ".md":
		case !entry.Type().IsRegular() || extension != ".yaml" && extension != ".yml":
			l.report(name, 0, 0, "landscape/operation", schemas.TypeInvalid, "is no operation: operations are files operations/ID.yaml")
		default:
			l.landscape.Operations = append(l.landscape.Operations, Operation{ID: strings.TrimSuffix(entry.Name(), extension), Path: name})
		}
	}
}

func (l *layer) readOverlays() {
	components := path.Join(l.folder, "components")
	for _, owner := range l.subfolders(components) {
		if !slices.Contains([]string{"garden", "seed", "shoot"}, owner) {
			l.report(path.Join(components, owner), 0, 0, "landscape/overlay", schemas.TypeNotSupported, "%q owns no components; overlays are in components/garden, components/seed or components/shoot", owner)
			continue
		}
		for _, component := range l.subfolders(path.Join(components, owner)) {
			folder := path.Join(components, owner, component)
			info, err := fs.Lstat(l.fs, path.Join(folder, "kustomization.yaml"))
			if err != nil || !info.Mode().IsRegular() {
				l.report(folder, 0, 0, "landscape/overlay", schemas.TypeRequired, "the overlay has no file kustomization.yaml")
				continue
			}
			l.checkLinks(folder, 0)
			l.landscape.Overlays = append(l.landscape.Overlays, Overlay{Owner: owner, Component: component, Path: folder, Layer: l.layerName(l.folder)})
		}
	}
}

// checkLinks looks for links in a folder whose files are read by others.
func (l *layer) checkLinks(folder string, depth int) {
	entries, err := fs.ReadDir(l.fs, folder)
	if err != nil || depth > l.limits.Depth {
		l.report(folder, 0, 0, "landscape/file", schemas.TypeInvalid, "the folder cannot be read, or is nested too deep")
		return
	}
	for _, entry := range entries {
		name := path.Join(folder, entry.Name())
		if entry.Type()&fs.ModeSymlink != 0 {
			l.checkLink(name)
		} else if entry.IsDir() {
			l.checkLinks(name, depth+1)
		}
	}
}

func (l *layer) subfolders(folder string) []string {
	entries, err := fs.ReadDir(l.fs, folder)
	if err != nil {
		return nil
	}
	var names []string
	for _, entry := range entries {
		if entry.Type()&fs.ModeSymlink != 0 {
			l.checkLink(path.Join(folder, entry.Name()))
		} else if entry.IsDir() && !strings.HasPrefix(entry.Name(), ".") {
			names = append(names, entry.Name())
		}
	}
	return names
}

// addAll puts objects into the layer, each once.
func (l *layer) addAll(found []Declaration) {
	for _, d := range found {
		d.Layer = l.layerName(l.folder)
		if first, double := l.found.add(d); double {
			place := d.KeyPosition("metadata.name")
			l.violations = append(l.violations, schemas.Violation{
				Severity: schemas.SeverityError, File: place.File, Line: place.Line, Column: place.Column, Kind: d.Object.GetKind(),
				Namespace: d.Object.GetNamespace(), Name: d.Object.GetName(), Field: "metadata.name", Type: schemas.TypeDuplicate, Rule: "landscape/duplicate",
				Message: fmt.Sprintf("the object is declared already in %s:%d:%d", first.File, first.Line, first.Column),
			})
		}
	}
}
