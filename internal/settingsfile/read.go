// SPDX-License-Identifier: Apache-2.0

// Package settingsfile reads the component configuration of a program: a YAML file with apiVersion
// and kind that decodes into a Go type. It reports all errors of form at once, each with file,
// line, column and field path.
//
// It does not know any configuration. Their types, defaults and rules belong to the programs.
package settingsfile

import (
	"fmt"
	"os"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	sigsyaml "sigs.k8s.io/yaml"
)

// Settings is a configuration.
type Settings interface {
	// Default sets unset fields.
	Default()
	// Validate checks the values after Default. Errors have the field paths of the file.
	Validate() field.ErrorList
}

// Read reads a file into settings, a pointer to a struct, and sets its defaults. Unknown fields,
// fields that are given twice, values of another type and a kind other than want are errors.
func Read(path string, want metav1.TypeMeta, settings Settings) error {
	raw, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("reading the configuration: %w", err)
	}
	document, err := parseDocument(path, raw)
	if err != nil {
		return err
	}
	if wrong := checkForm(document, want, reflect.TypeOf(settings).Elem()); len(wrong) > 0 {
		return joinFormErrors(path, wrong)
	}
	if err := sigsyaml.UnmarshalStrict(raw, settings); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	settings.Default()
	var wrong []formError
	for _, p := range settings.Validate() {
		line, column := positionOf(document, p.Field)
		wrong = append(wrong, formError{p.Field, line, column, p.ErrorBody()})
	}
	return joinFormErrors(path, wrong)
}
