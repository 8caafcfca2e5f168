// SPDX-License-Identifier: Apache-2.0

package strict

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubernetes/pkg/apis/core"

	"github.com/pergola-dev/pergola/internal/suggest"
)

// nodeLabels are labels that Kubernetes sets on nodes, with their values if all are known
// (https://kubernetes.io/docs/reference/labels-annotations-taints/).
var nodeLabels = map[string][]string{
	"kubernetes.io/arch":               {"386", "amd64", "arm", "arm64", "loong64", "mips64le", "ppc64le", "riscv64", "s390x"},
	"kubernetes.io/hostname":           nil,
	"kubernetes.io/os":                 {"linux", "windows"},
	"node.kubernetes.io/instance-type": nil,
	"topology.kubernetes.io/region":    nil,
	"topology.kubernetes.io/zone":      nil,
}

// placementErrors finds pods that no node fits, because labels are misspelt, and spread constraints
// that count other pods.
func placementErrors(at *field.Path, template *core.PodTemplateSpec) field.ErrorList {
	var errs field.ErrorList
	key := func(at *field.Path, name string) {
		known := slices.Sorted(maps.Keys(nodeLabels))
		if meant := suggest.ClosestWithin(name, known, 2); meant != "" && !slices.Contains(known, name) {
			errs = append(errs, field.Invalid(at, name, fmt.Sprintf("no node has this label; did you mean %q?", meant)))
		}
	}
	value := func(at *field.Path, name, value string) {
		known := nodeLabels[name]
		if len(known) == 0 || slices.Contains(known, value) {
			return
		}
		detail := fmt.Sprintf("no node has this value of %s", name)
		if meant := suggest.Closest(value, known); meant != "" {
			detail += fmt.Sprintf("; did you mean %q?", meant)
		} else {
			detail += ", which is one of " + strings.Join(known, ", ")
		}
		errs = append(errs, field.Invalid(at, value, detail))
	}
	spec := &template.Spec
	for _, name := range slices.Sorted(maps.Keys(spec.NodeSelector)) {
		key(at.Child("nodeSelector").Key(name), name)
		value(at.Child("nodeSelector").Key(name), name, spec.NodeSelector[name])
	}
	for i, spread := range spec.TopologySpreadConstraints {
		at := at.Child("topologySpreadConstraints").Index(i)
		key(at.Child("topologyKey"), spread.TopologyKey)
		if spread.LabelSelector == nil {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(spread.LabelSelector.MatchLabels)) {
			// Delivery may add a label that the pods lack.
			want := spread.LabelSelector.MatchLabels[name]
			if has, labelled := template.Labels[name]; labelled && has != want {
				errs = append(errs, field.Invalid(at.Child("labelSelector", "matchLabels").Key(name), want, fmt.Sprintf("the pods themselves have %q: other pods are counted, and these are not spread", has)))
			}
		}
	}
	if spec.Affinity == nil {
		return errs
	}
	expressions := func(at *field.Path, term core.NodeSelectorTerm) {
		for j, e := range term.MatchExpressions {
			at := at.Child("matchExpressions").Index(j)
			key(at.Child("key"), e.Key)
			for k, v := range e.Values {
				value(at.Child("values").Index(k), e.Key, v)
			}
		}
	}
	node := spec.Affinity.NodeAffinity
	if node != nil {
		for i, term := range node.PreferredDuringSchedulingIgnoredDuringExecution {
			expressions(at.Child("affinity", "nodeAffinity", "preferredDuringSchedulingIgnoredDuringExecution").Index(i).Child("preference"), term.Preference)
		}
	}
	if node != nil && node.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		at := at.Child("affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")
		for i, term := range node.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
			expressions(at.Index(i), term)
		}
		errs = append(errs, contradictions(at, node.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms, spec.NodeSelector)...)
	}
	for name, list := range affinityTerms(spec.Affinity) {
		for i, term := range list {
			key(at.Child("affinity", name, "requiredDuringSchedulingIgnoredDuringExecution").Index(i).Child("topologyKey"), term.TopologyKey)
		}
	}
	return errs
}

func affinityTerms(a *core.Affinity) map[string][]core.PodAffinityTerm {
	out := map[string][]core.PodAffinityTerm{}
	if a.PodAffinity != nil {
		out["podAffinity"] = a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	}
	if a.PodAntiAffinity != nil {
		out["podAntiAffinity"] = a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	}
	return out
}

// contradictions finds a nodeSelector that excludes all affinity terms.
func contradictions(at *field.Path, terms []core.NodeSelectorTerm, selector map[string]string) field.ErrorList {
	var errs field.ErrorList
	for i, term := range terms {
		against := slices.IndexFunc(term.MatchExpressions, func(e core.NodeSelectorRequirement) bool {
			want, selected := selector[e.Key]
			has := slices.Contains(e.Values, want)
			return selected && (e.Operator == core.NodeSelectorOpIn && !has || e.Operator == core.NodeSelectorOpNotIn && has || e.Operator == core.NodeSelectorOpDoesNotExist)
		})
		if against < 0 {
			return nil
		}
		e := term.MatchExpressions[against]
		errs = append(errs, field.Invalid(at.Index(i).Child("matchExpressions").Index(against), e.Key, fmt.Sprintf("no node matches both this and %s=%s of nodeSelector", e.Key, selector[e.Key])))
	}
	return errs
}
