package strict

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubernetes/pkg/apis/core"

	"github.com/pergola-dev/pergola/schemas/structure"
)

// nodeLabels are those that Kubernetes gives to nodes, with their values where it knows all
// (https://kubernetes.io/docs/reference/labels-annotations-taints/).
var nodeLabels = map[string][]string{
	"kubernetes.io/arch":               {"386", "amd64", "arm", "arm64", "loong64", "mips64le", "ppc64le", "riscv64", "s390x"},
	"kubernetes.io/hostname":           nil,
	"kubernetes.io/os":                 {"linux", "windows"},
	"node.kubernetes.io/instance-type": nil,
	"topology.kubernetes.io/region":    nil,
	"topology.kubernetes.io/zone":      nil,
}

// placementErrors finds what leaves pods without a node: labels nearly as those that nodes have, and a spread over nodes that counts other pods.
func placementErrors(at *field.Path, template *core.PodTemplateSpec) field.ErrorList {
	var errs field.ErrorList
	key := func(at *field.Path, name string) {
		known := slices.Sorted(maps.Keys(nodeLabels))
		if meant := structure.SuggestWithin(name, known, 2); meant != "" && !slices.Contains(known, name) {
			errs = append(errs, field.Invalid(at, name, fmt.Sprintf("no node has this label; did you mean %q?", meant)))
		}
	}
	value := func(at *field.Path, name, value string) {
		known := nodeLabels[name]
		if len(known) == 0 || slices.Contains(known, value) {
			return
		}
		detail := fmt.Sprintf("no node has this value of %s", name)
		if meant := structure.Suggest(value, known); meant != "" {
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
			// A label that the pods lack may be added when they are delivered.
			want := spread.LabelSelector.MatchLabels[name]
			if has, labelled := template.Labels[name]; labelled && has != want {
				errs = append(errs, field.Invalid(at.Child("labelSelector", "matchLabels").Key(name), want, fmt.Sprintf("the pods themselves have %q: others are counted, and these are not spread", has)))
			}
		}
	}
	if spec.Affinity == nil {
		return errs
	}
	if node := spec.Affinity.NodeAffinity; node != nil && node.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		at := at.Child("affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")
		for i, term := range node.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
			for j, e := range term.MatchExpressions {
				at := at.Index(i).Child("matchExpressions").Index(j)
				key(at.Child("key"), e.Key)
				for k, v := range e.Values {
					value(at.Child("values").Index(k), e.Key, v)
				}
			}
		}
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
