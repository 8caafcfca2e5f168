package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/pergola-dev/pergola/landscapes"
	"github.com/pergola-dev/pergola/schemas"
)

// validateAgain validates a landscape, changes one Shoot, and measures the second time.
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
	changed := false
	for _, d := range l.Declarations {
		if d.Object.GetKind() == "Shoot" {
			d.Object.SetLabels(map[string]string{"changed": "true"})
			changed = true
			break
		}
	}
	if !changed {
		return sample{}, errors.New("no Shoot in the landscape")
	}
	return timed(validate)
}
