// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"os"

	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/plan"
)

// ExamplePrint prints a plan with one changed Deployment.
func ExamplePrint() {
	p := change.Plan{From: "main", To: "feature", Items: []change.Item{{
		Cluster: "runtime", Owner: "garden production", Bundle: "gardener-dashboard", Action: change.Change,
		Object: change.Ref{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "garden", Name: "gardener-dashboard"},
		Fields: []change.Field{{Path: "spec.replicas", Old: int64(1), New: int64(2)}},
	}}}
	p.SortAndCount()
	if err := plan.Print(os.Stdout, p, plan.FormatText, false); err != nil {
		fmt.Println(err)
	}
	// Output:
	// 1 to change, 0 unchanged (objects in bundles and declarations).
	//   on runtime 1 object: garden production
	//
	// Cluster runtime
	//   garden production: gardener-dashboard
	//     ~ Deployment garden/gardener-dashboard
	//         spec.replicas: 1 → 2
}
