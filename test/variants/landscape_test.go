// SPDX-License-Identifier: Apache-2.0

package variants

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"text/template"

	"github.com/pergola-dev/pergola/hack/testselection"
)

// Running clusters, and Shoots of the landscape.
const (
	runtimeCluster = "runtime"
	seedCluster    = "local"

	shootAESGCM          = "aesgcm"
	shootSecretbox       = "secretbox"
	shootWithAdmission   = "guarded"
	shootHighlyAvailable = "local" // its control plane survives the failure of a zone
)

// shoots has the files of all Shoots.
var shoots = map[string]string{shootAESGCM: "aesgcm.yaml", shootSecretbox: "secretbox.yaml", shootWithAdmission: "guarded.yaml", shootHighlyAvailable: "shoot.yaml"}

// hasShoot reports whether the landscape has a Shoot; in make test it has one.
func hasShoot(name string) bool { return testselection.SuiteHasPart("test/variants", name) }

// controlPlaneNamespace returns the namespace of a Shoot's control plane.
func controlPlaneNamespace(shoot string) string { return "shoot--local--" + shoot }

// writeLandscape copies the demonstration landscape with the overlay in testdata.
func (e *environment) writeLandscape() (string, error) {
	dir := filepath.Join(e.dir, "landscape")
	if err := os.RemoveAll(dir); err != nil {
		return "", err
	}
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(e.Root, "landscapes/local"))); err != nil {
		return "", err
	}
	if err := os.RemoveAll(filepath.Join(dir, "golden")); err != nil {
		return "", err
	}
	over := os.DirFS("testdata/landscape")
	err := fs.WalkDir(over, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := fs.ReadFile(over, name)
		if err != nil {
			return err
		}
		return e.writeFile(filepath.Join(dir, name), string(text))
	})
	if err != nil {
		return "", err
	}
	for name, file := range shoots {
		if !hasShoot(name) {
			if err := os.Remove(filepath.Join(dir, "projects/local", file)); err != nil {
				return "", err
			}
		}
	}
	for _, edit := range []struct{ file, old, new string }{
		{"gardenconfig/cloudprofile.yaml", "    - version: 1.35.0\n", "    - version: 1.36.0\n      classification: preview\n    - version: 1.35.0\n"},
		{"gardenconfig/cloudprofile.yaml", "    zones:\n    - name: \"0\"\n", "    zones:\n    - name: \"0\"\n    - name: \"1\"\n    - name: \"2\"\n"},
		{"seeds/local.yaml", "    zones:\n    - \"0\"\n", "    zones:\n    - \"0\"\n    - \"1\"\n    - \"2\"\n"},
	} {
		if err := replaceInFile(filepath.Join(dir, edit.file), edit.old, edit.new); err != nil {
			return "", err
		}
	}
	return dir, nil
}

// writeFile fills in values of this run: addresses, certificates and keys.
func (e *environment) writeFile(name, text string) error {
	parsed, err := template.New(filepath.Base(name)).Option("missingkey=error").Funcs(template.FuncMap{
		"indent": func(n int, text string) string {
			return strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n"+strings.Repeat(" ", n))
		},
	}).Parse(text)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	if err := parsed.Execute(&out, e.server); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return os.WriteFile(name, out.Bytes(), 0o600)
}

func replaceInFile(file, old, new string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if !strings.Contains(string(text), old) {
		return fmt.Errorf("%s does not contain %q", file, old)
	}
	return os.WriteFile(file, []byte(strings.ReplaceAll(string(text), old, new)), 0o600)
}
