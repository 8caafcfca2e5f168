// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"context"
	"fmt"

	"github.com/pergola-dev/pergola/components"
	"github.com/pergola-dev/pergola/landscapes"
	"github.com/pergola-dev/pergola/render"
)

// ExampleAll renders the bundles of the Garden of a landscape.
func ExampleAll() {
	landscape, _, err := landscapes.Load(context.Background(), "../landscapes/local", landscapes.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	bundles, err := render.All(landscape, components.FS, func(owner render.Owner) bool { return owner.Kind == "garden" })
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(bundles[0].Name, "on", bundles[0].Cluster, "has", len(bundles[0].Objects), "objects")
	// Output: alertmanager-garden on runtime has 8 objects
}
