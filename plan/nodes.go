package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/internal/jsonvalue"
)

// pool is a worker pool of a Worker or Shoot.
type pool struct {
	name, strategy, surge, unavailable string
	maximum                            int64
	// secretName has the hash of all settings that replace nodes, if it is known.
	secretName string
	// first marks Workers that predate this name: all of providerConfig counts, and no kubelet
	// setting.
	first    bool
	provider any
	// parts are the settings that affect nodes, in display order.
	parts []part
}

// part is a setting of a pool.
type part struct {
	name, value string
	// live marks a setting that an in-place update changes on running machines.
	live bool
}

func (p pool) inPlace() bool { return strings.HasSuffix(p.strategy, "InPlaceUpdate") }

// Pools returns the worker pools that an item affects. old and new are the object before and after,
// if they exist.
//
// A changed pool hash replaces nodes (gardener: WorkerPoolHash of extensions/pkg/controller/worker,
// Key of pkg/component/extensions/operatingsystemconfig,
// docs/usage/shoot-operations/shoot_updates.md). A hibernated Shoot has no nodes; only Bundles
// knows the Workers of such a Shoot.
func Pools(item change.Item, old, new *unstructured.Unstructured) []change.PoolChange {
	read := readers[item.Object.Kind]
	if read == nil || !strings.HasSuffix(item.Object.Group(), "gardener.cloud") {
		return nil
	}
	if sleeps(old) || sleeps(new) {
		return nil
	}
	before, after := read(old), read(new)
	var out []change.PoolChange
	for _, o := range before {
		i := slices.IndexFunc(after, func(n pool) bool { return n.name == o.name })
		switch {
		case i < 0 && (item.Action == change.Delete || item.Action == change.Change || item.Action == change.Hold || item.Action == change.Recreate):
			out = append(out, o.change(change.NodesDeleted, []string{"the pool is removed"}))
		case i >= 0 && item.Action == change.Recreate:
			out = append(out, o.change(change.NodesDeleted, []string{"the " + item.Object.Kind + " is deleted and created again"}))
		case i >= 0:
			if how, why := o.becomes(after[i]); how != "" {
				out = append(out, after[i].change(how, why))
			}
		}
	}
	return out
}

func (p pool) change(how string, why []string) change.PoolChange {
	c := change.PoolChange{Pool: p.name, How: how, Nodes: p.maximum, Why: why}
	if how != change.NodesDeleted {
		c.Surge, c.Unavailable = p.surge, p.unavailable
	}
	return c
}

// becomes returns how the nodes of a pool change to its new form, and why.
func (p pool) becomes(n pool) (how string, why []string) {
	replaces := false
	var provider []string // for the provider's extension to decide
	for i, o := range p.parts {
		if i >= len(n.parts) || o.value == n.parts[i].value {
			continue
		}
		why = append(why, o.told(n.parts[i].value))
		replaces = replaces || !n.inPlace()
		if n.inPlace() && !(o.live && o.reaches(n.parts[i])) {
			provider = append(provider, o.told(n.parts[i].value))
		}
	}
	hashed := p.secretName != "" || n.secretName != ""
	if hashed {
		replaces = p.secretName != n.secretName
		if replaces && len(why) == 0 {
			why = []string{startsWith}
		}
	}
	if !jsonvalue.Equal(p.provider, n.provider) {
		why, provider = append(why, "providerConfig"), append(provider, "providerConfig")
		replaces = replaces || p.first && n.first
	}
	switch {
	case len(why) == 0:
		return "", nil
	case replaces:
		return change.NodesReplaced, why
	case n.inPlace() && len(provider) < len(why):
		if n.strategy == "ManualInPlaceUpdate" {
			return change.NodesSelected, why
		}
		return change.NodesUpdated, why
	case len(provider) > 0:
		return change.NodesMaybeReplaced, provider
	}
	return "", nil
}

// reaches reports whether a setting can change on a running machine: the version of an image can,
// its name cannot.
func (p part) reaches(n part) bool {
	was, _, _ := strings.Cut(p.value, " ")
	is, _, _ := strings.Cut(n.value, " ")
	return p.name != machineImage || was == is
}

// startsWith describes settings that change the configuration's name but are not in a Worker.
const startsWith = "the configuration that machines start with, such as new certificate authorities, another service account key, or " +
	"the address of node-local DNS where kube-proxy changes to IPVS or back"

// become formats how nodes change as a verb phrase.
func become(how string) string {
	if how == change.NodesMaybeReplaced {
		return how
	}
	return "are " + how
}

// told describes the difference: "machine image ubuntu 1 → 2".
func (p part) told(n string) string {
	if strings.Contains(p.value+n, "{") {
		return p.name
	}
	absent := "none"
	if p.value == absent || n == absent {
		absent = "not set" // "none" may be the policy of a kubelet
	}
	return fmt.Sprintf("%s %s → %s", p.name, cmp.Or(p.value, absent), cmp.Or(n, absent))
}

// NodeChange is the effect of a plan on the nodes of one worker pool of one Shoot.
type NodeChange struct {
	// Cluster runs the control plane of the Shoot; the virtual garden if only the Shoot is known.
	Cluster string `json:"cluster"`
	// Shoot is namespace/name, or only the namespace of its control plane if that is unknown.
	Shoot string `json:"shoot"`
	change.PoolChange
}

// Nodes lists the changed worker pools. A pool of a Worker replaces the same pool of its Shoot,
// which is less precise.
func Nodes(p change.Plan) []NodeChange {
	var workers, shoots []NodeChange
	rendered := map[string]bool{}
	for _, item := range p.Items {
		name, isShoot := strings.CutPrefix(item.Owner, "shoot ")
		if !isShoot {
			name = cmp.Or(item.Object.Namespace, item.Object.Name)
		}
		if item.Object.Kind == "Shoot" {
			name = item.Object.Namespace + "/" + item.Object.Name
		} else if item.Object.Kind == "Worker" {
			rendered[name] = true
		}
		for _, c := range item.Pools {
			if item.Action == change.Hold {
				c.Why = append(slices.Clone(c.Why), "which is held")
			}
			if item.Object.Kind == "Shoot" {
				shoots = append(shoots, NodeChange{item.Cluster, name, c})
			} else {
				workers = append(workers, NodeChange{item.Cluster, name, c})
			}
		}
	}
	for _, s := range shoots {
		if !rendered[s.Shoot] {
			workers = append(workers, s)
		}
	}
	slices.SortStableFunc(workers, func(a, b NodeChange) int {
		return cmp.Or(cmp.Compare(a.Shoot, b.Shoot), cmp.Compare(a.Pool, b.Pool))
	})
	return workers
}
