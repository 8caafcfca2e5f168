// SPDX-License-Identifier: Apache-2.0

package permit

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/pergola-dev/pergola/change"
)

// ApprovalID returns the id of a set of held objects: it approves these objects and no others. The
// id of one object is the same in a diff of revisions, in a dry run and in the engine. It is empty
// for no objects.
func ApprovalID(cluster string, refs ...change.Ref) string {
	if len(refs) == 0 {
		return ""
	}
	lines := make([]string, 0, len(refs))
	for _, ref := range refs {
		lines = append(lines, ref.Group()+"/"+ref.String())
	}
	slices.Sort(lines)
	sum := sha256.Sum256([]byte(cluster + "\n" + strings.Join(lines, "\n")))
	return hex.EncodeToString(sum[:])[:12]
}
