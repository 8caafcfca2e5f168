package strict

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/distribution/reference"
	"github.com/prometheus/prometheus/promql/parser"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pergola-dev/pergola/schemas/fieldpath"
	"github.com/pergola-dev/pergola/schemas/structure"
)

// beyond finds mistakes that API servers accept: kubelets and operators report them in their own logs only.
func (k *Kind) beyond(object map[string]any) []structure.Finding {
	switch {
	case k.GVK.Group == "rbac.authorization.k8s.io":
		return verbs(object)
	case k.GVK.Kind == "Namespace" && k.GVK.Group == "":
		return podSecurity(object)
	case k.goType != nil && k.Root.Properties["spec"] != nil:
		return containers(nil, object)
	case k.GVK.GroupKind() == schema.GroupKind{Group: "monitoring.coreos.com", Kind: "PrometheusRule"}:
		return expressions(object)
	}
	return nil
}

// containers looks at those of all pods that an object makes.
func containers(at fieldpath.Path, value any) []structure.Finding {
	var out []structure.Finding
	switch v := value.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			list, isList := v[name].([]any)
			if !isList || !slices.Contains([]string{"containers", "initContainers"}, name) {
				out = append(out, containers(at.Append(name), v[name])...)
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
			out = append(out, containers(at.Append(i), item)...)
		}
	}
	return out
}

// checkContainer: its image has the form of one, and what asks it for a port by name names one that it has.
func checkContainer(at fieldpath.Path, container map[string]any) []structure.Finding {
	var out []structure.Finding
	if image, ok := container["image"].(string); ok {
		if _, err := reference.ParseAnyReference(image); err != nil {
			out = append(out, structure.Finding{Path: at.Append("image"), Type: "Invalid", Message: fmt.Sprintf("%q is no image, such as registry.example.org/name:tag or name@sha256:…: %v", image, err)})
		}
	}
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
			if better := structure.Suggest(name, ports); better != "" {
				hint = fmt.Sprintf("; did you mean %q?", better)
			} else if len(ports) > 0 {
				hint = "; it has " + strings.Join(ports, ", ")
			}
			out = append(out, structure.Finding{Path: slices.Concat(at, place), Type: "NotFound", Message: fmt.Sprintf("the container has no port of the name %q%s", name, hint)})
		}
	}
	return out
}

func valueAt(value any, path fieldpath.Path) any {
	for _, step := range path {
		object, _ := value.(map[string]any)
		value = object[fieldpath.Name(step)]
	}
	return value
}

var promQL = parser.NewParser(parser.Options{})

// expressions looks at those of a PrometheusRule: the operator leaves out a rule with one that Prometheus does not read, or that is an alert and a
// recording at once.
func expressions(object map[string]any) []structure.Finding {
	var out []structure.Finding
	groups, _ := valueAt(object, fieldpath.Path{"spec", "groups"}).([]any)
	for i, group := range groups {
		rules, _ := valueAt(group, fieldpath.Path{"rules"}).([]any)
		for j, item := range rules {
			rule, _ := item.(map[string]any)
			at := fieldpath.Path{"spec", "groups", i, "rules", j}
			if text, ok := rule["expr"].(string); ok {
				if _, err := promQL.ParseExpr(text); err != nil {
					out = append(out, structure.Finding{Path: at.Append("expr"), Type: "Invalid", Message: fmt.Sprintf("is no expression of Prometheus: %v", err)})
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

// knownVerbs are those of Kubernetes (https://kubernetes.io/docs/reference/access-authn-authz/authorization/#determine-the-request-verb). APIs may have
// others, such as manage-members of Projects, so only one that is written nearly like one of these is wrong.
var knownVerbs = []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "use", "bind", "escalate", "impersonate", "approve", "sign", "attest"}

// verbs looks at those of a role.
func verbs(object map[string]any) []structure.Finding {
	var out []structure.Finding
	rules, _ := object["rules"].([]any)
	for i, item := range rules {
		list, _ := valueAt(item, fieldpath.Path{"verbs"}).([]any)
		for j, verb := range list {
			text, _ := verb.(string)
			if slices.Contains(knownVerbs, text) {
				continue
			}
			if meant := structure.Suggest(text, knownVerbs); meant != "" {
				out = append(out, structure.Finding{Path: fieldpath.Path{"rules", i, "verbs", j}, Type: "NotSupported", Message: fmt.Sprintf("%q is no verb that API servers ask about; did you mean %q?", text, meant)})
			}
		}
	}
	return out
}

// podSecurity looks at the labels by which a Namespace asks for a level of pod security
// (https://kubernetes.io/docs/concepts/security/pod-security-admission/#pod-security-admission-labels-for-namespaces): the admission of API servers
// refuses one that there is not.
func podSecurity(object map[string]any) []structure.Finding {
	var out []structure.Finding
	labels, _ := valueAt(object, fieldpath.Path{"metadata", "labels"}).(map[string]any)
	for _, mode := range []string{"enforce", "audit", "warn"} {
		label := "pod-security.kubernetes.io/" + mode
		level, given := labels[label].(string)
		if levels := []string{"privileged", "baseline", "restricted"}; given && !slices.Contains(levels, level) {
			hint := ""
			if meant := structure.Suggest(level, levels); meant != "" {
				hint = fmt.Sprintf("; did you mean %q?", meant)
			}
			out = append(out, structure.Finding{
				Path: fieldpath.Path{"metadata", "labels", fieldpath.Key(label)}, Type: "NotSupported",
				Message: fmt.Sprintf("%q is no level of pod security, which are %s%s", level, strings.Join(levels, ", "), hint),
			})
		}
	}
	return out
}
