package permit

import (
	"github.com/pergola-dev/pergola/change"
)

// Ledger reports whether objects pass by an approval. It notes that the approval is used before it
// says yes. It is called by several goroutines at the same time, and more than once in a run.
type Ledger func(id string, refs []change.Ref) bool
