// SPDX-License-Identifier: Apache-2.0

package adoption

import (
	"cmp"
	"slices"

	"github.com/pergola-dev/pergola/change"
)

// Level is the severity of a finding for a takeover.
type Level string

// The levels, the worst first.
const (
	// LevelBlocks must be resolved before anything is stopped.
	LevelBlocks Level = "blocks"
	// LevelRestarts pods or causes another short interruption.
	LevelRestarts Level = "restarts"
	// LevelChanges something without a restart.
	LevelChanges Level = "changes"
	// LevelNoAction needs no action.
	LevelNoAction Level = "fine"
)

// Levels are all levels, in order.
var Levels = []Level{LevelBlocks, LevelRestarts, LevelChanges, LevelNoAction}

// Area is the topic of a finding.
type Area string

// The areas, in the order of the output.
const (
	AreaGarden           Area = "garden"
	AreaVersions         Area = "versions"
	AreaSecrets          Area = "secrets"
	AreaRotation         Area = "rotation"
	AreaStorage          Area = "storage"
	AreaExposure         Area = "exposure"
	AreaControllers      Area = "controllers"
	AreaObjects          Area = "objects"
	AreaManagedResources Area = "managedresources"
	AreaExtensions       Area = "extensions"
)

var areas = []Area{AreaGarden, AreaVersions, AreaSecrets, AreaRotation, AreaStorage, AreaExposure, AreaControllers, AreaObjects, AreaManagedResources, AreaExtensions}

// Finding is one fact to know before the takeover.
type Finding struct {
	Level   Level  `json:"level"`
	Area    Area   `json:"area"`
	Cluster string `json:"cluster,omitempty"`
	// Objects are the affected objects.
	Objects []string `json:"objects,omitempty"`
	Text    string   `json:"text"`
	// Advice is the advice, or "".
	Advice string `json:"do,omitempty"`
	// Fields are the fields that differ: old is the live value, new is that of Git. Secret values
	// are omitted.
	Fields []change.Field `json:"fields,omitempty"`
}

// Report is the result of a check.
type Report struct {
	Landscape string `json:"landscape"`
	// Garden is the live Garden, or "".
	Garden string `json:"garden,omitempty"`
	// HasStopped reports whether pergola adopt has stopped controllers that still have to be
	// started.
	HasStopped  bool          `json:"stopped,omitempty"`
	Findings    []Finding     `json:"findings"`
	Summary     map[Level]int `json:"summary"`
	Controllers []Controller  `json:"controllers"`
	// Problems are failed comparisons. They make the check incomplete, which blocks.
	Problems []string `json:"problems,omitempty"`
}

func (r *Report) add(f ...Finding) { r.Findings = append(r.Findings, f...) }

func (r *Report) ByLevel(level Level) []Finding {
	return slices.DeleteFunc(slices.Clone(r.Findings), func(f Finding) bool { return f.Level != level })
}

// IsBlocked reports whether findings or problems block the takeover.
func (r *Report) IsBlocked() bool { return len(r.Problems) > 0 || len(r.ByLevel(LevelBlocks)) > 0 }

// IsClean reports whether a takeover would change nothing noticeable.
func (r *Report) IsClean() bool {
	return len(r.Problems) == 0 && len(r.ByLevel(LevelNoAction)) == len(r.Findings)
}

// ControllersToStop returns the controllers that still have to be stopped.
func (r *Report) ControllersToStop() []Controller {
	return slices.DeleteFunc(slices.Clone(r.Controllers), func(c Controller) bool { return !c.MustStop || c.Replicas == 0 })
}

func (r *Report) sortAndCount() {
	rank := func(f Finding) int { return slices.Index(Levels, f.Level)*len(areas) + slices.Index(areas, f.Area) }
	slices.SortStableFunc(r.Findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Cluster, b.Cluster))
	})
	r.Summary = map[Level]int{}
	for _, level := range Levels {
		r.Summary[level] = len(r.ByLevel(level))
	}
}
