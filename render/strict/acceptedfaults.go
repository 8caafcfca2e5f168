// SPDX-License-Identifier: Apache-2.0

package strict

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/distribution/reference"
	"github.com/prometheus/prometheus/promql/parser"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"

	resourcesv1alpha1 "github.com/pergola-dev/pergola/api/resources/v1alpha1"
	"github.com/pergola-dev/pergola/internal/suggest"
	"github.com/pergola-dev/pergola/schemas"
	"github.com/pergola-dev/pergola/schemas/fieldpath"
	"github.com/pergola-dev/pergola/schemas/structure"
)

// checkAcceptedFaults finds mistakes that API servers accept, or reject without a rule in the
// schema: kubelets, aggregators and operators report them only in their logs.
func (k *Kind) checkAcceptedFaults(object map[string]any) []structure.Finding {
	out := append(checkResourceManagerAnnotations(object), checkGardenerLabels(nil, object)...)
	if k.goType == nil {
		out = slices.Concat(out, checkReplicas(object), checkAccessModes(nil, object, false))
	}
	if k.GVK.Group == "monitoring.coreos.com" {
		out = append(out, checkRelabellings(nil, object)...)
	}
	if k.GVK.Group == "networking.istio.io" || k.GVK.Group == "security.istio.io" {
		out = append(out, checkIstioFields(k.GVK.Kind, object)...)
	}
	switch (schema.GroupKind{Group: k.GVK.Group, Kind: k.GVK.Kind}) {
	case schema.GroupKind{Kind: "ConfigMap"}:
		return append(out, checkConfigMapFiles(object)...)
	case schema.GroupKind{Group: "monitoring.coreos.com", Kind: "Prometheus"}:
		return slices.Concat(out, checkScrapeTimes(fieldpath.Path{"spec"}, object["spec"], "scrapeInterval", "scrapeTimeout"), checkRemoteURLs(object))
	case schema.GroupKind{Group: "monitoring.coreos.com", Kind: "ServiceMonitor"}, schema.GroupKind{Group: "monitoring.coreos.com", Kind: "PodMonitor"}:
		for _, list := range []string{"endpoints", "podMetricsEndpoints"} {
			endpoints, _ := valueAt(object, fieldpath.Path{"spec", list}).([]any)
			for i, endpoint := range endpoints {
				out = append(out, checkScrapeTimes(fieldpath.Path{"spec", list, i}, endpoint, "interval", "scrapeTimeout")...)
			}
		}
		return out
	case schema.GroupKind{Kind: "Node"}:
		return append(out, checkTaints(object)...)
	case schema.GroupKind{Kind: "LimitRange"}, schema.GroupKind{Kind: "ResourceQuota"}, schema.GroupKind{Kind: "PersistentVolume"}:
		return append(out, checkAmounts(k.GVK.Kind, object)...)
	case schema.GroupKind{Kind: "Namespace"}:
		return append(append(out, checkPodSecurity(object)...), misspeltKeys(fieldpath.Path{"metadata", "labels"}, object, podSecurityLabels)...)
	case schema.GroupKind{Group: "apiregistration.k8s.io", Kind: "APIService"}:
		return append(out, checkAPIService(object)...)
	case schema.GroupKind{Group: "autoscaling.k8s.io", Kind: "VerticalPodAutoscaler"}:
		return slices.Concat(out, checkAutoscalerBounds(object), checkTargetAPI(object), checkMinReplicas(object), checkAmounts(k.GVK.Kind, object))
	case schema.GroupKind{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}:
		return append(out, checkTargetAPI(object)...)
	case schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}:
		return append(out, checkRequiredFields(object)...)
	case schema.GroupKind{Group: "policy", Kind: "PodDisruptionBudget"}:
		return append(out, checkBudgetSelector(object)...)
	case schema.GroupKind{Kind: "Service"}:
		return append(out, checkAllowedPorts(object)...)
	case schema.GroupKind{Group: "admissionregistration.k8s.io", Kind: "ValidatingWebhookConfiguration"}, schema.GroupKind{Group: "admissionregistration.k8s.io", Kind: "MutatingWebhookConfiguration"}:
		return append(append(out, checkWebhookRules(object)...), checkNamespaceSelectors(nil, object)...)
	case schema.GroupKind{Group: "druid.gardener.cloud", Kind: "Etcd"}:
		return append(append(out, checkEtcdSchedules(object)...), checkEtcdMembers(object)...)
	case schema.GroupKind{Group: "extensions.gardener.cloud", Kind: "DNSRecord"}:
		return append(out, checkDNSValues(object)...)
	case schema.GroupKind{Group: "extensions.gardener.cloud", Kind: "OperatingSystemConfig"}:
		return append(out, checkOSConfig(object)...)
	case schema.GroupKind{Group: "monitoring.coreos.com", Kind: "PrometheusRule"}:
		return slices.Concat(out, checkExpressions(object), checkAlertRules(object))
	case schema.GroupKind{Group: "monitoring.coreos.com", Kind: "AlertmanagerConfig"}:
		return append(out, checkReceivers(object)...)
	case schema.GroupKind{Group: "networking.k8s.io", Kind: "NetworkPolicy"}:
		return append(append(out, checkPolicyTypes(object)...), checkNamespaceSelectors(nil, object)...)
	case schema.GroupKind{Group: "rbac.authorization.k8s.io", Kind: "Role"}, schema.GroupKind{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}:
		out = append(out, misspeltKeys(fieldpath.Path{"metadata", "labels"}, object, aggregationLabels)...)
		return append(out, checkGrants(k.GVK.Kind, object)...)
	case schema.GroupKind{Group: "rbac.authorization.k8s.io", Kind: "RoleBinding"}, schema.GroupKind{Group: "rbac.authorization.k8s.io", Kind: "ClusterRoleBinding"}:
		return append(out, checkSubjects(object)...)
	case schema.GroupKind{Kind: "PersistentVolumeClaim"}, schema.GroupKind{Group: "apps", Kind: "StatefulSet"}:
		out = append(out, checkClaimedStorage(object)...)
	case schema.GroupKind{Group: "batch", Kind: "CronJob"}:
		out = append(out, checkCronSchedule(object)...)
	}
	if k.goType != nil && k.Root.Properties["spec"] != nil {
		out = append(out, checkContainers(nil, object)...)
	}
	return out
}

