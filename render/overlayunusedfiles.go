// SPDX-License-Identifier: Apache-2.0

package render

import (
	"os"
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/pergola-dev/pergola/schemas"
)

// fileRecorder records the files that kustomizations name.
type fileRecorder struct {
	filesys.FileSystem
	names map[string]bool
}

func (f fileRecorder) Exists(name string) bool {
	f.names[path.Clean(name)] = true
	return f.FileSystem.Exists(name)
}

func (f fileRecorder) ReadFile(name string) ([]byte, error) {
	f.names[path.Clean(name)] = true
	return f.FileSystem.ReadFile(name)
}

// unusedFiles reports files of objects and patches that no kustomization of the overlay names: they
// have no effect.
func (f overlayFiles) unusedFiles() (findings, error) {
	var out findings
	err := f.memory.Walk("/overlay", func(name string, info os.FileInfo, err error) error {
		switch {
		case err != nil || info.IsDir() || f.namedFiles[name] || !slices.Contains([]string{".yaml", ".yml", ".json"}, path.Ext(name)):
		case strings.Contains(name, "/."): // hidden files are for people and programs
		default:
			out = append(out, finding{Position: schemas.Position{File: f.displayPath(name)}, kind: schemas.TypeNotSupported, rule: ruleOverlay, warning: true,
				message: "no kustomization.yaml of the overlay names the file, so it has no effect; list it under resources or patches, or remove it"})
		}
		return err
	})
	return out, err
}
