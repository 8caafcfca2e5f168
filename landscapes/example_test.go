// SPDX-License-Identifier: Apache-2.0

package landscapes_test

import (
	"context"
	"fmt"

	"github.com/pergola-dev/pergola/landscapes"
)

// ExampleLoad loads a folder and prints its declarations.
func ExampleLoad() {
	landscape, violations, err := landscapes.Load(context.Background(), "examples/layered/production", landscapes.Options{Root: "examples/layered"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(landscape.Config.Name, "violations:", len(violations))
	for _, declaration := range landscape.Declarations[:2] {
		fmt.Println(declaration.GroupVersionKind().Kind, declaration.Name())
	}
	// Output:
	// production violations: 0
	// CloudProfile aws
	// Garden garden
}