// checkContainers checks the containers of all pods of an object.
func checkContainers(at fieldpath.Path, value any) []structure.Finding {
	var out []structure.Finding
	switch v := value.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			list, isList := v[name].([]any)
			if !isList || !slices.Contains([]string{"containers", "initContainers"}, name) {
				out = append(out, checkContainers(at.Append(name), v[name])...)
				continue
			}
			for i, item := range list {
				if container, ok := item.(map[string]any); ok {
					out = append(out, checkContainer(at.Append(name).Append(i), container)...)
				}
			}
		}
	case []any:
		for i, item := range v {
			out = append(out, checkContainers(at.Append(i), item)...)
		}
	}
	return out
}

// checkContainer checks the form of the image, and named ports of probes and hooks.
func checkContainer(at fieldpath.Path, container map[string]any) []structure.Finding {
	var out []structure.Finding
	if image, ok := container["image"].(string); ok {
		if _, err := reference.ParseAnyReference(image); err != nil {
			out = append(out, structure.Finding{Path: at.Append("image"), Type: "Invalid", Message: fmt.Sprintf("%q is not an image such as registry.example.org/name:tag or name@sha256:…: %v", image, err)})
		}
	}
	out = append(out, checkFeatureGates(at, container)...)
	out = append(out, similarFlags(at, container)...)
	out = append(out, checkCommandWords(at, container)...)
	var ports []string
	declared, _ := container["ports"].([]any)
	for _, item := range declared {
		port, _ := item.(map[string]any)
		if name, ok := port["name"].(string); ok {
			ports = append(ports, name)
		}
	}
	for _, path := range []fieldpath.Path{{"livenessProbe"}, {"readinessProbe"}, {"startupProbe"}, {"lifecycle", "postStart"}, {"lifecycle", "preStop"}} {
		for _, way := range []string{"httpGet", "tcpSocket"} {
			place := slices.Concat(path, fieldpath.Path{way, "port"})
			name, ok := valueAt(container, place).(string)
			if !ok || slices.Contains(ports, name) {
				continue
			}
			hint := ""
			if better := suggest.Closest(name, ports); better != "" {
				hint = fmt.Sprintf("; did you mean %q?", better)
			} else if len(ports) > 0 {
				hint = "; it has " + strings.Join(ports, ", ")
			}
			out = append(out, structure.Finding{Path: slices.Concat(at, place), Type: "NotFound", Message: fmt.Sprintf("the container has no port named %q%s", name, hint)})
		}
	}
	return out
}

