package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pergola-dev/pergola/hack/bench/jsonschema"
	"github.com/pergola-dev/pergola/landscapes"
	"github.com/pergola-dev/pergola/schemas"
)

// jsonSchemas writes the schemas that kubeconform reads.
func jsonSchemas(_ context.Context, a arguments) (sample, error) {
	return timed(func() error { return jsonschema.Write(a.file) })
}

// validateAgain validates a landscape, then changes a Shoot and measures how long it takes again; a.runs times, each time with
// another Shoot. It gives the run of the median time.
func validateAgain(ctx context.Context, a arguments) (sample, error) {
	l, found, err := landscapes.Load(ctx, a.dir, landscapes.Options{})
	if err != nil {
		return sample{}, err
	}
	if len(found) > 0 {
		return sample{}, fmt.Errorf("the landscape is not valid: %s", found[0])
	}
	opts := schemas.Options{Cache: schemas.NewCache(2 * len(l.Declarations))}
	validate := func() error {
		violations, err := l.Validate(ctx, opts)
		if err == nil && len(violations) > 0 {
			err = fmt.Errorf("the landscape is not valid: %s", violations[0])
		}
		return err
	}
	if err := validate(); err != nil {
		return sample{}, err
	}
	var shoots []*unstructured.Unstructured
	for _, d := range l.Declarations {
		if d.Object().GetKind() == "Shoot" {
			shoots = append(shoots, d.Object())
		}
	}
	if len(shoots) == 0 || a.runs < 1 {
		return sample{}, errors.New("nothing to measure: no Shoot in the landscape, or no runs")
	}
	var samples []sample
	for run := range a.runs {
		shoot := shoots[run*len(shoots)/a.runs]
		labels := maps.Clone(shoot.GetLabels())
		labels["revision"] = fmt.Sprintf("changed-%d", run)
		shoot.SetLabels(labels)
		took, err := timed(validate)
		if err != nil {
			return sample{}, err
		}
		samples = append(samples, took)
	}
	slices.SortFunc(samples, func(a, b sample) int { return cmp.Compare(a.Seconds, b.Seconds) })
	return samples[len(samples)/2], nil
}
