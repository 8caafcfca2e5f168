package permit

import "github.com/pergola-dev/pergola/change"

// Ledger notes that an approval is used: it counts once. The status of a Landscape is one, a ConfigMap on a seed another, and the memory of one process
// (Runs) is around both.
type Ledger interface {
	// Take reports whether objects pass by an approval. Before it says yes, the use is noted where that outlives the process. It is called by several
	// goroutines at the same time, and more than once in a run.
	Take(id string, refs []change.Ref) bool
}

// LedgerFunc is a function that is a Ledger.
type LedgerFunc func(id string, refs []change.Ref) bool

// Take calls the function.
func (f LedgerFunc) Take(id string, refs []change.Ref) bool { return f(id, refs) }