// similarFlags finds flags that differ by one letter from another flag of the program: the misspelt
// one would prevent the start.
func similarFlags(at fieldpath.Path, container map[string]any) []structure.Finding {
	var out []structure.Finding
	seen := []string{}
	for _, field := range []string{"command", "args"} {
		words, _ := container[field].([]any)
		for i, word := range words {
			text, _ := word.(string)
			name, _, _ := strings.Cut(text, "=")
			if !strings.HasPrefix(name, "--") || len(name) < minSimilarFlagLength || strings.ContainsAny(name, "0123456789 ") {
				continue
			}
			if meant := suggest.ClosestWithin(name, seen, 1); meant != "" && meant != name {
				out = append(out, structure.Finding{Path: slices.Concat(at, fieldpath.Path{field, i}), Type: "Invalid", Message: fmt.Sprintf("%s differs by one letter from %s, which the container also has; write only the latter", name, meant)})
			}
			seen = append(seen, name)
		}
	}
	return out
}

// minSimilarFlagLength is the minimum length of flags for which one different letter is a
// misspelling.
const minSimilarFlagLength = 12

// checkFeatureGates checks feature gates of Kubernetes programs, which do not start with unknown
// ones.
func checkFeatureGates(at fieldpath.Path, container map[string]any) []structure.Finding {
	if name, _ := container["name"].(string); !slices.Contains([]string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy"}, name) {
		return nil
	}
	var out []structure.Finding
	for _, field := range []string{"command", "args"} {
		words, _ := container[field].([]any)
		for i, word := range words {
			text, _ := word.(string)
			gates, is := strings.CutPrefix(text, "--feature-gates=")
			if !is {
				continue
			}
			for gate := range strings.SplitSeq(gates, ",") {
				name, value, _ := strings.Cut(strings.TrimSpace(gate), "=")
				wrong := schemas.FeatureGateProblem(name)
				if _, err := strconv.ParseBool(value); err != nil && wrong == "" {
					wrong = fmt.Sprintf("the feature gate %s must be true or false, as in %s=true", name, name)
				}
				if wrong != "" && gate != "" {
					out = append(out, structure.Finding{Path: slices.Concat(at, fieldpath.Path{field, i}), Type: "Invalid", Message: wrong + "; the program would not start"})
				}
			}
		}
	}
	return out
}

func valueAt(value any, path fieldpath.Path) any {
	for _, step := range path {
		object, _ := value.(map[string]any)
		value = object[fieldpath.StepName(step)]
	}
	return value
}

var promQL = parser.NewParser(parser.Options{})

