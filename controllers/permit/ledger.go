// SPDX-License-Identifier: Apache-2.0

package permit

import (
	"github.com/pergola-dev/pergola/change"
)

// Ledger reports whether objects pass by an approval. It records the use of the approval before it
// returns true. Several goroutines call it concurrently, and more than once in a run.
type Ledger func(id string, refs []change.Ref) bool
