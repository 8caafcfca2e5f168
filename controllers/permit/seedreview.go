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

// Bounds of what is kept of reviews, in time and bytes. What is dropped is held when it comes up:
// the safe side.
const (
	reviewAge  = 14 * 24 * time.Hour
	reviewSize = 700 << 10
)

// inControlPlane stands for the namespace of a control plane, so that the same object has one name
// in all Shoots.
const inControlPlane = "{control-plane}"

// SeedChange is what the difference of two revisions does on one seed, as far as a review is about
// it.
type SeedChange struct {
	// ID names the revisions: the same change is not noted again.
	ID string
	// Lost are deletions and recreations, Made objects that are created: by ObjectIn, with the
	// owners that have them.
	Lost, Made map[string]map[string]bool
}

// Lose adds an object that an owner loses.
func (c *SeedChange) Lose(object, owner string) { add(&c.Lost, object, owner) }

// Make adds an object that is made for an owner.
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

// AllOf stands for all owners of the kind of one.
func AllOf(owner string) string {
	kind, _, _ := strings.Cut(owner, " ")
	return kind + " *"
}

// ObjectIn names an object of an owner the same for all owners of its kind. controlPlane is the
// namespace of a Shoot on its seed; the Seed's own objects have none.
func ObjectIn(controlPlane string, ref change.Ref) string {
	text := ref.Group() + "/" + ref.String()
	if controlPlane == "" {
		return text
	}
	// Not within a longer word: shoot--a--b is no part of shoot--a--bc.
	whole := regexp.MustCompile(`(^|[^a-z0-9-])` + regexp.QuoteMeta(controlPlane) + `($|[^a-z0-9])`)
	return whole.ReplaceAllString(text, "${1}"+inControlPlane+"${2}")
}

// SeedReview is what whoever reviewed the changes of a landscape could see of deletions and
// recreations on one seed. The zero value has nothing.
type SeedReview struct {
	Entries []SeedEntry
	// Number is that of the last change, and Change its ID. Complete is the number of the last one
	// that was applied completely: whoever is converged after it has done what it shows.
	Number, Complete int
	Change           string
}

// SeedEntry is an object that owners lose.
type SeedEntry struct {
	// Number is that of the change that showed it, At when it was published.
	Number int       `json:"number"`
	At     time.Time `json:"at"`
	// Object as ObjectIn says it, Owners as `shoot garden-local/demo`.
	Object string   `json:"object"`
	Owners []string `json:"owners"`
}

// Has reports whether a change after a number showed that an owner loses an object. For an owner
// that is not shown, because it is not in Git or is bound to its Seed elsewhere, the losses of
// others of its kind count.
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
// drops the oldest entries where the review would be too large.
func (r *SeedReview) After(c SeedChange, now time.Time) *SeedReview {
	if c.ID == r.Change {
		return r
	}
	// Numbers go on where the ConfigMap was deleted: what was done by an old one must not pass for
	// what a new one shows.
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
		return r // nothing to say, and nothing to take back
	}
	return out
}
