// SPDX-License-Identifier: Apache-2.0

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
	maxReviewAge   = 14 * 24 * time.Hour
	maxReviewBytes = 700 << 10
)

// controlPlanePlaceholder replaces the namespace of a control plane, so that the same object has
// one name in all Shoots.
const controlPlanePlaceholder = "{control-plane}"

// SeedChange has the reviewed effects of a difference of two revisions on one seed.
type SeedChange struct {
	// ID names the revisions: a change with a known ID is ignored.
	ID string
	// LostObjects are deletions and recreations, Made created objects: owners by NormalizedObject.
	LostObjects, CreatedObjects map[string]map[string]bool
}

// AddLost adds an object that an owner loses.
func (c *SeedChange) AddLost(object, owner string) { addOwner(&c.LostObjects, object, owner) }

// AddCreated adds an object that is created for an owner.
func (c *SeedChange) AddCreated(object, owner string) { addOwner(&c.CreatedObjects, object, owner) }

func addOwner(list *map[string]map[string]bool, object, owner string) {
	if *list == nil {
		*list = map[string]map[string]bool{}
	}
	if (*list)[object] == nil {
		(*list)[object] = map[string]bool{}
	}
	(*list)[object][owner] = true
}

// AllOwnersLike returns the name for all owners of the same kind.
func AllOwnersLike(owner string) string {
	kind, _, _ := strings.Cut(owner, " ")
	return kind + " *"
}

// NormalizedObject returns the same name for an object of all owners of a kind. controlPlane is the
// namespace of a Shoot on its seed; it is empty for objects of the Seed itself.
func NormalizedObject(controlPlane string, ref change.Ref) string {
	text := ref.Group() + "/" + ref.String()
	if controlPlane == "" {
		return text
	}
	// Match whole names only: shoot--a--bc does not contain the namespace shoot--a--b.
	whole := regexp.MustCompile(`(^|[^a-z0-9-])` + regexp.QuoteMeta(controlPlane) + `($|[^a-z0-9])`)
	return whole.ReplaceAllString(text, "${1}"+controlPlanePlaceholder+"${2}")
}

// SeedReview has the deletions and recreations on one seed that reviewers of a landscape could see.
// The zero value is empty.
type SeedReview struct {
	Entries []SeedEntry
	// Number is the number of the last change, and ChangeID is its ID. CompleteNumber is the number
	// of the last completely applied change: an owner that is converged afterwards has done its
	// deletions.
	Number, CompleteNumber int
	ChangeID               string
}

// SeedEntry is an object that owners lose.
type SeedEntry struct {
	// Number is the number of the change that showed the object; At is its publication.
	Number int       `json:"number"`
	At     time.Time `json:"at"`
	// Object has the form of NormalizedObject, and Owners have the form `shoot garden-local/demo`.
	Object string   `json:"object"`
	Owners []string `json:"owners"`
}

// HasLoss reports whether a change with a number greater than after showed that an owner loses an
// object. An owner is not shown if it is not in Git or has its Seed from elsewhere. For such an
// owner, the losses of others of its kind count.
func (r *SeedReview) HasLoss(owner string, shown bool, object string, after int) bool {
	kind, _, _ := strings.Cut(owner, " ")
	return slices.ContainsFunc(r.Entries, func(s SeedEntry) bool {
		if s.Object != object || s.Number <= after {
			return false
		}
		if shown {
			return slices.Contains(s.Owners, owner) || slices.Contains(s.Owners, AllOwnersLike(owner))
		}
		return slices.ContainsFunc(s.Owners, func(o string) bool { return strings.HasPrefix(o, kind+" ") })
	})
}

// WithChange adds a change to the review, and drops entries whose objects the change creates again.
// It drops the oldest entries if the review is too large.
func (r *SeedReview) WithChange(c SeedChange, now time.Time) *SeedReview {
	if c.ID == r.ChangeID {
		return r
	}
	// Numbers never restart, even if the ConfigMap was deleted: an old record must not match a new
	// change.
	out := &SeedReview{Number: max(r.Number+1, int(now.Unix())), CompleteNumber: r.CompleteNumber, ChangeID: c.ID}
	for object, owners := range c.LostObjects {
		out.Entries = append(out.Entries, SeedEntry{Number: out.Number, At: now.UTC().Truncate(time.Second), Object: object, Owners: slices.Sorted(maps.Keys(owners))})
	}
	for _, s := range r.Entries {
		if now.Sub(s.At) > maxReviewAge {
			continue
		}
		again := maps.Clone(c.CreatedObjects[s.Object])
		for owner := range c.CreatedObjects[s.Object] {
			again[AllOwnersLike(owner)] = true
		}
		s.Owners = slices.DeleteFunc(slices.Clone(s.Owners), func(owner string) bool { return again[owner] || c.LostObjects[s.Object][owner] })
		if len(s.Owners) > 0 {
			out.Entries = append(out.Entries, s)
		}
	}
	slices.SortFunc(out.Entries, func(a, b SeedEntry) int {
		return cmp.Or(-cmp.Compare(a.Number, b.Number), cmp.Compare(a.Object, b.Object))
	})
	size := 0
	for i, s := range out.Entries {
		if size += len(s.Object) + 80; size < maxReviewBytes {
			for _, owner := range s.Owners {
				size += len(owner) + 3
			}
		}
		if size > maxReviewBytes {
			out.Entries = out.Entries[:i]
			break
		}
	}
	if len(out.Entries) == 0 && len(r.Entries) == 0 {
		return r // nothing to publish or revoke
	}
	return out
}
