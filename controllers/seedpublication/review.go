package seedpublication

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pergola-dev/pergola/plan"
)

// Bounds of what is kept of reviews, in time and bytes. What is dropped is held when it comes up: the safe side.
const (
	reviewAge  = 14 * 24 * time.Hour
	reviewSize = 700 << 10
)

// ReviewName is the ConfigMap in the namespace of a seed that says what could be seen in reviews.
const ReviewName = "pergola-review"

// keySeen holds the list of entries, as JSON.
const keySeen = "seen"

// inControlPlane stands for the namespace of a control plane, so that the same object has one name in all Shoots.
const inControlPlane = "{control-plane}"

// Change is what the difference of two revisions does on one seed, as far as a review is about it.
type Change struct {
	// Base is the commit that was applied before: what was seen of another commit on top of it does not count any more.
	Base string
	// Lost are deletions and recreations, Made objects that are created: by ObjectIn, with the owners that have them.
	Lost, Made map[string]map[string]bool
}

// Note adds an object of an owner to a list of a change.
func Note(list *map[string]map[string]bool, object, owner string) {
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

// ObjectIn names an object of an owner the same for all owners of its kind. controlPlane is the namespace of a Shoot on its seed; the Seed's
// own objects have none.
func ObjectIn(controlPlane string, ref plan.Ref) string {
	text := ref.Group() + "/" + ref.String()
	if controlPlane == "" {
		return text
	}
	// Not within a longer word: shoot--a--b is no part of shoot--a--bc.
	whole := regexp.MustCompile(`(^|[^a-z0-9-])` + regexp.QuoteMeta(controlPlane) + `($|[^a-z0-9])`)
	return whole.ReplaceAllString(text, "${1}"+inControlPlane+"${2}")
}

// Review is what whoever reviewed the changes of a landscape could see of deletions and recreations on one seed. The zero value has
// nothing.
type Review struct{ entries []seen }

// seen is an object that owners lose, or get anew.
type seen struct {
	// Base is the commit that the difference began with, At when it was published.
	Base string    `json:"base"`
	At   time.Time `json:"at"`
	// Object as ObjectIn says it, Owners as `shoot garden-local/demo`.
	Object string   `json:"object"`
	Owners []string `json:"owners"`
}

// ReadReview reads the ConfigMap; nil is an empty one. One that cannot be read is as if nothing had been seen.
func ReadReview(configMap *unstructured.Unstructured) (*Review, error) {
	r := &Review{}
	if configMap == nil {
		return r, nil
	}
	text, _, err := unstructured.NestedString(configMap.Object, "data", keySeen)
	if err == nil && text != "" {
		err = json.Unmarshal([]byte(text), &r.entries)
	}
	if err != nil {
		return &Review{}, &InvalidError{fmt.Sprintf("ConfigMap %s: data.%s is no list of what was seen: %v", ReviewName, keySeen, err)}
	}
	return r, nil
}

// Has tells whether it was to be seen that an owner loses an object. Of one of which no difference shows what runs for it, because it is not
// in Git, or is bound to its Seed elsewhere, what others of its kind lose tells what it loses.
func (r *Review) Has(owner string, shown bool, object string) bool {
	kind, _, _ := strings.Cut(owner, " ")
	return slices.ContainsFunc(r.entries, func(s seen) bool {
		if s.Object != object {
			return false
		}
		if shown {
			return slices.Contains(s.Owners, owner) || slices.Contains(s.Owners, AllOf(owner))
		}
		return slices.ContainsFunc(s.Owners, func(o string) bool { return strings.HasPrefix(o, kind+" ") })
	})
}

// after is the review with a change added, and without what it makes void: other changes of the same base, which were not applied, and what
// is there again.
func (r *Review) after(c Change, now time.Time) *Review {
	out := &Review{}
	for _, s := range r.entries {
		if now.Sub(s.At) > reviewAge {
			continue
		}
		if s.Base == c.Base {
			// As it was, where the same is seen again: nothing has to be written then.
			if !maps.EqualFunc(setOf(s.Owners), c.Lost[s.Object], func(a, b bool) bool { return a == b }) {
				continue
			}
		}
		s.Owners = slices.DeleteFunc(slices.Clone(s.Owners), func(owner string) bool { return c.Made[s.Object][owner] })
		if len(s.Owners) > 0 {
			out.entries = append(out.entries, s)
		}
	}
	for object, owners := range c.Lost {
		if !slices.ContainsFunc(out.entries, func(s seen) bool { return s.Base == c.Base && s.Object == object }) {
			out.entries = append(out.entries, seen{Base: c.Base, At: now.UTC().Truncate(time.Second), Object: object, Owners: slices.Sorted(maps.Keys(owners))})
		}
	}
	slices.SortFunc(out.entries, func(a, b seen) int {
		return cmp.Or(b.At.Compare(a.At), cmp.Compare(a.Object, b.Object), cmp.Compare(a.Base, b.Base))
	})
	return out
}

func setOf(list []string) map[string]bool {
	out := map[string]bool{}
	for _, s := range list {
		out[s] = true
	}
	return out
}

// configMap is the review as it is written; what is oldest is left out where it would be too large.
func (r *Review) configMap(seed string) (*unstructured.Unstructured, error) {
	size := 0
	var lines []string
	for _, s := range r.entries {
		line, err := json.Marshal(s)
		if err != nil {
			return nil, fmt.Errorf("publishing what was reviewed: %w", err)
		}
		if size += len(line) + 2; size > reviewSize {
			break
		}
		lines = append(lines, string(line))
	}
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{keySeen: "[" + strings.Join(lines, ",\n") + "]"},
	}}
	o.SetNamespace(Namespace(seed))
	o.SetName(ReviewName)
	return o, nil
}
