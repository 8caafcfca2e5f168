package main

import (
	"context"
	"errors"

	"github.com/pergola-dev/pergola/components"
	"github.com/pergola-dev/pergola/landscapes"
	"github.com/pergola-dev/pergola/render"
)

// renderLandscape renders every owner of a landscape.
func renderLandscape(ctx context.Context, a arguments) (sample, error) {
	l, _, err := landscapes.Load(ctx, a.dir, landscapes.Options{})
	if err != nil {
		return sample{}, err
	}
	do := func() error {
		bundles, err := render.All(l, components.FS, nil)
		if err == nil && len(bundles) == 0 {
			err = errors.New("nothing was rendered")
		}
		return err
	}
	if a.warm {
		if err := do(); err != nil {
			return sample{}, err
		}
	}
	return timed(do)
}
