// SPDX-License-Identifier: Apache-2.0

package changecounts

import (
	"fmt"
	"strings"

	"github.com/pergola-dev/pergola/apply"
)

// ChangeCounts counts written objects by action.
type ChangeCounts struct {
	Created   int `json:"created"`
	Changed   int `json:"changed"`
	Recreated int `json:"recreated"`
	Deleted   int `json:"deleted"`
	// Deleting objects have a deletion timestamp, from now or before, and wait for their
	// finalizers.
	Deleting int `json:"deleting,omitempty"`
	// DeliveryObjects are ManagedResources and their data Secrets. They only carry other objects,
	// which the numbers above count; plans do not list them.
	DeliveryObjects int `json:"carriers"`
}

// Add counts results of written objects.
func (t *ChangeCounts) Add(results ...apply.ObjectResult) {
	for _, r := range results {
		var n *int
		switch r.Action {
		case apply.Created:
			n = &t.Created
		case apply.Configured, apply.Adopted:
			n = &t.Changed
		case apply.Recreated:
			n = &t.Recreated
		case apply.Deleted:
			n = &t.Deleted
		case apply.Deleting:
			if !IsDeliveryObject(r.Ref) {
				t.Deleting++
			}
			continue
		default:
			continue
		}
		if IsDeliveryObject(r.Ref) {
			n = &t.DeliveryObjects
		}
		*n++
	}
}

// AddCounts adds the counts of another one.
func (t *ChangeCounts) AddCounts(o ChangeCounts) {
	t.Created += o.Created
	t.Changed += o.Changed
	t.Recreated += o.Recreated
	t.Deleted += o.Deleted
	t.Deleting += o.Deleting
	t.DeliveryObjects += o.DeliveryObjects
}

// IsEmpty reports whether nothing was written and nothing is terminating.
func (t ChangeCounts) IsEmpty() bool { return t.Total() == 0 && t.Deleting == 0 }

// Total is the number of written objects. It excludes terminating ones, because their deletion may
// have been requested by someone else.
func (t ChangeCounts) Total() int {
	return t.Created + t.Changed + t.Recreated + t.Deleted + t.DeliveryObjects
}

// String formats the counts: "265 objects (260 created, 5 changed), and 20 ManagedResources and
// data Secrets that carry them".
func (t ChangeCounts) String() string {
	var kinds []string
	for _, p := range []struct {
		n    int
		done string
	}{{t.Created, "created"}, {t.Changed, "changed"}, {t.Recreated, "recreated"}, {t.Deleted, "deleted"}} {
		if p.n > 0 {
			kinds = append(kinds, fmt.Sprintf("%d %s", p.n, p.done))
		}
	}
	var parts []string
	switch n := t.Total() - t.DeliveryObjects; {
	case len(kinds) == 1:
		parts = append(parts, strings.Replace(kinds[0], " ", plural(n, " object ", " objects "), 1))
	case len(kinds) > 1:
		parts = append(parts, fmt.Sprintf("%d objects (%s)", n, strings.Join(kinds, ", ")))
	}
	if t.DeliveryObjects > 0 {
		parts = append(parts, fmt.Sprintf("%d ManagedResources and data Secrets", t.DeliveryObjects))
	}
	if len(parts) == 2 {
		parts[1] += " that carry them"
	}
	text := strings.Join(parts, ", and ")
	if t.Deleting > 0 {
		if text != "" {
			text += "; "
		}
		text += fmt.Sprintf("%d %s being deleted", t.Deleting, plural(t.Deleting, "object is", "objects are"))
	}
	if text == "" {
		return "nothing"
	}
	return text
}

func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// DataSecretPrefix begins the names of the data Secrets of ManagedResources (upstream's).
const DataSecretPrefix = "managedresource-"

// IsDeliveryObject reports whether an object only carries the objects of a bundle.
func IsDeliveryObject(ref apply.Ref) bool {
	return ref.Kind == "ManagedResource" || ref.Kind == "Secret" && strings.HasPrefix(ref.Name, DataSecretPrefix)
}
