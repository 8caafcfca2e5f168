// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/internal/jsonvalue"
)

// effects describe consequences of a changed field, by kind. consequences.go covers workloads that
// replace pods.
var effects = map[string]func(f change.Field, old, new *unstructured.Unstructured) string{
	"StatefulSet": func(f change.Field, old, new *unstructured.Unstructured) string {
		const policy = "spec.persistentVolumeClaimRetentionPolicy"
		switch scaled := nestedString(new, "spec", "persistentVolumeClaimRetentionPolicy", "whenScaled") == "Delete"; {
		case isWithin(f.Path, policy) && isNewValue(f, policy+".whenDeleted", "Delete"):
			return "from now on, its deletion also deletes its data"
		case isWithin(f.Path, policy) && isNewValue(f, policy+".whenScaled", "Delete"):
			return "from now on, a scale-down also deletes the data of removed pods"
		case f.Path == "spec.replicas" && scaled && isDecreased(f):
			return "deletes the data of removed pods"
		case isWithin(f.Path, "spec.updateStrategy") && isPartitionLowered(old, new):
			return "rolls the pods that its partition has excluded, if any"
		}
		return ""
	},
	"Deployment": func(f change.Field, _, new *unstructured.Unstructured) string {
		switch {
		case isWithin(f.Path, "spec.strategy") && isNewValue(f, "spec.strategy.type", "Recreate"):
			return "from now on all its pods stop before new ones start"
		case f.Path == "spec.paused" && f.New == true:
			return "its pods do not change until it is no longer paused"
		}
		return ""
	},
	"CronJob": func(f change.Field, _, _ *unstructured.Unstructured) string {
		return textIf(f.Path == "spec.suspend" && f.New == true, "no longer runs")
	},
	"Job": func(f change.Field, _, _ *unstructured.Unstructured) string {
		return textIf(f.Path == "spec.suspend" && f.New == true, stopText)
	},
	"Service": func(f change.Field, old, new *unstructured.Unstructured) string {
		switch {
		case f.Path == "spec.type":
			return fmt.Sprintf("changes how it is reached: %v", valueOr(f.New, "ClusterIP"))
		case isWithin(f.Path, "spec.selector"):
			return "sends its traffic to other pods"
		}
		return ""
	},
	"PersistentVolume": func(f change.Field, _, _ *unstructured.Unstructured) string {
		return textIf(f.Path == "spec.persistentVolumeReclaimPolicy" && f.New == "Delete", "from now on, the deletion of its claim also deletes its data")
	},
	"PersistentVolumeClaim": func(f change.Field, _, _ *unstructured.Unstructured) string {
		return textIf(f.Path == "spec.resources.requests.storage" && f.New != nil, "makes the volume larger, if its class allows that")
	},
	"CustomResourceDefinition": definitionEffect,
	"PodDisruptionBudget": func(f change.Field, _, new *unstructured.Unstructured) string {
		return textIf(isWithin(f.Path, "spec.minAvailable", "spec.maxUnavailable", "spec"), evictionText(new))
	},
	"ValidatingWebhookConfiguration": webhookEffect,
	"MutatingWebhookConfiguration":   webhookEffect,
	"PriorityClass": func(f change.Field, _, _ *unstructured.Unstructured) string {
		return textIf(f.Path == "globalDefault" && f.New == true, "becomes the priority of all new pods that name none")
	},
}

