package adoption

import (
	"cmp"
	"slices"

	"github.com/pergola-dev/pergola/change"
)

// Level says what a finding means for a takeover.
type Level string

// The levels, the worst first.
const (
	// Blocks has to be settled before anything is stopped.
	Blocks Level = "blocks"
	// Restarts pods, or whatever else interrupts for a moment.
	Restarts Level = "restarts"
	// Changes something, and nothing restarts.
	Changes Level = "changes"
	// Fine needs nothing.
	Fine Level = "fine"
)

// Levels are all of them, in order.
var Levels = []Level{Blocks, Restarts, Changes, Fine}

// Area is what a finding is about.
type Area string

// The areas, in the order in which they are printed.
const (
	AreaGarden      Area = "garden"
	AreaVersions    Area = "versions"
	AreaSecrets     Area = "secrets"
	AreaRotation    Area = "rotation"
	AreaStorage     Area = "storage"
	AreaExposure    Area = "exposure"
	AreaControllers Area = "controllers"
	AreaObjects     Area = "objects"
	AreaCarriers    Area = "managedresources"
	AreaExtensions  Area = "extensions"
)

var areas = []Area{AreaGarden, AreaVersions, AreaSecrets, AreaRotation, AreaStorage, AreaExposure, AreaControllers, AreaObjects, AreaCarriers, AreaExtensions}

// Finding is one thing that a person should know before the takeover.
type Finding struct {
	Level   Level  `json:"level"`
	Area    Area   `json:"area"`
	Cluster string `json:"cluster,omitempty"`
	// Objects that it is about.
	Objects []string `json:"objects,omitempty"`
	Text    string   `json:"text"`
	// Do is what to do about it; empty for nothing.
	Do string `json:"do,omitempty"`
	// Fields that differ: old is what lives, new is what Git says. Values that are secret are not
	// in them.
	Fields []change.Field `json:"fields,omitempty"`
}

// Report is what a check has found.
type Report struct {
	Landscape string `json:"landscape"`
	// Garden that lives; empty for none.
	Garden string `json:"garden,omitempty"`
	// Stopped says that pergola adopt has stopped controllers, and that they have not been started
	// again.
	Stopped     bool          `json:"stopped,omitempty"`
	Findings    []Finding     `json:"findings"`
	Summary     map[Level]int `json:"summary"`
	Controllers []Controller  `json:"controllers"`
	// Problems are what could not be compared. A check with problems is incomplete, which blocks.
	Problems []string `json:"problems,omitempty"`
}

func (r *Report) add(f ...Finding) { r.Findings = append(r.Findings, f...) }

// Of gives the findings of a level.
func (r *Report) Of(level Level) []Finding {
	return slices.DeleteFunc(slices.Clone(r.Findings), func(f Finding) bool { return f.Level != level })
}

// Blocked tells whether something has to be settled first.
func (r *Report) Blocked() bool { return len(r.Problems) > 0 || len(r.Of(Blocks)) > 0 }

// Clean tells whether a takeover would change nothing that anybody notices.
func (r *Report) Clean() bool { return len(r.Problems) == 0 && len(r.Of(Fine)) == len(r.Findings) }

// Stops are the controllers that are still to be stopped.
func (r *Report) Stops() []Controller {
	return slices.DeleteFunc(slices.Clone(r.Controllers), func(c Controller) bool { return !c.Stops || c.Replicas == 0 })
}

func (r *Report) finish() {
	rank := func(f Finding) int { return slices.Index(Levels, f.Level)*len(areas) + slices.Index(areas, f.Area) }
	slices.SortStableFunc(r.Findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Cluster, b.Cluster))
	})
	r.Summary = map[Level]int{}
	for _, level := range Levels {
		r.Summary[level] = len(r.Of(level))
	}
}
