// SPDX-License-Identifier: Apache-2.0

package landscape

import (
	"fmt"
	"regexp"
)

// pergolaHolderPattern matches the identities of Pergola's processes in leases: host (the name of a
// pod), command, process id, and a suffix that makes it unique.
var pergolaHolderPattern = regexp.MustCompile(`^(.+)_pergola-([a-z-]+)_([0-9]+)_[a-z0-9]+$`)

// HolderText returns the holder of a lease for people. Other identities are unchanged.
func HolderText(holder string) string {
	found := pergolaHolderPattern.FindStringSubmatch(holder)
	switch {
	case found == nil:
		return holder
	case found[3] == "1": // the only process of its container
		return fmt.Sprintf("pergola %s in %s", found[2], found[1])
	}
	return fmt.Sprintf("pergola %s on %s (process %s)", found[2], found[1], found[3])
}
