package landscapes

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/pergola-dev/pergola/landscapes/evaluation"
	"github.com/pergola-dev/pergola/schemas"
)

// Rule ids of findings about files that are not read.
const (
	ruleNotRead = "landscape/not-read"
	ruleLeftOut = "landscape/left-out"
	// rulePrivateKey is the rule of findings about private keys, and other credentials, that
	// everyone can read.
	rulePrivateKey = "landscape/private-key"
)

// moduleFolder is what CUE keeps a module in: editors for CUE need it, and it declares nothing.
const moduleFolder = "cue.mod"

// isEditorFile reports whether an editor keeps a copy of a file while somebody works on it. Names
// that begin with a dot are left out anyway.
func isEditorFile(name string) bool {
	return strings.HasSuffix(name, "~") || strings.HasPrefix(name, "#") && strings.HasSuffix(name, "#") || strings.HasSuffix(name, ".swp") || strings.HasSuffix(name, ".swo")
}

// isBackup reports whether somebody kept the file as it was, by its name.
func isBackup(name string) bool {
	switch path.Ext(name) {
	case ".bak", ".orig", ".old", ".save":
		return true
	}
	return false
}

// isDeclarations reports whether files of a name are read as declarations.
func isDeclarations(name string) bool {
	return slices.Contains([]string{".yaml", ".yml", ".json", ".cue"}, path.Ext(name))
}

// checkOther reports a file that is not read although it holds an object: under another ending
// nobody would miss it. Other files are ignored.
func (l *layer) checkOther(name string) {
	base := path.Base(name)
	if isAside(base) || isEditorFile(base) || !l.admit(name) {
		return
	}
	line, holds := l.objectIn(name)
	switch {
	case !holds:
		l.checkKeys(name)
	case isBackup(base):
		advice := "remove the file"
		if original := strings.TrimSuffix(name, path.Ext(name)); isDeclarations(original) {
			if _, err := fs.Stat(l.fs, original); errors.Is(err, fs.ErrNotExist) {
				advice = fmt.Sprintf("rename the file to %s if the object is wanted, else remove it", path.Base(original))
			}
		}
		l.report(name, line, 1, ruleLeftOut, schemas.TypeNotSupported, "is a copy by its name, so that the object in it is not read; %s", advice)
		l.violations[len(l.violations)-1].Severity = schemas.SeverityWarning
	default:
		l.report(name, line, 1, ruleNotRead, schemas.TypeNotSupported, "holds an object (apiVersion and kind), but files of this name are not read; "+
			"declarations end in .yaml, .yml, .json or .cue: rename the file, or move it out of the landscape")
	}
}

// checkLeftOut warns of a file that CUE leaves out by its name although it holds an object.
func (l *layer) checkLeftOut(name string) {
	if !l.admit(name) {
		return
	}
	if line, holds := l.objectIn(name); holds {
		l.report(name, line, 1, ruleLeftOut, schemas.TypeNotSupported, "declares nothing: CUE leaves out files whose name begins with _ or ends in _test.cue or _tool.cue; "+
			"rename the file if its object is wanted")
		l.violations[len(l.violations)-1].Severity = schemas.SeverityWarning
	}
}

// objectIn gives the line of the first object in a file that is not read as a declaration. A file
// that cannot be read holds none.
func (l *layer) objectIn(name string) (line int, holds bool) {
	part := l.part() // what is wrong with the file does not matter
	data, ok := part.readBytes(name)
	if !ok || checkText(name, data) != nil {
		return 0, false
	}
	return firstObject(data)
}

var (
	namesVersion = regexp.MustCompile(`(?m)(?:^|[{,\s])["']?apiVersion["']?[ \t]*:`)
	namesKind    = regexp.MustCompile(`(?m)(?:^|[{,\s])["']?kind["']?[ \t]*:`)
	// startsObject is how an object begins that is no YAML, because of an error in it.
	startsObject = regexp.MustCompile(`^["']?(apiVersion|kind|metadata)["']?[ \t]*:`)
)

// firstObject gives the line of the first object in a text that is YAML, JSON or CUE.
func firstObject(data []byte) (line int, holds bool) {
	if !namesVersion.Match(data) || !namesKind.Match(data) {
		return 0, false
	}
	kubeconfig := false
	for _, d := range split(data) {
		var node yaml.Node
		if err := yaml.Unmarshal(d.data, &node); err != nil {
			first, skipped := firstLine(d.data)
			if startsObject.Match(first) {
				return d.offset + skipped + 1, true
			}
			continue
		}
		if len(node.Content) > 0 && hasFields(node.Content[0], "apiVersion", "kind") {
			if isKubeconfig(&node) {
				kubeconfig = true
				continue
			}
			return d.offset + node.Content[0].Line, true
		}
	}
	if kubeconfig {
		return 0, false // JSON is CUE too
	}
	line, err := evaluation.Declares(evaluation.File{Data: data})
	return line, err == nil && line > 0
}

// isKubeconfig reports whether an object says how kubectl reaches clusters: it has the form of an
// object, but no API has it.
func isKubeconfig(node *yaml.Node) bool {
	var object struct {
		APIVersion string `yaml:"apiVersion"`
		Kind       string `yaml:"kind"`
	}
	return node.Decode(&object) == nil && object.APIVersion == "v1" && object.Kind == "Config"
}

// firstLine gives the first line that is neither blank nor a comment, and how many lines stand
// before it.
func firstLine(data []byte) (text []byte, skipped int) {
	for line := range bytes.Lines(data) {
		if text := bytes.TrimSpace(line); len(text) > 0 && text[0] != '#' && text[0] != '%' {
			return bytes.TrimRight(line, "\r\n"), skipped
		}
		skipped++
	}
	return nil, 0
}

func hasFields(node *yaml.Node, names ...string) bool {
	found := 0
	if node.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(node.Content); i += 2 {
			for _, name := range names {
				if node.Content[i].Value == name {
					found++
				}
			}
		}
	}
	return found == len(names)
}
