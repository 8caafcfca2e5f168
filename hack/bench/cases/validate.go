// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pergola-dev/pergola/hack/bench/jsonschema"
	"github.com/pergola-dev/pergola/landscapes"
	"github.com/pergola-dev/pergola/schemas"
	"github.com/pergola-dev/pergola/schemas/resultcache"
)

// jsonSchemas writes the schemas that kubeconform reads.
func jsonSchemas(_ context.Context, a arguments) (sample, error) {
	return measureTime(func() error { return jsonschema.WriteAll(a.file) })
}

// validateAgain validates a landscape, then changes the file of a Shoot and measures another
// validation in the same process. It does so a.runs times, each time with another Shoot, and
// returns the sample of the median time.
func validateAgain(ctx context.Context, a arguments) (sample, error) {
	opts := landscapes.Options{ResultCache: resultcache.InMemory()}
	var files []string
	validate := func() error {
		l, found, err := landscapes.Load(ctx, a.dir, opts)
		if err != nil {
			return err
		}
		more, err := l.Validate(ctx, schemas.Options{})
		// Warnings are for fields that nothing reads: real Shoots set such fields.
		failed := func(v schemas.Violation) bool { return v.Severity != schemas.SeverityWarning }
		if found = append(found, more...); err == nil && slices.ContainsFunc(found, failed) {
			err = fmt.Errorf("the landscape is not valid: %s", found[slices.IndexFunc(found, failed)])
		}
		files = files[:0]
		for _, d := range l.Declarations {
			if d.GroupVersionKind().Kind == "Shoot" {
				files = append(files, filepath.Join(a.dir, d.File))
			}
		}
		return err
	}
	if err := validate(); err != nil {
		return sample{}, err
	}
	if len(files) == 0 || a.runs < 1 {
		return sample{}, errors.New("nothing to measure: no Shoot in the landscape, or no runs")
	}
	var samples []sample
	for run := range a.runs {
		if err := addLabel(files[run*len(files)/a.runs], fmt.Sprintf("changed-%d", run)); err != nil {
			return sample{}, err
		}
		took, err := measureTime(validate)
		if err != nil {
			return sample{}, err
		}
		samples = append(samples, took)
	}
	slices.SortFunc(samples, func(a, b sample) int { return cmp.Compare(a.Seconds, b.Seconds) })
	return samples[len(samples)/2], nil
}

// addLabel adds a label to the file of an object that has labels.
func addLabel(file, value string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	before, after, ok := strings.Cut(string(data), "\n  labels:\n")
	if !ok {
		return fmt.Errorf("%s has no labels", file)
	}
	return os.WriteFile(file, []byte(before+"\n  labels:\n    "+value+": \"\"\n"+after), 0o644)
}
