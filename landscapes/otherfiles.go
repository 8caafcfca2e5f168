// SPDX-License-Identifier: Apache-2.0

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

// Rule ids of findings about ignored files.
const (
	ruleUnreadExtension = "landscape/not-read"
	ruleIgnoredFile     = "landscape/left-out"
	// rulePrivateKey is the rule id of findings about readable private keys and other credentials.
	rulePrivateKey = "landscape/private-key"
)

// moduleFolder contains a CUE module, for CUE editors. It declares no objects.
const moduleFolder = "cue.mod"

// isEditorFile reports whether a file is an editor's temporary copy. Names that begin with a dot
// are ignored anyway.
func isEditorFile(name string) bool {
	return strings.HasSuffix(name, "~") || strings.HasPrefix(name, "#") && strings.HasSuffix(name, "#") || strings.HasSuffix(name, ".swp") || strings.HasSuffix(name, ".swo")
}

// isBackup reports whether the name of a file marks a backup copy.
func isBackup(name string) bool {
	switch path.Ext(name) {
	case ".bak", ".orig", ".old", ".save":
		return true
	}
	return false
}

// isDeclarationExtension reports whether the extension of a file is read as declarations.
func isDeclarationExtension(name string) bool {
	return slices.Contains([]string{".yaml", ".yml", ".json", ".cue"}, path.Ext(name))
}

// checkOtherFile reports an object in a file with an unread extension, which would be missing
// unnoticed. Other files are ignored.
func (l *layer) checkOtherFile(name string) {
	base := path.Base(name)
	if isDocumentation(base) || isEditorFile(base) || !l.countFile(name) {
		return
	}
	line, holds := l.findObject(name)
	switch {
	case !holds:
		l.checkPrivateKeys(name)
	case isBackup(base):
		advice := "remove the file"
		if original := strings.TrimSuffix(name, path.Ext(name)); isDeclarationExtension(original) {
			if _, err := fs.Stat(l.fs, original); errors.Is(err, fs.ErrNotExist) {
				advice = fmt.Sprintf("rename the file to %s if the object is wanted, else remove it", path.Base(original))
			}
		}
		l.report(name, line, 1, ruleIgnoredFile, schemas.TypeNotSupported, "looks like a copy by its name, so its object is not read; %s", advice)
		l.violations[len(l.violations)-1].Severity = schemas.SeverityWarning
	default:
		l.report(name, line, 1, ruleUnreadExtension, schemas.TypeNotSupported, "holds an object, but only .yaml, .yml, .json and .cue files are read; "+
			"rename the file, or move it out of the landscape")
	}
}

// checkIgnoredCUE warns of a file with an object that CUE ignores because of its name.
func (l *layer) checkIgnoredCUE(name string) {
	if !l.countFile(name) {
		return
	}
	if line, holds := l.findObject(name); holds {
		l.report(name, line, 1, ruleIgnoredFile, schemas.TypeNotSupported, "declares nothing: CUE ignores files whose name begins with _ or ends in _test.cue or _tool.cue; "+
			"rename the file if its object is wanted")
		l.violations[len(l.violations)-1].Severity = schemas.SeverityWarning
	}
}

// findObject returns the line of the first object in an unread file. An unreadable file has no
// object.
func (l *layer) findObject(name string) (line int, holds bool) {
	part := l.fileLoader() // findings about the file are discarded
	data, ok := part.readBytes(name)
	if !ok || checkText(name, data) != nil {
		return 0, false
	}
	return firstObject(data)
}

var (
	versionFieldPattern = regexp.MustCompile(`(?m)(?:^|[{,\s])["']?apiVersion["']?[ \t]*:`)
	kindFieldPattern    = regexp.MustCompile(`(?m)(?:^|[{,\s])["']?kind["']?[ \t]*:`)
	// objectStartPattern matches the start of an object that is not valid YAML.
	objectStartPattern = regexp.MustCompile(`^["']?(apiVersion|kind|metadata)["']?[ \t]*:`)
)

// firstObject returns the line of the first object in YAML, JSON or CUE.
func firstObject(data []byte) (line int, holds bool) {
	if !versionFieldPattern.Match(data) || !kindFieldPattern.Match(data) {
		return 0, false
	}
	kubeconfig := false
	for _, d := range splitDocuments(data) {
		var node yaml.Node
		if err := yaml.Unmarshal(d.data, &node); err != nil {
			first, skipped := firstLine(d.data)
			if objectStartPattern.Match(first) {
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
		return 0, false // JSON is also CUE
	}
	line, err := evaluation.FirstObjectLine(evaluation.File{Data: data})
	return line, err == nil && line > 0
}

// isKubeconfig reports whether an object is a kubeconfig, which looks like an object but belongs to
// no API.
func isKubeconfig(node *yaml.Node) bool {
	var object struct {
		APIVersion string `yaml:"apiVersion"`
		Kind       string `yaml:"kind"`
	}
	return node.Decode(&object) == nil && object.APIVersion == "v1" && object.Kind == "Config"
}

// firstLine returns the first line that is neither blank nor a comment, and how many lines precede
// it.
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
