package landscape

import (
	"fmt"
	"regexp"
)

// holders are the identities of Pergola's processes in leases: where one runs (pods have their own
// name), what it is, its number there, and what tells it from others of the same.
var holders = regexp.MustCompile(`^(.+)_pergola-([a-z-]+)_([0-9]+)_[a-z0-9]+$`)

// HolderText names the holder of a lease for people. Others than Pergola's processes are named as
// they name themselves.
func HolderText(holder string) string {
	found := holders.FindStringSubmatch(holder)
	switch {
	case found == nil:
		return holder
	case found[3] == "1": // it is all that its container runs
		return fmt.Sprintf("pergola %s in %s", found[2], found[1])
	}
	return fmt.Sprintf("pergola %s on %s (process %s)", found[2], found[1], found[3])
}