// effectsOf returns the effects of all fields of an item, or none for kinds of other groups.
func effectsOf(item change.Item, old, new *unstructured.Unstructured) []string {
	effect := effects[item.Object.Kind]
	if effect == nil || !isKnownGroup(item.Object) {
		return nil
	}
	var out []string
	for _, f := range item.Fields {
		if text := effect(f, old, new); text != "" && !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	return out
}

// definitionEffect describes the effect of a CustomResourceDefinition change on existing objects.
func definitionEffect(f change.Field, old, new *unstructured.Unstructured) string {
	const versions = "spec.versions[name="
	version, rest, found := strings.Cut(strings.TrimPrefix(f.Path, versions), "]")
	if !found || !strings.HasPrefix(f.Path, versions) {
		return ""
	}
	switch {
	case rest == "" && f.New == nil, rest == ".served" && f.New != true:
		return "an API version is no longer served: " + version
	case rest == "" && fieldOf(f.New, "storage") == true, rest == ".storage" && f.New == true:
		return storageVersionLoss(contentOf(old), contentOf(new))
	case f.New == nil && strings.Contains(rest, ".properties.") && isPropertyPath(rest):
		return "prunes stored values: " + objectPath(rest)
	case f.New != true && strings.HasSuffix(rest, ".x-kubernetes-preserve-unknown-fields"):
		return "prunes stored values outside the schema"
	case strings.HasSuffix(rest, ".required") && f.New != nil:
		return "refuses objects without fields that are required now: " + objectPath(strings.TrimSuffix(rest, ".required"))
	}
	return ""
}

// isPropertyPath reports whether a path ends at a property.
func isPropertyPath(path string) bool {
	parts := strings.Split(path, ".")
	return len(parts) > 1 && parts[len(parts)-2] == "properties"
}

// objectPath converts a schema path to the path of the field in objects.
func objectPath(path string) string {
	path = strings.TrimPrefix(path, ".schema.openAPIV3Schema")
	return strings.TrimPrefix(strings.ReplaceAll(strings.ReplaceAll(path, ".properties.", "."), ".items", "[]"), ".")
}

// webhookEffect warns of a webhook whose unavailability now fails requests.
func webhookEffect(f change.Field, _, _ *unstructured.Unstructured) string {
	added := f.Old == nil && strings.HasPrefix(f.Path, "webhooks[name=") && strings.HasSuffix(f.Path, "]") && fieldOf(f.New, "failurePolicy") != "Ignore"
	changed := strings.HasPrefix(f.Path, "webhooks[") && strings.HasSuffix(f.Path, ".failurePolicy") && f.New != "Ignore"
	return textIf(added || changed, "requests fail while the webhook does not answer")
}

// evictionText describes a PodDisruptionBudget that never allows an eviction.
func evictionText(budget *unstructured.Unstructured) string {
	if budget == nil {
		return ""
	}
	most := nestedValue(budget.Object, "spec", "maxUnavailable")
	none := most == "0%" || isNumber(most, 0)
	if none || nestedValue(budget.Object, "spec", "minAvailable") == "100%" {
		return "forbids every eviction: nodes with its pods cannot be drained"
	}
	return ""
}

func isNumber(v any, want float64) bool {
	n, ok := jsonvalue.Number(v)
	if !ok {
		return false
	}
	got, _ := n.Float64()
	return got == want
}

// isPartitionLowered reports whether a StatefulSet rolls pods that its partition excluded before.
func isPartitionLowered(old, new *unstructured.Unstructured) bool {
	was, _ := wholeNumber(nestedValue(contentOf(old), strings.Split(partitionPath, ".")...))
	is, _ := wholeNumber(nestedValue(contentOf(new), strings.Split(partitionPath, ".")...))
	return is < was && nestedString(new, "spec", "updateStrategy", "type") != "OnDelete"
}

// isNewValue reports whether a value is new, even if the changed field is a parent map.
func isNewValue(f change.Field, path string, want any) bool {
	if f.Path == path {
		return f.New == want
	}
	rest, inside := strings.CutPrefix(path, f.Path+".")
	if !inside {
		return false
	}
	m, _ := f.New.(map[string]any)
	before, _ := f.Old.(map[string]any)
	keys := strings.Split(rest, ".")
	return nestedValue(m, keys...) == want && nestedValue(before, keys...) != want
}

// isDecreased reports whether a number decreases.
func isDecreased(f change.Field) bool {
	return f.New != nil && isLess(f.New, valueOr(f.Old, int64(1)))
}

func valueOr(v, otherwise any) any {
	if v == nil {
		return otherwise
	}
	return v
}

func textIf(holds bool, text string) string {
	if holds {
		return text
	}
	return ""
}

func contentOf(o *unstructured.Unstructured) map[string]any {
	if o == nil {
		return nil
	}
	return o.Object
}
