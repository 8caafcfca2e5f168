package plan

import "sort"

// Action is what happens to one object.
type Action string

// Actions. Unchanged objects are counted, not listed.
const (
	Create   Action = "create"
	Change   Action = "change"
	Recreate Action = "recreate"
	Delete   Action = "delete"
	Adopt    Action = "adopt"
	// Keep is an object that is given up and stays in the cluster.
	Keep Action = "keep"
	// Hold is a deletion or recreation that the gate keeps back.
	Hold Action = "hold"
	// Fail is an object whose change could not be computed.
	Fail Action = "fail"
)

// Item is one object that changes.
type Item struct {
	Cluster   string `json:"cluster"`
	Owner     string `json:"owner,omitempty"`
	Component string `json:"component,omitempty"`
	Bundle    string `json:"bundle"`
	Object    Ref    `json:"object"`
	Action    Action `json:"action"`
	// Fields that differ, for change and recreate.
	Fields []Field `json:"fields,omitempty"`
	// Reason says why, where the action alone does not.
	Reason string `json:"reason,omitempty"`
	// Consequences say what the change does beyond the object itself.
	Consequences []string `json:"consequences,omitempty"`
	// Origin is the file (and line) the new object comes from.
	Origin string `json:"origin,omitempty"`
}

// Field is one difference inside an object.
type Field struct {
	// Path as in spec.template.spec.containers[name=app].image
	Path string `json:"path"`
	Old  any    `json:"old,omitempty"`
	New  any    `json:"new,omitempty"`
	// Hidden says that the values differ and may not be shown.
	Hidden bool `json:"hidden,omitempty"`
	// Manager owns the field now, where that is known and not us.
	Manager string `json:"manager,omitempty"`
}

// Plan is everything that would change, in the order it is printed. The diff of two revisions, the dry run against
// live clusters and the deletion gate speak of this one value.
type Plan struct {
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
	// Notes say what a reader has to know of the comparison itself.
	Notes []string `json:"notes,omitempty"`
	Items []Item   `json:"items"`
	// Unchanged counts the objects of bundles and declarations that stay as they are, not the ManagedResources that carry them.
	Unchanged int     `json:"unchanged"`
	Summary   Summary `json:"summary"`
}

// Summary counts the items by action.
type Summary struct {
	Create   int `json:"create"`
	Change   int `json:"change"`
	Recreate int `json:"recreate"`
	Delete   int `json:"delete"`
	Adopt    int `json:"adopt"`
	Keep     int `json:"keep"`
	Hold     int `json:"hold"`
	Fail     int `json:"fail"`
}

// Empty says that nothing would change.
func (p Plan) Empty() bool { return len(p.Items) == 0 }

// Sort orders the items by cluster, component, bundle and object, and counts them.
func (p *Plan) Sort() {
	sort.SliceStable(p.Items, func(i, j int) bool {
		a, b := p.Items[i], p.Items[j]
		for _, c := range [][2]string{
			{a.Cluster, b.Cluster}, {a.Component, b.Component}, {a.Bundle, b.Bundle},
			{a.Object.Kind, b.Object.Kind}, {a.Object.APIVersion, b.Object.APIVersion}, {a.Object.Namespace, b.Object.Namespace}, {a.Object.Name, b.Object.Name},
		} {
			if c[0] != c[1] {
				return c[0] < c[1]
			}
		}
		return false
	})
	p.Summary = Summary{}
	for _, item := range p.Items {
		switch item.Action {
		case Create:
			p.Summary.Create++
		case Change:
			p.Summary.Change++
		case Recreate:
			p.Summary.Recreate++
		case Delete:
			p.Summary.Delete++
		case Adopt:
			p.Summary.Adopt++
		case Keep:
			p.Summary.Keep++
		case Hold:
			p.Summary.Hold++
		case Fail:
			p.Summary.Fail++
		}
	}
}
