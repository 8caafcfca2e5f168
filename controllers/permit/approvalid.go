package permit

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/pergola-dev/pergola/change"
)

// An approval counts once, with the operator and with each gardenlet. The id of what is held follows from the objects alone, so that a difference
// before the merge and the cluster give the same one; the second time that it would be needed people get it with -2 at its end, then with -3.

// ApprovalID names a set of held objects: approving it approves these and no others. The id of one object is the same in a difference of revisions, in a dry
// run and in the engine. It is empty for no objects.
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

// OpenIDs are the ids by which the gate lets something pass: those of approved that were not used, without the number at their end.
func OpenIDs(approved, used []string) []string {
	var out []string
	for _, id := range approved {
		plain, _, _ := strings.Cut(id, "-")
		if id == ShownID(plain, used) {
			out = append(out, plain)
		}
	}
	return out
}

// ShownID is the id that people approve something by: one that was not used.
func ShownID(id string, used []string) string {
	shown := id
	for n := 2; id != "" && slices.Contains(used, shown); n++ {
		shown = fmt.Sprintf("%s-%d", id, n)
	}
	return shown
}

// UseUp adds to used what has passed, each id as people gave it, and forgets what is not approved any more: it can be given anew.
func UseUp(approved, used, passed []string) []string {
	out := slices.Clone(used)
	for _, id := range passed {
		if shown := ShownID(id, out); slices.Contains(approved, shown) {
			out = append(out, shown)
		}
	}
	return slices.DeleteFunc(out, func(id string) bool { return !slices.Contains(approved, id) })
}