// checkExpressions checks the rules of a PrometheusRule. The operator skips rules with expressions
// that Prometheus cannot parse, and rules that are both alert and recording.
func checkExpressions(object map[string]any) []structure.Finding {
	var out []structure.Finding
	groups, _ := valueAt(object, fieldpath.Path{"spec", "groups"}).([]any)
	for i, group := range groups {
		rules, _ := valueAt(group, fieldpath.Path{"rules"}).([]any)
		for j, item := range rules {
			rule, _ := item.(map[string]any)
			at := fieldpath.Path{"spec", "groups", i, "rules", j}
			if text, ok := rule["expr"].(string); ok {
				switch parsed, err := promQL.ParseExpr(text); {
				case err != nil:
					out = append(out, structure.Finding{Path: at.Append("expr"), Type: "Invalid", Message: fmt.Sprintf("is not a Prometheus expression: %v", err)})
				case quantileFaults(parsed) != "":
					out = append(out, structure.Finding{Path: at.Append("expr"), Type: "Invalid", Message: quantileFaults(parsed)})
				case rule["alert"] != nil && isAlwaysFiring(parsed):
					out = append(out, structure.Finding{Path: at.Append("expr"), Type: "Invalid", Message: "always fires: with bool a comparison is 0 or 1, and an alert fires for any value; remove bool"})
				case rule["alert"] != nil:
					out = append(out, checkAggregatedLabels(at, rule, parsed)...)
				}
			}
			for _, field := range []string{"annotations", "labels"} {
				texts, _ := rule[field].(map[string]any)
				for _, name := range slices.Sorted(maps.Keys(texts)) {
					text, _ := texts[name].(string)
					if wrong := templateFault(text); wrong != "" {
						out = append(out, structure.Finding{Path: at.Append(field).Append(fieldpath.Key(name)), Type: "Invalid", Message: wrong})
					}
				}
			}
			alert, record := rule["alert"] != nil, rule["record"] != nil
			if alert == record {
				out = append(out, structure.Finding{Path: at, Type: "Invalid", Message: "must have one of alert and record"})
			}
		}
	}
	return out
}

// checkPodSecurity checks the labels of a Namespace for levels of pod security
// (https://kubernetes.io/docs/concepts/security/pod-security-admission/#pod-security-admission-labels-for-namespaces).
// Admission of API servers rejects unknown levels.
func checkPodSecurity(object map[string]any) []structure.Finding {
	var out []structure.Finding
	labels, _ := valueAt(object, fieldpath.Path{"metadata", "labels"}).(map[string]any)
	for _, mode := range []string{"enforce", "audit", "warn"} {
		label := "pod-security.kubernetes.io/" + mode
		level, given := labels[label].(string)
		if levels := []string{"privileged", "baseline", "restricted"}; given && !slices.Contains(levels, level) {
			hint := ""
			if meant := suggest.Closest(level, levels); meant != "" {
				hint = fmt.Sprintf("; did you mean %q?", meant)
			}
			out = append(out, structure.Finding{
				Path: fieldpath.Path{"metadata", "labels", fieldpath.Key(label)}, Type: "NotSupported",
				Message: fmt.Sprintf("%q is not a pod security level; the levels are %s%s", level, strings.Join(levels, ", "), hint),
			})
		}
	}
	return out
}

// checkResourceManagerAnnotations checks annotations that control gardener-resource-manager:
// invalid values have no effect.
func checkResourceManagerAnnotations(object map[string]any) []structure.Finding {
	var out []structure.Finding
	given, _ := valueAt(object, fieldpath.Path{"metadata", "annotations"}).(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(given)) {
		text, _ := given[name].(string)
		if !strings.HasPrefix(name, resourcesv1alpha1.GroupName+"/") {
			continue
		}
		wrong := ""
		switch name {
		case resourcesv1alpha1.Mode:
			if text != resourcesv1alpha1.ModeIgnore {
				wrong = fmt.Sprintf("%q is not a mode; the only mode is %q", text, resourcesv1alpha1.ModeIgnore)
			}
		case resourcesv1alpha1.DeletionPropagationOnInvalidUpdate:
			if modes := []string{"Foreground", "Background", "Orphan"}; !slices.Contains(modes, text) {
				wrong = fmt.Sprintf("%q is none of %s", text, strings.Join(modes, ", "))
			}
		case resourcesv1alpha1.FinalizeDeletionAfter:
			if _, err := time.ParseDuration(text); err != nil {
				wrong = fmt.Sprintf("%q is not a duration such as 5m", text)
			}
		default:
			if _, err := strconv.ParseBool(text); err != nil && slices.Contains(booleanAnnotations, name) {
				wrong = fmt.Sprintf("%q is neither true nor false", text)
			}
		}
		if wrong != "" {
			out = append(out, structure.Finding{Path: fieldpath.Path{"metadata", "annotations", fieldpath.Key(name)}, Type: "NotSupported", Message: wrong})
		}
	}
	return out
}

