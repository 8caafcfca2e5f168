// SPDX-License-Identifier: Apache-2.0

package landscapes

import (
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	operatorv1alpha1 "github.com/pergola-dev/pergola/api/operator/v1alpha1"
	"github.com/pergola-dev/pergola/internal/suggest"
	"github.com/pergola-dev/pergola/schemas"
)

// configKind is the kind of the object in landscape.yaml.
const configKind = "Landscape"

// ruleConfig is the rule id of findings about landscape.yaml.
const ruleConfig = "landscape/config"

// checkConfig finds faults that the schema of Landscape cannot express: values without an effect,
// or with a different effect than they suggest. The schema reports wrong types.
func (l *loader) checkConfig() {
	config := l.landscape.ConfigDeclaration
	if config == nil {
		return
	}
	spec, _ := config.Object().Object["spec"].(map[string]any)
	l.checkSeedClusters(config, spec)
	l.checkSharedClusters(config, spec)
	l.checkThresholds(config, spec)
	l.checkHealth(config, spec)
	l.checkProtectedKinds(config, spec)
	l.checkFacts(config, spec)
	l.checkTimes(config, spec)
	l.checkGates(config, spec)
	l.checkClusterOnlyFields(config, spec)
	l.checkExternal(config, spec)
}

// warnField is reportField for values that are valid but hardly intended.
func (l *loader) warnField(d *Declaration, field, rule, message string) {
	l.reportField(d, field, schemas.TypeInvalid, rule, message)
	l.violations[len(l.violations)-1].Severity = schemas.SeverityWarning
}

// checkSettings checks settings of a declared Landscape object that landscape.yaml has, too.
func (l *loader) checkSettings(d *Declaration) {
	if d.kind.Group != landscapev1alpha1.GroupName || d.kind.Kind != configKind {
		return // without reading the content
	}
	spec, _ := d.Object().Object["spec"].(map[string]any)
	l.checkTimes(d, spec)
}

// checkExternal warns of external objects that the landscape also declares: if that declaration is
// removed, nothing reports that they are missing. Entries have no API group, so a kind that exists
// in several groups is ambiguous and skipped.
func (l *loader) checkExternal(config *Declaration, spec map[string]any) {
	groups := map[string]int{}
	for _, names := range protectableKinds() {
		for _, kind := range names {
			groups[kind]++
		}
	}
	list, _ := spec["external"].([]any)
	for i, item := range list {
		entry, _ := item.(map[string]any)
		kind, _ := entry["kind"].(string)
		namespace, _ := entry["namespace"].(string)
		name, _ := entry["name"].(string)
		if groups[kind] > 1 {
			continue
		}
		for j := range l.landscape.Declarations {
			if d := &l.landscape.Declarations[j]; d.kind.Kind == kind && d.namespace == namespace && d.name == name {
				l.warnField(config, fmt.Sprintf("spec.external[%d]", i), ruleConfig, fmt.Sprintf("is declared in %s:%d, so it is not external; remove the entry, or the declaration if something else creates the object", d.File, d.Line))
				break
			}
		}
	}
}

// clusterOnlyFields have an effect only in the Landscape of the cluster (LandscapeSpec, SyncSpec).
var clusterOnlyFields = []string{"approved", "decryption", "dependsOn", "interval", "notifications", "pin", "receivers", "retryInterval", "serviceAccountName"}

// checkClusterOnlyFields warns of fields that an operator does not read from a file.
func (l *loader) checkClusterOnlyFields(config *Declaration, spec map[string]any) {
	for _, field := range clusterOnlyFields {
		if spec[field] != nil {
			l.reportField(config, "spec."+field, schemas.TypeForbidden, ruleConfig, "has no effect in landscape.yaml: an operator takes it from the Landscape in the cluster; set it there, and remove it here")
			l.violations[len(l.violations)-1].Severity = schemas.SeverityWarning
		}
	}
}

// checkGates warns of a feature gate that has no effect alone.
func (l *loader) checkGates(config *Declaration, spec map[string]any) {
	gates, _ := spec["featureGates"].(map[string]any)
	if gates["RemoveVali"] == true && gates["VictoriaLogsBackend"] != true {
		l.reportField(config, "spec.featureGates.RemoveVali", schemas.TypeInvalid, ruleConfig, "has no effect without VictoriaLogsBackend: Vali stays, because logs need a backend")
		l.violations[len(l.violations)-1].Severity = schemas.SeverityWarning
	}
}

