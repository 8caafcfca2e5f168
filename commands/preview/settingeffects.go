// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"strconv"
	"strings"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/controllers/permit"
)

// settingRule describes the note about a setting of landscape.yaml.
type settingRule struct {
	// path below spec, including the settings below it.
	path string
	// isInObjects means that rendered objects show the change, so a note would repeat it.
	isInObjects bool
	// onlyPresence means that a note is needed only if the setting is added or removed.
	onlyPresence bool
	// isOneNote means that one note describes the whole map.
	isOneNote bool
	// defaultValue is the value if the setting is missing.
	defaultValue any
	// effect describes the consequence; both values have their defaults.
	effect func(old, new any) string
}

// weakerProtectionText begins the consequence of a loosened setting.
const weakerProtectionText = "less protection: "

// objectLimitSuffix ends a note about less protection: an operator uses the stricter value of Git
// and the object.
const objectLimitSuffix = " (where an operator syncs, its Landscape in the cluster is the limit)"

// settingRules are the settings with a special note.
var settingRules = []settingRule{
	{path: "layers", isInObjects: true},
	{path: "components", isInObjects: true},
	{path: "images", isInObjects: true},
	{path: "facts", isInObjects: true},
	{path: "featureGates." + landscapev1alpha1.FeaturePrometheusHealthChecks, defaultValue: false, effect: fixedEffect(healthEffectText)},
	{path: "featureGates", isInObjects: true},
	{path: "catalogue", onlyPresence: true, effect: catalogueEffect},
	{path: "gardenAPI", defaultValue: string(landscapev1alpha1.GardenAPICRD), effect: fixedEffect(weakerProtectionText + "the data of one API is not visible in the other: existing Projects, Seeds and Shoots " +
		"would disappear; keep the value, unless nothing has been applied yet")},
	{path: "clusters", effect: fixedEffect("command lines reach the clusters this way; an operator uses only its Landscape in the cluster")},
	{path: "review", defaultValue: string(landscapev1alpha1.ReviewOptional), effect: reviewEffect},
	{path: "deletionGate.maxDeletions", defaultValue: int64(*permit.DefaultGate().MaxDeletions), effect: limitEffect},
	{path: "deletionGate.maxShare", defaultValue: percentText(*permit.DefaultGate().MaxShare), effect: limitEffect},
	{path: "deletionGate.protectedKinds", defaultValue: toAnySlice(permit.DefaultGate().Protected), effect: protectedKindsEffect},
	{path: "forceConflicts", defaultValue: false, effect: forceEffect},
	{path: "conditionThresholds", effect: fixedEffect(healthEffectText)},
	{path: "managedResourceProgressingThreshold", effect: fixedEffect(healthEffectText)},
	{path: "health.otherKinds", defaultValue: string(landscapev1alpha1.OtherKindsCheckStatus), effect: fixedEffect(healthEffectText)},
	{path: "health", effect: fixedEffect(healthEffectText)},
	{path: "external", effect: fixedEffect("listed objects may be referenced without a declaration")},
	{path: "source.verify", isOneNote: true, effect: verificationEffect},
	{path: "source", effect: fixedEffect(objectEffectText)},
	{path: "suspend", defaultValue: false, effect: suspensionEffect},
	{path: "windows", effect: fixedEffect("an operator applies new revisions only while a window here and one of its Landscape in the cluster are open")},
	{path: "timeout", effect: fixedEffect("an operator uses the shorter of this timeout and that of its Landscape in the cluster")},
	{path: "decryption", effect: fixedEffect(objectEffectText)},
	{path: "serviceAccountName", effect: fixedEffect(objectEffectText)},
	{path: "suspension", isOneNote: true, effect: fixedEffect(objectEffectText)},
	{path: "pin", isOneNote: true, effect: fixedEffect(objectEffectText)},
	{path: "interval", effect: fixedEffect(objectEffectText)},
	{path: "retryInterval", effect: fixedEffect(objectEffectText)},
	{path: "dependsOn", effect: fixedEffect(objectEffectText)},
	{path: "approved", effect: fixedEffect(objectEffectText)},
	{path: "receivers", effect: fixedEffect(objectEffectText)},
	{path: "notifications", effect: fixedEffect(objectEffectText)},
}

const (
	objectEffectText = "without effect: only the Landscape in a cluster can set this"
	healthEffectText = "changes when objects count as healthy"
)

// settingRuleOf returns the longest entry for a path; settings without an entry have a plain note.
func settingRuleOf(path string) settingRule {
	var best settingRule
	for _, s := range settingRules {
		rest, below := strings.CutPrefix(path, s.path)
		if below && (rest == "" || rest[0] == '.' || rest[0] == '[') && len(s.path) > len(best.path) {
			best = s
		}
	}
	return best
}

// effectiveValue returns the value or its default.
func (s settingRule) effectiveValue(value any) any {
	if value == nil {
		return s.defaultValue
	}
	return value
}

func fixedEffect(text string) func(old, new any) string {
	return func(any, any) string { return text }
}

func percentText(percent int) string { return settingText(percent) + "%" }

func toAnySlice(list []string) []any {
	out := make([]any, 0, len(list))
	for _, item := range list {
		out = append(out, item)
	}
	return out
}

func catalogueEffect(_, new any) string {
	if new == nil {
		return weakerProtectionText + "each program applies its own catalogue, without a commit that says so"
	}
	return "no program applies the landscape with another catalogue"
}

func reviewEffect(_, new any) string {
	if new == string(landscapev1alpha1.ReviewRequired) {
		return "more protection: deletions that no review shows are held from now on"
	}
	return weakerProtectionText + "deletions that no review shows are no longer held" + objectLimitSuffix
}

// limitEffect compares numbers or percentages.
func limitEffect(old, new any) string {
	if parseLimit(new) > parseLimit(old) {
		return weakerProtectionText + "more objects may be deleted and recreated without an approval" + objectLimitSuffix
	}
	return "more protection: fewer objects may be deleted and recreated without an approval"
}

// parseLimit parses a limit, such as 20 or "20%". An invalid one is reported as an error of the
// landscape.
func parseLimit(limit any) int {
	n, _ := strconv.Atoi(strings.TrimSuffix(settingText(limit), "%"))
	return n
}

func protectedKindsEffect(old, new any) string {
	was, _ := old.([]any)
	is, _ := new.([]any)
	var parts []string
	if gone := missingItems(was, is); len(gone) > 0 {
		parts = append(parts, weakerProtectionText+"objects of "+itemList(gone)+" are deleted without an approval"+objectLimitSuffix)
	}
	if more := missingItems(is, was); len(more) > 0 {
		parts = append(parts, "more protection: objects of "+itemList(more)+" are no longer deleted without an approval")
	}
	return strings.Join(parts, "; ")
}

func forceEffect(_, new any) string {
	if new == true {
		return weakerProtectionText + "fields that others have set are overwritten (where an operator syncs, only if its Landscape in the cluster says so, too)"
	}
	return "more protection: fields that others have set are conflicts, and no longer overwritten"
}

func verificationEffect(_, new any) string {
	if new == nil {
		return weakerProtectionText + "signatures are no longer required, unless the Landscape in the cluster requires them"
	}
	return "a Landscape in a cluster that requires no signatures rejects such revisions; only that Landscape says which signatures are required"
}

func suspensionEffect(_, new any) string {
	if new == true {
		return "no operator applies such a revision"
	}
	return "an operator applies the revision"
}
