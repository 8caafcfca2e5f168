package seedpublication

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pergola-dev/pergola/change"
)

// Bounds of what is kept of reviews, in time and bytes. What is dropped is held when it comes up: the safe side.
const (
	reviewAge  = 14 * 24 * time.Hour
	reviewSize = 700 << 10
)

// ReviewName is the ConfigMap in the namespace of a seed that says what could be seen in reviews.
const ReviewName = "pergola-review"

// Keys of that ConfigMap.
const (
	// keySeen holds the list of entries, as JSON; keyNumber the number of the last change, keyComplete that of the last one that was applied
	// completely, and keyChange which change the last one is.
	keySeen     = "seen"
	keyNumber   = "number"
	keyComplete = "complete"
	keyChange   = "change"
)

// inControlPlane stands for the namespace of a control plane, so that the same object has one name in all Shoots.
const inControlPlane = "{control-plane}"

// Change is what the difference of two revisions does on one seed, as far as a review is about it.
type Change struct {
	// ID names the revisions: the same change is not noted again.
	ID string
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
func ObjectIn(controlPlane string, ref change.Ref) string {
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
type Review struct {
	entries          []seen
	number, complete int
	change           string
}

// seen is an object that owners lose, or get anew.
type seen struct {
	// Number is that of the change that showed it, At when it was published.
	Number int       `json:"number"`
	At     time.Time `json:"at"`
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
	data, _, err := unstructured.NestedStringMap(configMap.Object, "data")
	if err == nil {
		err = r.read(data)
	}
	if err != nil {
		return &Review{}, &InvalidError{fmt.Sprintf("ConfigMap %s does not say what was seen: %v", ReviewName, err)}
	}
	return r, nil
}

func (r *Review) read(data map[string]string) (err error) {
	if r.number, err = strconv.Atoi(data[keyNumber]); err != nil || r.number < 0 {
		return fmt.Errorf("data.%s is no number", keyNumber)
	}
	if r.complete, err = strconv.Atoi(data[keyComplete]); err != nil || r.complete < 0 || r.complete > r.number {
		return fmt.Errorf("data.%s is no number up to %d", keyComplete, r.number)
	}
	if err := json.Unmarshal([]byte(data[keySeen]), &r.entries); err != nil {
		return fmt.Errorf("data.%s: %w", keySeen, err)
	}
	r.change = data[keyChange]
	return nil
}

// Complete is the number of the last change that was applied completely: whoever is converged after it has done what it shows.
func (r *Review) Complete() int { return r.complete }

// Has tells whether it was to be seen, in a change after a number, that an owner loses an object. Of one of which no difference shows what runs
// for it, because it is not in Git, or is bound to its Seed elsewhere, what others of its kind lose tells what it loses.
func (r *Review) Has(owner string, shown bool, object string, after int) bool {
	kind, _, _ := strings.Cut(owner, " ")
	return slices.ContainsFunc(r.entries, func(s seen) bool {
		if s.Object != object || s.Number <= after {
			return false
		}
		if shown {
			return slices.Contains(s.Owners, owner) || slices.Contains(s.Owners, AllOf(owner))
		}
		return slices.ContainsFunc(s.Owners, func(o string) bool { return strings.HasPrefix(o, kind+" ") })
	})
}

// after is the review with a change added, and without what the change makes void, because it is there again. What is oldest is left out
// where it would be too much.
func (r *Review) after(c Change, now time.Time) *Review {
	if c.ID == r.change {
		return r
	}
	// Numbers go on where the ConfigMap was deleted: what was done by an old one must not pass for what a new one shows.
	out := &Review{number: max(r.number+1, int(now.Unix())), complete: r.complete, change: c.ID}
	for object, owners := range c.Lost {
		out.entries = append(out.entries, seen{Number: out.number, At: now.UTC().Truncate(time.Second), Object: object, Owners: slices.Sorted(maps.Keys(owners))})
	}
	for _, s := range r.entries {
		if now.Sub(s.At) > reviewAge {
			continue
		}
		again := maps.Clone(c.Made[s.Object])
		for owner := range c.Made[s.Object] {
			again[AllOf(owner)] = true
		}
		s.Owners = slices.DeleteFunc(slices.Clone(s.Owners), func(owner string) bool { return again[owner] || c.Lost[s.Object][owner] })
		if len(s.Owners) > 0 {
			out.entries = append(out.entries, s)
		}
	}
	slices.SortFunc(out.entries, func(a, b seen) int { return cmp.Or(-cmp.Compare(a.Number, b.Number), cmp.Compare(a.Object, b.Object)) })
	size := 0
	for i, s := range out.entries {
		if size += len(s.Object) + 80; size < reviewSize {
			for _, owner := range s.Owners {
				size += len(owner) + 3
			}
		}
		if size > reviewSize {
			out.entries = out.entries[:i]
			break
		}
	}
	if len(out.entries) == 0 && len(r.entries) == 0 {
		return r // nothing to say, and nothing to take back
	}
	return out
}

// configMap is the review as it is written.
func (r *Review) configMap(seed string) (*unstructured.Unstructured, error) {
	lines := make([]string, 0, len(r.entries))
	for _, s := range r.entries {
		line, err := json.Marshal(s)
		if err != nil {
			return nil, fmt.Errorf("publishing what was reviewed: %w", err)
		}
		lines = append(lines, string(line))
	}
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{
			keySeen: "[" + strings.Join(lines, ",\n") + "]", keyNumber: strconv.Itoa(r.number), keyComplete: strconv.Itoa(r.complete), keyChange: r.change,
		},
	}}
	o.SetNamespace(Namespace(seed))
	o.SetName(ReviewName)
	return o, nil
}
