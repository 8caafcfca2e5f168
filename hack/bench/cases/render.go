// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/pergola-dev/pergola/components"
	"github.com/pergola-dev/pergola/landscapes"
	"github.com/pergola-dev/pergola/render"
)

// renderLandscape renders every owner of a landscape a.runs times.
func renderLandscape(ctx context.Context, a arguments) (sample, error) {
	l, _, err := landscapes.Load(ctx, a.dir, landscapes.Options{})
	if err != nil {
		return sample{}, err
	}
	do := func() error {
		for range a.runs {
			bundles, err := render.All(l, components.FS, nil)
			if err != nil {
				return err
			}
			if len(bundles) == 0 {
				return errors.New("nothing was rendered")
			}
		}
		return nil
	}
	if a.warm {
		if err := do(); err != nil {
			return sample{}, err
		}
	}
	return measureTime(do)
}

// renderOwner renders one owner of a landscape a.runs times; loading is not measured.
func renderOwner(ctx context.Context, a arguments) (sample, error) {
	l, _, err := landscapes.Load(ctx, a.dir, landscapes.Options{})
	if err != nil {
		return sample{}, err
	}
	inputs, err := render.Owners(l)
	if err != nil {
		return sample{}, err
	}
	options, err := render.LandscapeOptions(components.FS, l, render.WithPassedRules())
	if err != nil {
		return sample{}, err
	}
	for _, in := range inputs {
		if in.Owner.String() != a.owner {
			continue
		}
		return measureTime(func() error {
			for range a.runs {
				if _, err := render.Render(in, options); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return sample{}, fmt.Errorf("no %s in the landscape", a.owner)
}
