// SPDX-License-Identifier: Apache-2.0

package adoption

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	resourcesv1alpha1 "github.com/pergola-dev/pergola/api/resources/v1alpha1"
	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/internal/printable"
)

// workloads have pods that a change of their template replaces.
var workloads = []string{"Deployment", "StatefulSet", "DaemonSet"}

// operatorKinds are kinds for which an operator creates workloads: a change of their spec may
// replace the pods.
var operatorKinds = []string{"Alertmanager", "FluentBit", "OpenTelemetryCollector", "Prometheus", "VLSingle"}

// lossPhrases are the words of a plan for irreversible losses.
var lossPhrases = []string{"loses", "deletes every object", "deletes everything"}

// checkObjects classifies what an apply would do with the objects of components and declarations.
func (a *Adopter) checkObjects(r *Report, p change.Plan) {
	r.Problems = append(r.Problems, incompletePlanNotes(p)...)
	type group struct {
		cluster, bundle string
		action          change.Action
	}
	groups := map[group][]change.Item{}
	var order []group
	fine := map[string]int{}
	for _, item := range p.Items {
		if item.Object.Kind == "Garden" && item.Action != change.Fail && item.Action != change.Hold && item.Action != change.Delete {
			continue // checkGarden reports its fields
		}
		if f, alone := singleFinding(item); alone {
			r.add(f)
			continue
		}
		if (item.Action == change.Adopt || item.Action == change.Change) && len(withoutReconcilerMarks(item.Fields)) == 0 {
			fine[item.Cluster]++
			continue
		}
		g := group{item.Cluster, item.Bundle, item.Action}
		if groups[g] == nil {
			order = append(order, g)
		}
		groups[g] = append(groups[g], item)
	}
	for _, g := range order {
		f := Finding{Level: LevelChanges, Area: AreaObjects, Cluster: g.cluster, Objects: objectNames(groups[g])}
		what := printable.WithCount(len(groups[g]), "object") + " of " + g.bundle
		switch g.action {
		case change.Create:
			f.Text = what + ": created, because they do not exist yet"
		case change.Delete:
			f.Text, f.Advice = what+": deleted, because the landscape does not render them", "check whether extensions or people need them, and declare those in the landscape"
		case change.Keep:
			f.Text = what + ": no longer reconciled, and left unchanged"
		default:
			f.Text = what + ": changed, nothing restarts"
			for _, item := range groups[g] {
				for _, field := range withoutReconcilerMarks(item.Fields) {
					field.Path = item.Object.String() + ": " + field.Path
					f.Fields = append(f.Fields, field)
				}
			}
		}
		r.add(f)
	}
	for _, cluster := range []string{"runtime", "virtual"} {
		if fine[cluster] > 0 {
			r.add(Finding{Level: LevelNoAction, Area: AreaObjects, Cluster: cluster, Text: fmt.Sprintf("%s match the render: only their field managers change", printable.WithCount(fine[cluster], "object"))})
		}
		delete(fine, cluster)
	}
	for cluster, n := range fine {
		r.add(Finding{Level: LevelNoAction, Area: AreaObjects, Cluster: cluster, Text: fmt.Sprintf("%s match the render: only their field managers change", printable.WithCount(n, "object"))})
	}
	if p.Unchanged > 0 {
		r.add(Finding{Level: LevelNoAction, Area: AreaObjects, Text: fmt.Sprintf("%s match the render", printable.WithCount(p.Unchanged, "object"))})
	}
}

// incompletePlanNotes returns the notes of an incomplete plan that are not errors.
func incompletePlanNotes(p change.Plan) []string {
	var out []string
	for _, note := range p.Notes {
		if strings.Contains(note, "no key") {
			out = append(out, note)
		}
	}
	return out
}

