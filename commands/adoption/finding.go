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
	// Blocks must be resolved before anything is stopped.
	Blocks Level = "blocks"
	// Restarts pods or causes another short interruption.
	Restarts Level = "restarts"
	// Changes something without a restart.
	Changes Level = "changes"
	// Fine needs no action.
	Fine Level = "fine"
)

// Levels are all levels, in order.
var Levels = []Level{Blocks, Restarts, Changes, Fine}

// Area is the topic of a finding.
type Area string

// The areas, in the order of the output.
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

// Finding is one fact to know before the takeover.
type Finding struct {
	Level   Level  `json:"level"`
	Area    Area   `json:"area"`
	Cluster string `json:"cluster,omitempty"`
	// Objects are the affected objects.
	Objects []string `json:"objects,omitempty"`
	Text    string   `json:"text"`
	// Do is the advice, or "".
	Do string `json:"do,omitempty"`
	// Fields that differ: old is the live value, new is that of Git. Secret values are omitted.
	Fields []change.Field `json:"fields,omitempty"`
}

// Report is the result of a check.
type Report struct {
	Landscape string `json:"landscape"`
	// Garden is the live Garden, or "".
	Garden string `json:"garden,omitempty"`
	// Stopped reports whether pergola adopt has stopped controllers that still have to be started.
	Stopped     bool          `json:"stopped,omitempty"`
	Findings    []Finding     `json:"findings"`
	Summary     map[Level]int `json:"summary"`
	Controllers []Controller  `json:"controllers"`
	// Problems are failed comparisons. They make the check incomplete, which blocks.
	Problems []string `json:"problems,omitempty"`
}

func (r *Report) add(f ...Finding) { r.Findings = append(r.Findings, f...) }

func (r *Report) Of(level Level) []Finding {
	return slices.DeleteFunc(slices.Clone(r.Findings), func(f Finding) bool { return f.Level != level })
}

// Blocked reports whether findings or problems block the takeover.
func (r *Report) Blocked() bool { return len(r.Problems) > 0 || len(r.Of(Blocks)) > 0 }

// Clean reports whether a takeover would change nothing noticeable.
func (r *Report) Clean() bool { return len(r.Problems) == 0 && len(r.Of(Fine)) == len(r.Findings) }

// Stops returns the controllers that still have to be stopped.
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
