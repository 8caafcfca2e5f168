package preview

import (
	"strconv"
	"strings"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/controllers/permit"
)

// setting describes the note about a setting of landscape.yaml.
type setting struct {
	// path below spec, including the settings below it.
	path string
	// inObjects: rendered objects show the change, so a note would repeat it.
	inObjects bool
	// onlySet: a note is needed only if the setting is added or removed.
	onlySet bool
	// whole: one note describes the whole map.
	whole bool
	// byDefault is the value if the setting is missing.
	byDefault any
	// effect describes the consequence; both values have their defaults.
	effect func(old, new any) string
}

// lessProtection begins the consequence of a loosened setting.
const lessProtection = "less protection: "

// theObjectBounds ends a note about less protection: an operator uses the stricter value of Git and
// the object.
const theObjectBounds = " (where an operator syncs, its Landscape in the cluster is the limit)"

// settingsTold are the settings with a special note.
var settingsTold = []setting{
	{path: "layers", inObjects: true},
	{path: "components", inObjects: true},
	{path: "images", inObjects: true},
	{path: "facts", inObjects: true},
	{path: "featureGates." + landscapev1alpha1.FeaturePrometheusHealthChecks, byDefault: false, effect: always(ofHealth)},
	{path: "featureGates", inObjects: true},
	{path: "catalogue", onlySet: true, effect: ofCatalogue},
	{path: "gardenAPI", byDefault: string(landscapev1alpha1.GardenAPICRD), effect: always(lessProtection + "the data of one API is not seen by the other: the Projects, Seeds and Shoots " +
		"that there are would be gone from view; keep the value, unless nothing has been applied yet")},
	{path: "clusters", effect: always("from a command line the clusters are reached so; an operator looks at its Landscape in the cluster alone")},
	{path: "review", byDefault: string(landscapev1alpha1.ReviewOptional), effect: ofReview},
	{path: "deletionGate.maxDeletions", byDefault: int64(*permit.DefaultGate().MaxDeletions), effect: ofLimit},
	{path: "deletionGate.maxShare", byDefault: share(*permit.DefaultGate().MaxShare), effect: ofLimit},
	{path: "deletionGate.protectedKinds", byDefault: anys(permit.DefaultGate().Protected), effect: ofProtectedKinds},
	{path: "forceConflicts", byDefault: false, effect: ofForce},
	{path: "conditionThresholds", effect: always(ofHealth)},
	{path: "managedResourceProgressingThreshold", effect: always(ofHealth)},
	{path: "health.otherKinds", byDefault: string(landscapev1alpha1.OtherKindsStatus), effect: always(ofHealth)},
	{path: "health", effect: always(ofHealth)},
	{path: "external", effect: always("what is listed may be referred to, and is not looked for in the declarations")},
	{path: "source.verify", whole: true, effect: ofVerification},
	{path: "source", effect: always(ofObject)},
	{path: "suspend", byDefault: false, effect: ofSuspension},
	{path: "windows", effect: always("an operator applies new revisions only while a window here and one of its Landscape in the cluster are open")},
	{path: "timeout", effect: always("an operator takes the shorter one of this and of its Landscape in the cluster")},
	{path: "decryption", effect: always(ofObject)},
	{path: "serviceAccountName", effect: always(ofObject)},
	{path: "suspension", whole: true, effect: always(ofObject)},
	{path: "pin", whole: true, effect: always(ofObject)},
	{path: "interval", effect: always(ofObject)},
	{path: "retryInterval", effect: always(ofObject)},
	{path: "dependsOn", effect: always(ofObject)},
	{path: "approved", effect: always(ofObject)},
	{path: "receivers", effect: always(ofObject)},
	{path: "notifications", effect: always(ofObject)},
}

const (
	ofObject = "without effect: this counts only from the Landscape in a cluster"
	ofHealth = "what counts as healthy, and when"
)

// settingOf returns the longest entry for a path; settings without an entry have a plain note.
func settingOf(path string) setting {
	var best setting
	for _, s := range settingsTold {
		rest, below := strings.CutPrefix(path, s.path)
		if below && (rest == "" || rest[0] == '.' || rest[0] == '[') && len(s.path) > len(best.path) {
			best = s
		}
	}
	return best
}

// effective returns the value or its default.
func (s setting) effective(value any) any {
	if value == nil {
		return s.byDefault
	}
	return value
}

func always(text string) func(old, new any) string {
	return func(any, any) string { return text }
}

func share(percent int) string { return settingText(percent) + "%" }

func anys(list []string) []any {
	out := make([]any, 0, len(list))
	for _, item := range list {
		out = append(out, item)
	}
	return out
}

func ofCatalogue(_, new any) string {
	if new == nil {
		return lessProtection + "whichever program applies the landscape takes its own catalogue, without a commit that says so"
	}
	return "no program applies the landscape with another catalogue"
}

func ofReview(_, new any) string {
	if new == string(landscapev1alpha1.ReviewRequired) {
		return "more protection: deletions that no review shows are held from now on"
	}
	return lessProtection + "deletions that no review shows are not held any more" + theObjectBounds
}

// ofLimit compares numbers or percentages.
func ofLimit(old, new any) string {
	if numberOf(new) > numberOf(old) {
		return lessProtection + "more may be deleted and recreated without an approval" + theObjectBounds
	}
	return "more protection: less may be deleted and recreated without an approval"
}

// numberOf parses a limit, such as 20 or "20%". An invalid one is reported as an error of the
// landscape.
func numberOf(limit any) int {
	n, _ := strconv.Atoi(strings.TrimSuffix(settingText(limit), "%"))
	return n
}

func ofProtectedKinds(old, new any) string {
	was, _ := old.([]any)
	is, _ := new.([]any)
	var parts []string
	if gone := without(was, is); len(gone) > 0 {
		parts = append(parts, lessProtection+"objects of "+listed(gone)+" are deleted without an approval"+theObjectBounds)
	}
	if more := without(is, was); len(more) > 0 {
		parts = append(parts, "more protection: objects of "+listed(more)+" are not deleted without an approval any more")
	}
	return strings.Join(parts, "; ")
}

func ofForce(_, new any) string {
	if new == true {
		return lessProtection + "fields that others have set are overwritten (where an operator syncs, only if its Landscape in the cluster says so, too)"
	}
	return "more protection: fields that others have set are conflicts, and not overwritten any more"
}

func ofVerification(_, new any) string {
	if new == nil {
		return lessProtection + "signatures are not demanded any more, unless the Landscape in the cluster does"
	}
	return "a Landscape in a cluster that demands no signatures refuses such revisions; which ones are demanded it says alone"
}

func ofSuspension(_, new any) string {
	if new == true {
		return "no operator applies such a revision"
	}
	return "an operator applies the revision"
}