// singleFinding returns a finding that is not grouped with others.
func singleFinding(item change.Item) (Finding, bool) {
	f := Finding{Area: AreaObjects, Cluster: item.Cluster, Objects: []string{item.Object.String()}, Fields: withoutReconcilerMarks(item.Fields)}
	says := strings.Join(item.Consequences, ", ")
	fatal := slices.ContainsFunc(lossPhrases, func(word string) bool { return strings.Contains(says, word) })
	switch {
	case item.Action == change.Fail:
		f.Level, f.Text, f.Advice = LevelBlocks, "it could not be applied: "+item.Reason, "fix the cause, or choose the value that counts: docs/reference/field-ownership.md"
	case item.Action == change.Hold:
		f.Level, f.Text, f.Advice = LevelChanges, "its deletion waits: "+item.Reason, "check whether you need it; pergola apply asks for an approval"
		if item.Approval == "" {
			f.Advice = ""
		}
	case fatal && (item.Action == change.Delete || item.Action == change.Recreate):
		f.Level, f.Text, f.Advice = LevelBlocks, fmt.Sprintf("%s: %s", item.Action, says), "declare it in the landscape, or delete it before the takeover"
	case item.Action == change.Recreate:
		f.Level, f.Text = LevelRestarts, "it is deleted and recreated: "+item.Reason
	case item.Action != change.Change && item.Action != change.Adopt:
		return f, false
	case item.Object.Kind == "Etcd" && hasFieldBelow(f.Fields, "spec.backup.store"):
		f.Level, f.Text, f.Advice = LevelBlocks, "its backups are in a different store than the rendered one", "declare bucket and provider of the existing backups in the Garden"
	case slices.Contains(operatorKinds, item.Object.Kind) && hasFieldBelow(withoutEmptyFields(f.Fields), "spec"):
		f.Level, f.Text = LevelRestarts, "its operator may replace its pods"
	case item.Object.Kind == "Etcd" && len(withoutEmptyFields(f.Fields)) == 0:
		return f, false // etcd-druid creates the same objects from it
	case slices.Contains(workloads, item.Object.Kind) && hasFieldBelow(f.Fields, "spec.template") || strings.Contains(says, "roll the etcd") || strings.Contains(says, "its pods") && len(f.Fields) > 0:
		f.Level, f.Text = LevelRestarts, "its pods are replaced"
		if says != "" {
			f.Text += " (" + says + ")"
		}
		f.Fields = slices.DeleteFunc(f.Fields, func(field change.Field) bool {
			return slices.Contains(workloads, item.Object.Kind) && !hasFieldBelow([]change.Field{field}, "spec.template")
		})
	default:
		return f, false
	}
	return f, true
}

// reconcilerMarks are the annotations and labels of reconcilers that a takeover changes.
var reconcilerMarks = map[string][]string{
	"metadata.annotations": {"gardener.cloud/timestamp", "gardener.cloud/operation", resourcesv1alpha1.Description, resourcesv1alpha1.Origin},
	"metadata.labels":      {resourcesv1alpha1.ManagedBy},
}

// withoutReconcilerMarks returns the changed fields except marks of reconcilers.
func withoutReconcilerMarks(fields []change.Field) []change.Field {
	return slices.DeleteFunc(slices.Clone(fields), func(f change.Field) bool {
		if f.Path == "metadata.finalizers" {
			return true
		}
		for path, keys := range reconcilerMarks {
			if rest, is := strings.CutPrefix(f.Path, path); is {
				// The whole map is new if the object had no annotations or labels.
				return rest == "" && hasOnlyKeys(f.Old, keys) && hasOnlyKeys(f.New, keys) || slices.Contains(keys, strings.Trim(rest, "[]"))
			}
		}
		return false
	})
}

// hasOnlyKeys reports whether a map has only these keys.
func hasOnlyKeys(value any, keys []string) bool {
	if value == nil {
		return true
	}
	m, is := value.(map[string]any)
	for key := range m {
		is = is && slices.Contains(keys, key)
	}
	return is
}

// withoutEmptyFields returns the fields that are not hollow: programs that write whole objects also
// write unset fields.
func withoutEmptyFields(fields []change.Field) []change.Field {
	return slices.DeleteFunc(slices.Clone(fields), func(f change.Field) bool { return !f.Hidden && isDeeplyEmpty(f.Old) && isDeeplyEmpty(f.New) })
}

// isDeeplyEmpty reports whether a value is empty at any depth.
func isDeeplyEmpty(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case map[string]any:
		return !slices.ContainsFunc(slices.Collect(maps.Values(v)), func(inner any) bool { return !isDeeplyEmpty(inner) })
	case []any:
		return !slices.ContainsFunc(v, func(inner any) bool { return !isDeeplyEmpty(inner) })
	}
	return false
}

// hasFieldBelow reports whether one of the fields is at or below a path.
func hasFieldBelow(fields []change.Field, path string) bool {
	return slices.ContainsFunc(fields, func(f change.Field) bool {
		rest, ok := strings.CutPrefix(f.Path, path)
		return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
	})
}
