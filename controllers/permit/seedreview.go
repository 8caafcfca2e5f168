package permit

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/pergola-dev/pergola/change"
)

// Limits of a stored review, in time and bytes. The deletions of dropped entries are held, which is
// safe.
const (
	reviewAge  = 14 * 24 * time.Hour
	reviewSize = 700 << 10
)

// inControlPlane replaces the namespace of a control plane, so that the same object has one name in
// all Shoots.
const inControlPlane = "{control-plane}"

// SeedChange has the reviewed effects of a difference of two revisions on one seed.
type SeedChange struct {
	// ID names the revisions: a change with a known ID is ignored.
	ID string
	// Lost are deletions and recreations, Made created objects: owners by ObjectIn.
	Lost, Made map[string]map[string]bool
}

// Lose adds an object that an owner loses.
func (c *SeedChange) Lose(object, owner string) { add(&c.Lost, object, owner) }

// Make adds an object that is created for an owner.
func (c *SeedChange) Make(object, owner string) { add(&c.Made, object, owner) }

func add(list *map[string]map[string]bool, object, owner string) {
	if *list == nil {
		*list = map[string]map[string]bool{}
	}
	if (*list)[object] == nil {
		(*list)[object] = map[string]bool{}
	}
	(*list)[object][owner] = true
}

// AllOf returns the name for all owners of the same kind.
func AllOf(owner string) string {
	kind, _, _ := strings.Cut(owner, " ")
	return kind + " *"
}

// ObjectIn returns the same name for an object of all owners of a kind. controlPlane is the
// namespace of a Shoot on its seed; empty for objects of the Seed itself.
func ObjectIn(controlPlane string, ref change.Ref) string {
	text := ref.Group() + "/" + ref.String()
	if controlPlane == "" {
		return text
	}
	// Match whole names only: shoot--a--bc does not contain the namespace shoot--a--b.
	whole := regexp.MustCompile(`(^|[^a-z0-9-])` + regexp.QuoteMeta(controlPlane) + `($|[^a-z0-9])`)
	return whole.ReplaceAllString(text, "${1}"+inControlPlane+"${2}")
}

// SeedReview has the deletions and recreations on one seed that reviewers of a landscape could see.
// The zero value is empty.
type SeedReview struct {
	Entries []SeedEntry
	// Number is the number of the last change, Change its ID. Complete is the number of the last
	// completely applied change: an owner that is converged afterwards has done its deletions.
	Number, Complete int
	Change           string
}

// SeedEntry is an object that owners lose.
type SeedEntry struct {
	// Number of the change that showed the object, At its publication.
	Number int       `json:"number"`
	At     time.Time `json:"at"`
	// Object as in ObjectIn, Owners as `shoot garden-local/demo`.
	Object string   `json:"object"`
	Owners []string `json:"owners"`
}

// Has reports whether a change with a number greater than after showed that an owner loses an
// object. An owner is not shown if it is not in Git or has its Seed from elsewhere. For such an
// owner, the losses of others of its kind count.
func (r *SeedReview) Has(owner string, shown bool, object string, after int) bool {
	kind, _, _ := strings.Cut(owner, " ")
	return slices.ContainsFunc(r.Entries, func(s SeedEntry) bool {
		if s.Object != object || s.Number <= after {
			return false
		}
		if shown {
			return slices.Contains(s.Owners, owner) || slices.Contains(s.Owners, AllOf(owner))
		}
		return slices.ContainsFunc(s.Owners, func(o string) bool { return strings.HasPrefix(o, kind+" ") })
	})
}

// After adds a change to the review, and drops entries whose objects the change creates again. It
// drops the oldest entries if the review is too large.
func (r *SeedReview) After(c SeedChange, now time.Time) *SeedReview {
	if c.ID == r.Change {
		return r
	}
	// Numbers never restart, even if the ConfigMap was deleted: an old record must not match a new
	// change.
	out := &SeedReview{Number: max(r.Number+1, int(now.Unix())), Complete: r.Complete, Change: c.ID}
	for object, owners := range c.Lost {
		out.Entries = append(out.Entries, SeedEntry{Number: out.Number, At: now.UTC().Truncate(time.Second), Object: object, Owners: slices.Sorted(maps.Keys(owners))})
	}
	for _, s := range r.Entries {
		if now.Sub(s.At) > reviewAge {
			continue
		}
		again := maps.Clone(c.Made[s.Object])
		for owner := range c.Made[s.Object] {
			again[AllOf(owner)] = true
		}
		s.Owners = slices.DeleteFunc(slices.Clone(s.Owners), func(owner string) bool { return again[owner] || c.Lost[s.Object][owner] })
		if len(s.Owners) > 0 {
			out.Entries = append(out.Entries, s)
		}
	}
	slices.SortFunc(out.Entries, func(a, b SeedEntry) int {
		return cmp.Or(-cmp.Compare(a.Number, b.Number), cmp.Compare(a.Object, b.Object))
	})
	size := 0
	for i, s := range out.Entries {
		if size += len(s.Object) + 80; size < reviewSize {
			for _, owner := range s.Owners {
				size += len(owner) + 3
			}
		}
		if size > reviewSize {
			out.Entries = out.Entries[:i]
			break
		}
	}
	if len(out.Entries) == 0 && len(r.Entries) == 0 {
		return r // nothing to publish or revoke
	}
	return out
}
