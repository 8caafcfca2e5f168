// SPDX-License-Identifier: Apache-2.0

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
	// isLegacy marks Workers that predate this name: all of providerConfig counts, and no kubelet
	// setting.
	isLegacy bool
	provider any
	// settings are the settings that affect nodes, in display order.
	settings []poolSetting
}

// poolSetting is a setting of a pool.
type poolSetting struct {
	name, value string
	// isInPlace marks a setting that an in-place update changes on running machines.
	isInPlace bool
}

func (p pool) isInPlace() bool { return strings.HasSuffix(p.strategy, "InPlaceUpdate") }

// PoolChanges returns the worker pools that an item affects. old and new are the object before and
// after, if they exist.
//
// A changed pool hash replaces nodes (gardener: WorkerPoolHash of extensions/pkg/controller/worker,
// Key of pkg/component/extensions/operatingsystemconfig,
// docs/usage/shoot-operations/shoot_updates.md). A hibernated Shoot has no nodes; only Bundles
// knows the Workers of such a Shoot.
func PoolChanges(item change.Item, old, new *unstructured.Unstructured) []change.PoolChange {
	read := poolReaders[item.Object.Kind]
	if read == nil || !strings.HasSuffix(item.Object.Group(), "gardener.cloud") {
		return nil
	}
	if isHibernated(old) || isHibernated(new) {
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
			if how, why := o.changeTo(after[i]); how != "" {
				out = append(out, after[i].change(how, why))
			}
		}
	}
	return out
}

func (p pool) change(how string, why []string) change.PoolChange {
	c := change.PoolChange{Pool: p.name, Effect: how, MaxNodes: p.maximum, Causes: why}
	if how != change.NodesDeleted {
		c.Surge, c.Unavailable = p.surge, p.unavailable
	}
	return c
}

// changeTo returns how the nodes of a pool change to its new form, and why.
func (p pool) changeTo(n pool) (how string, why []string) {
	replaces := false
	var provider []string // for the provider's extension to decide
	for i, o := range p.settings {
		if i >= len(n.settings) || o.value == n.settings[i].value {
			continue
		}
		why = append(why, o.differenceText(n.settings[i].value))
		replaces = replaces || !n.isInPlace()
		if n.isInPlace() && !(o.isInPlace && o.canUpdateInPlace(n.settings[i])) {
			provider = append(provider, o.differenceText(n.settings[i].value))
		}
	}
	hashed := p.secretName != "" || n.secretName != ""
	if hashed {
		replaces = p.secretName != n.secretName
		if replaces && len(why) == 0 {
			why = []string{startConfigText}
		}
	}
	if !jsonvalue.Equal(p.provider, n.provider) {
		why, provider = append(why, "providerConfig"), append(provider, "providerConfig")
		replaces = replaces || p.isLegacy && n.isLegacy
	}
	switch {
	case len(why) == 0:
		return "", nil
	case replaces:
		return change.NodesReplaced, why
	case n.isInPlace() && len(provider) < len(why):
		if n.strategy == "ManualInPlaceUpdate" {
			return change.NodesUpdatedOnSelection, why
		}
		return change.NodesUpdatedInPlace, why
	case len(provider) > 0:
		return change.NodesMaybeReplaced, provider
	}
	return "", nil
}

// canUpdateInPlace reports whether a setting can change on a running machine: the version of an
// image can, but its name cannot.
func (p poolSetting) canUpdateInPlace(n poolSetting) bool {
	was, _, _ := strings.Cut(p.value, " ")
	is, _, _ := strings.Cut(n.value, " ")
	return p.name != machineImage || was == is
}

// startConfigText describes settings that change the configuration's name but are not in a Worker.
const startConfigText = "the start configuration of machines, such as certificate authorities, the service account key, or " +
	"the node-local DNS address after a change to or from IPVS"

// nodeVerbPhrase formats how nodes change as a verb phrase.
func nodeVerbPhrase(how string) string {
	if how == change.NodesMaybeReplaced {
		return how
	}
	return "are " + how
}

// differenceText describes the difference: "machine image ubuntu 1 → 2".
func (p poolSetting) differenceText(n string) string {
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

// NodeChanges lists the changed worker pools. A pool of a Worker replaces the same pool of its
// Shoot, which is less precise.
func NodeChanges(p change.Plan) []NodeChange {
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
				c.Causes = append(slices.Clone(c.Causes), "which is held")
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