// thresholdTypes returns the conditions of Garden, Seed and Shoot that checks decide.
func thresholdTypes() []string {
	var names []string
	for _, name := range []gardencorev1beta1.ConditionType{
		operatorv1alpha1.VirtualGardenAPIServerAvailable, operatorv1alpha1.RuntimeComponentsHealthy, operatorv1alpha1.VirtualComponentsHealthy,
		gardencorev1beta1.ObservabilityComponentsHealthy, gardencorev1beta1.SeedSystemComponentsHealthy, gardencorev1beta1.SeedBackupBucketsReady,
		gardencorev1beta1.SeedExtensionsReady, gardencorev1beta1.ShootAPIServerAvailable, gardencorev1beta1.ShootControlPlaneHealthy,
		gardencorev1beta1.ShootEveryNodeReady, gardencorev1beta1.ShootSystemComponentsHealthy,
	} {
		names = append(names, string(name))
	}
	slices.Sort(names)
	return names
}

func (l *loader) checkThresholds(config *Declaration, spec map[string]any) {
	list, _ := spec["conditionThresholds"].([]any)
	known := thresholdTypes()
	for i, item := range list {
		entry, _ := item.(map[string]any)
		field := fmt.Sprintf("spec.conditionThresholds[%d]", i)
		name, ok := entry["type"].(string)
		if ok && !slices.Contains(known, name) {
			l.reportField(config, field+".type", schemas.TypeNotSupported, ruleConfig,
				fmt.Sprintf("there is no condition %q%s; the conditions are %s", name, didYouMean(name, known), strings.Join(known, ", ")))
		}
		text, _ := entry["duration"].(string)
		if duration, err := time.ParseDuration(text); err == nil && duration < 0 {
			l.reportField(config, field+".duration", schemas.TypeInvalid, ruleConfig, "must not be negative; 0s changes the condition at once")
		} else if err == nil && duration > 0 && duration < time.Second {
			l.reportField(config, field+".duration", schemas.TypeInvalid, ruleConfig, "is less than a second; checks are minutes apart, so write 0s, or a time such as 1m")
			l.violations[len(l.violations)-1].Severity = schemas.SeverityWarning
		} else if err == nil && duration > 24*time.Hour {
			l.reportField(config, field+".duration", schemas.TypeInvalid, ruleConfig, fmt.Sprintf("is more than a day: a check fails for %s before the condition says so", duration))
			l.violations[len(l.violations)-1].Severity = schemas.SeverityWarning
		}
	}
}

// didYouMean suggests the right name; the result is empty if there is no suggestion.
func didYouMean(name string, known []string) string {
	if better := suggest.Closest(name, known); better != "" {
		return fmt.Sprintf("; did you mean %s?", better)
	}
	return ""
}

// rebaseFacts makes spec.facts of a layer relative to the landscape, as its other readers expect.
// It returns the path of the file in the repository, or an empty string.
func (l *loader) rebaseFacts(config *Declaration, folder string) string {
	spec, _ := config.Object().Object["spec"].(map[string]any)
	facts, _ := spec["facts"].(string)
	if facts == "" || path.IsAbs(facts) || !fs.ValidPath(path.Join(folder, facts)) {
		return ""
	}
	file := path.Join(folder, facts)
	if folder != l.home {
		spec["facts"] = l.relative(file)
	}
	return file
}

// checkFacts checks whether the file of recorded facts may be read. If not, it removes spec.facts.
// Package render checks whether the file exists, and its content.
func (l *loader) checkFacts(config *Declaration, spec map[string]any) {
	facts, _ := spec["facts"].(string)
	if facts == "" {
		return
	}
	file := path.Join(l.home, facts)
	if problem := l.factsProblem(facts, file); problem != "" {
		l.reportField(config, "spec.facts", schemas.TypeInvalid, "landscape/facts", fmt.Sprintf("the file %q %s", facts, problem))
		delete(spec, "facts")
		return
	}
	if _, err := fs.Stat(l.fs, file); err != nil {
		return
	}
	if _, ok := l.readTextFile(file); !ok {
		delete(spec, "facts")
	}
}

// factsProblem returns why a path cannot be the file of recorded facts, or an empty string.
func (l *loader) factsProblem(facts, file string) string {
	if path.IsAbs(facts) || filepath.IsAbs(facts) || strings.Contains(facts, `\`) {
		return "must be given by a relative path with slashes"
	}
	if !fs.ValidPath(file) {
		return "is outside the repository"
	}
	if problem := l.checkPath(file); problem != "" {
		return problem
	}
	info, err := fs.Stat(l.fs, file)
	switch {
	case err != nil:
		return ""
	case info.IsDir():
		return "is a folder"
	case !info.Mode().IsRegular():
		return "is not a regular file"
	}
	return ""
}