var booleanAnnotations = []string{
	resourcesv1alpha1.Ignore, resourcesv1alpha1.KeepObject, resourcesv1alpha1.DeleteOnInvalidUpdate, resourcesv1alpha1.PreserveReplicas,
	resourcesv1alpha1.PreserveResources, resourcesv1alpha1.SkipHealthCheck,
}

// checkReplicas are never negative. Definitions of operators allow it, and then API servers reject
// their workload.
func checkReplicas(object map[string]any) []structure.Finding {
	path := fieldpath.Path{"spec", "replicas"}
	var count float64
	switch v := valueAt(object, path).(type) {
	case int64:
		count = float64(v)
	case float64:
		count = v
	}
	if count < 0 {
		return []structure.Finding{{Path: path, Type: "Invalid", Message: fmt.Sprintf("%v is below 0", count)}}
	}
	return nil
}

// checkAPIService checks the rules of kube-aggregator
// (k8s.io/kube-aggregator/pkg/apis/apiregistration/validation).
func checkAPIService(object map[string]any) []structure.Finding {
	var out []structure.Finding
	text := func(path ...any) string {
		t, _ := valueAt(object, path).(string)
		return t
	}
	if name, want := text("metadata", "name"), text("spec", "version")+"."+text("spec", "group"); name != want {
		out = append(out, structure.Finding{Path: fieldpath.Path{"metadata", "name"}, Type: "Invalid", Message: fmt.Sprintf("must be spec.version and spec.group: %q", want)})
	}
	if text("spec", "caBundle") != "" && valueAt(object, fieldpath.Path{"spec", "insecureSkipTLSVerify"}) == true {
		out = append(out, structure.Finding{Path: fieldpath.Path{"spec", "insecureSkipTLSVerify"}, Type: "Invalid", Message: "cannot be set beside spec.caBundle"})
	}
	return out
}

// checkAutoscalerBounds of a VerticalPodAutoscaler: minAllowed must not exceed maxAllowed.
func checkAutoscalerBounds(object map[string]any) []structure.Finding {
	var out []structure.Finding
	policies, _ := valueAt(object, fieldpath.Path{"spec", "resourcePolicy", "containerPolicies"}).([]any)
	for i, policy := range policies {
		least, _ := valueAt(policy, fieldpath.Path{"minAllowed"}).(map[string]any)
		most, _ := valueAt(policy, fieldpath.Path{"maxAllowed"}).(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(least)) {
			low, errLow := resource.ParseQuantity(fmt.Sprint(least[name]))
			high, errHigh := resource.ParseQuantity(fmt.Sprint(most[name]))
			if errLow == nil && errHigh == nil && low.Cmp(high) > 0 {
				out = append(out, structure.Finding{
					Path: fieldpath.Path{"spec", "resourcePolicy", "containerPolicies", i, "minAllowed", fieldpath.Key(name)}, Type: "Invalid",
					Message: fmt.Sprintf("%s is above maxAllowed, which is %s", low.String(), high.String()),
				})
			}
		}
	}
	return out
}

// checkEtcdSchedules of an Etcd; etcd-backup-restore does not start with an invalid one.
func checkEtcdSchedules(object map[string]any) []structure.Finding {
	var out []structure.Finding
	for _, path := range []fieldpath.Path{{"spec", "backup", "fullSnapshotSchedule"}, {"spec", "etcd", "defragmentationSchedule"}} {
		text, _ := valueAt(object, path).(string)
		if problem := schemas.CronProblem(text); text != "" && problem != "" {
			out = append(out, structure.Finding{Path: path, Type: "Invalid", Message: fmt.Sprintf("the schedule %q %s", text, problem)})
		}
	}
	return out
}
