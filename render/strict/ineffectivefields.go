// SPDX-License-Identifier: Apache-2.0

package strict

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/prometheus/prometheus/promql/parser"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/pergola-dev/pergola/internal/suggest"
	"github.com/pergola-dev/pergola/schemas"
	"github.com/pergola-dev/pergola/schemas/fieldpath"
	"github.com/pergola-dev/pergola/schemas/requests"
	"github.com/pergola-dev/pergola/schemas/structure"
)

// This file finds parts of objects that API servers accept, but that have no effect or an unwanted
// one.

// labelValues are the values of labels that webhooks and controllers of Gardener read
// (docs/concepts/resource-manager.md, docs/operations/network_policies.md of upstream).
var labelValues = map[string][]string{
	"high-availability-config.resources.gardener.cloud/type": {"controller", "server"},
	"networking.gardener.cloud/to-blocked-cidrs":             {"allowed"},
	"networking.gardener.cloud/to-dns":                       {"allowed"},
	"networking.gardener.cloud/to-private-networks":          {"allowed"},
	"networking.gardener.cloud/to-public-networks":           {"allowed"},
	"networking.gardener.cloud/to-runtime-apiserver":         {"allowed"},
}

// networkLabel is the prefix of labels of pods that allow connections.
const networkLabel = "networking.resources.gardener.cloud/to-"

// checkGardenerLabels checks the labels of an object and of its pods.
func checkGardenerLabels(at fieldpath.Path, value any) []structure.Finding {
	var out []structure.Finding
	fields, _ := value.(map[string]any)
	for _, path := range []fieldpath.Path{{"metadata", "labels"}, {"spec", "template", "metadata", "labels"}} {
		labels, _ := valueAt(fields, path).(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(labels)) {
			text, _ := labels[name].(string)
			known := labelValues[name]
			wrong := ""
			switch {
			case strings.HasPrefix(name, networkLabel) && text != "allowed":
				wrong = fmt.Sprintf("%q allows nothing; the value is allowed", text)
			case len(known) > 0 && !slices.Contains(known, text):
				wrong = fmt.Sprintf("%q has no effect; the value is %s", text, strings.Join(known, " or "))
			case len(known) == 0:
				if meant := suggest.ClosestWithin(name, slices.Collect(maps.Keys(labelValues)), 2); meant != "" {
					wrong = fmt.Sprintf("nothing reads this label; did you mean %q?", meant)
				}
			}
			if wrong != "" {
				out = append(out, structure.Finding{Path: slices.Concat(at, path, fieldpath.Path{fieldpath.Key(name)}), Type: "NotSupported", Message: wrong})
			}
		}
	}
	return out
}

// flagAndValuePattern matches a flag and its value in one argument, which a program reads as a flag
// with a space in its name.
var flagAndValuePattern = regexp.MustCompile(`^(--?[A-Za-z][A-Za-z0-9-]*) ([^ ].*)$`)

// checkCommandWords finds a command in one string with its arguments, and a flag in one string with
// its value.
func checkCommandWords(at fieldpath.Path, container map[string]any) []structure.Finding {
	var out []structure.Finding
	for _, field := range []string{"command", "args"} {
		words, _ := container[field].([]any)
		for i, word := range words {
			text, _ := word.(string)
			if parts := flagAndValuePattern.FindStringSubmatch(text); parts != nil {
				out = append(out, structure.Finding{Path: slices.Concat(at, fieldpath.Path{field, i}), Type: "Invalid",
					Message: fmt.Sprintf("no flag is called %q; write %s=%s, or the value as a separate item", text, parts[1], parts[2])})
			}
		}
	}
	return append(out, checkCommandName(at, container)...)
}

func checkCommandName(at fieldpath.Path, container map[string]any) []structure.Finding {
	words, _ := container["command"].([]any)
	if len(words) == 0 {
		return nil
	}
	first, _ := words[0].(string)
	if program, rest, has := strings.Cut(first, " "); has && strings.HasPrefix(strings.TrimSpace(rest), "-") {
		return []structure.Finding{{Path: slices.Concat(at, fieldpath.Path{"command", 0}), Type: "Invalid",
			Message: fmt.Sprintf("no program is called %q; write %q, and each argument as a separate item", first, program)}}
	}
	return nil
}

// checkPolicyTypes finds rules of a NetworkPolicy without effect, because its types omit the
// direction, and empty lists of peers, which allow all.
func checkPolicyTypes(object map[string]any) []structure.Finding {
	var out []structure.Finding
	for _, of := range [][2]string{{"ingress", "from"}, {"egress", "to"}} {
		rules, _ := valueAt(object, fieldpath.Path{"spec", of[0]}).([]any)
		for i, rule := range rules {
			if peers, given := valueAt(rule, fieldpath.Path{of[1]}).([]any); given && len(peers) == 0 {
				out = append(out, structure.Finding{Path: fieldpath.Path{"spec", of[0], i, of[1]}, Type: "Invalid", Message: "an empty list allows every peer; remove the field to allow every peer, or the rule to allow none"})
			}
		}
	}
	types, given := valueAt(object, fieldpath.Path{"spec", "policyTypes"}).([]any)
	if !given {
		return out
	}
	for _, of := range [][2]string{{"ingress", "Ingress"}, {"egress", "Egress"}} {
		if rules, _ := valueAt(object, fieldpath.Path{"spec", of[0]}).([]any); len(rules) > 0 && !slices.Contains(types, any(of[1])) {
			out = append(out, structure.Finding{Path: fieldpath.Path{"spec", of[0]}, Type: "Invalid", Message: fmt.Sprintf("has no effect, since spec.policyTypes has no %s", of[1])})
		}
	}
	return out
}

// checkClaimedStorage checks the sizes of volumes that an object claims.
func checkClaimedStorage(object map[string]any) []structure.Finding {
	var out []structure.Finding
	check := func(at fieldpath.Path, claim any) {
		path := fieldpath.Path{"spec", "resources", "requests", "storage"}
		size, err := resource.ParseQuantity(fmt.Sprint(valueAt(claim, path)))
		if err != nil {
			return
		}
		if wrong := structure.CheckAmount("storage", size); wrong != "" {
			out = append(out, structure.Finding{Path: slices.Concat(at, path), Type: "Invalid", Message: fmt.Sprintf("%v %s", valueAt(claim, path), wrong)})
		}
	}
	check(nil, object)
	claims, _ := valueAt(object, fieldpath.Path{"spec", "volumeClaimTemplates"}).([]any)
	for i, claim := range claims {
		check(fieldpath.Path{"spec", "volumeClaimTemplates", i}, claim)
		name, _ := valueAt(claim, fieldpath.Path{"metadata", "name"}).(string)
		if spec := valueAt(object, fieldpath.Path{"spec", "template", "spec"}); name != "" && spec != nil && !hasMount(spec, name) {
			out = append(out, structure.Finding{Path: fieldpath.Path{"spec", "volumeClaimTemplates", i, "metadata", "name"}, Type: "NotFound", Message: fmt.Sprintf("no container mounts the volume %q", name)})
		}
	}
	return out
}

// hasMount reports whether a container of pods mounts a volume.
func hasMount(spec any, name string) bool {
	for _, field := range []string{"containers", "initContainers"} {
		list, _ := valueAt(spec, fieldpath.Path{field}).([]any)
		for _, container := range list {
			for _, way := range []string{"volumeMounts", "volumeDevices"} {
				mounted, _ := valueAt(container, fieldpath.Path{way}).([]any)
				for _, mount := range mounted {
					if valueAt(mount, fieldpath.Path{"name"}) == name {
						return true
					}
				}
			}
		}
	}
	return false
}

// checkCronSchedule finds a CronJob that never runs.
func checkCronSchedule(object map[string]any) []structure.Finding {
	path := fieldpath.Path{"spec", "schedule"}
	if text, _ := valueAt(object, path).(string); schemas.CronProblem(text) == "" && schemas.IsNeverDue(text) {
		return []structure.Finding{{Path: path, Type: "Invalid", Message: fmt.Sprintf("%q never occurs: no such month has that many days", text)}}
	}
	return nil
}

// checkSubjects finds users and groups of a binding with nearly the name of a system subject.
func checkSubjects(object map[string]any) []structure.Finding {
	var out []structure.Finding
	list, _ := object["subjects"].([]any)
	for i, subject := range list {
		name, _ := valueAt(subject, fieldpath.Path{"name"}).(string)
		kind, _ := valueAt(subject, fieldpath.Path{"kind"}).(string)
		if wrong := requests.CheckSubjectOfKind(kind, name); wrong != "" && kind != "ServiceAccount" && !strings.Contains(name, SymbolicMark) {
			out = append(out, structure.Finding{Path: fieldpath.Path{"subjects", i, "name"}, Type: "NotSupported", Message: wrong})
		}
	}
	return out
}

// clusterResources are resources without a namespace, which a Role cannot grant. Namespaces are not
// among them: a request for a Namespace is in that namespace.
var clusterResources = []string{
	"apiservices", "clusterrolebindings", "clusterroles", "csidrivers", "csinodes", "customresourcedefinitions", "ingressclasses", "mutatingwebhookconfigurations",
	"nodes", "persistentvolumes", "priorityclasses", "runtimeclasses", "storageclasses", "validatingadmissionpolicies", "validatingwebhookconfigurations", "volumeattachments",
}

// unnamedVerbs are verbs whose requests name no object, so resourceNames cannot grant them
// (https://kubernetes.io/docs/reference/access-authn-authz/rbac/#referring-to-resources).
var unnamedVerbs = []string{"create", "deletecollection"}

// checkGrants finds rules of a role that grant nothing.
func checkGrants(kind string, object map[string]any) []structure.Finding {
	var out []structure.Finding
	rules, _ := object["rules"].([]any)
	if selectors, _ := valueAt(object, fieldpath.Path{"aggregationRule", "clusterRoleSelectors"}).([]any); len(selectors) > 0 && len(rules) > 0 {
		out = append(out, structure.Finding{Path: fieldpath.Path{"rules"}, Type: "Forbidden", Message: "is replaced by the rules of the roles that aggregationRule selects; remove one of them"})
	}
	for i, rule := range rules {
		texts := func(field string) []string {
			var words []string
			list, _ := valueAt(rule, fieldpath.Path{field}).([]any)
			for _, word := range list {
				text, _ := word.(string)
				words = append(words, text)
			}
			return words
		}
		verbs, resources := texts("verbs"), texts("resources")
		if names := texts("resourceNames"); len(names) > 0 && len(verbs) > 0 && !slices.ContainsFunc(verbs, func(verb string) bool { return !slices.Contains(unnamedVerbs, verb) }) &&
			!slices.ContainsFunc(resources, func(resource string) bool { return strings.Contains(resource, "/") }) {
			out = append(out, structure.Finding{Path: fieldpath.Path{"rules", i, "resourceNames"}, Type: "Invalid", Message: fmt.Sprintf("grants nothing: a request to %s names no object", strings.Join(verbs, " or "))})
		}
		for j, url := range texts("nonResourceURLs") {
			if url != "*" && !strings.HasPrefix(url, "/") && !strings.Contains(url, SymbolicMark) {
				out = append(out, structure.Finding{Path: fieldpath.Path{"rules", i, "nonResourceURLs", j}, Type: "Invalid", Message: fmt.Sprintf("%q matches no request; write %q", url, "/"+url)})
			}
		}
		if slices.ContainsFunc(texts("apiGroups"), func(group string) bool { return strings.Contains(group, ".") && !strings.HasSuffix(group, ".k8s.io") }) {
			continue // other APIs may have any subresources
		}
		for j, resource := range resources {
			plain, part, _ := strings.Cut(resource, "/")
			switch meant := suggest.ClosestWithin(part, subresources, 2); {
			case kind == "Role" && slices.Contains(clusterResources, plain):
				out = append(out, structure.Finding{Path: fieldpath.Path{"rules", i, "resources", j}, Type: "Invalid", Message: fmt.Sprintf("a Role cannot grant access to %s, which have no namespace; use a ClusterRole", plain)})
			case part != "" && meant != "" && !slices.Contains(subresources, part) && plain != "*":
				out = append(out, structure.Finding{Path: fieldpath.Path{"rules", i, "resources", j}, Type: "NotSupported", Message: fmt.Sprintf("%q is not a resource of requests; did you mean %q?", resource, plain+"/"+meant)})
			}
		}
	}
	return out
}

// subresources are the subresources of the Kubernetes and Gardener APIs.
var subresources = []string{
	"adminkubeconfig", "approval", "attach", "binding", "ephemeralcontainers", "eviction", "exec", "finalize", "finalizers", "log", "metrics", "portforward", "proxy", "resize",
	"scale", "spec", "stats", "status", "token", "viewerkubeconfig",
}

// checkAlertRules finds rules of a PrometheusRule that mix alert and recording, and duplicates.
func checkAlertRules(object map[string]any) []structure.Finding {
	var out []structure.Finding
	groups, _ := valueAt(object, fieldpath.Path{"spec", "groups"}).([]any)
	for i, group := range groups {
		rules, _ := valueAt(group, fieldpath.Path{"rules"}).([]any)
		seen := map[string]int{}
		for j, rule := range rules {
			path := fieldpath.Path{"spec", "groups", i, "rules", j}
			if valueAt(rule, fieldpath.Path{"record"}) != nil {
				for _, field := range []string{"for", "keep_firing_for", "annotations"} {
					if valueAt(rule, fieldpath.Path{field}) != nil {
						out = append(out, structure.Finding{Path: path.Append(field), Type: "Forbidden", Message: "belongs to an alert, and this rule records; Prometheus refuses the file"})
					}
				}
			}
			key := fmt.Sprint(rule)
			if first, has := seen[key]; has {
				out = append(out, structure.Finding{Path: path, Type: "Duplicate", Message: fmt.Sprintf("repeats rules[%d]", first)})
			}
			seen[key] = j
		}
	}
	return out
}

// checkBudgetSelector finds a disruption budget without a selector, which applies to no pod.
func checkBudgetSelector(object map[string]any) []structure.Finding {
	if valueAt(object, fieldpath.Path{"spec", "selector"}) != nil {
		return nil
	}
	return []structure.Finding{{Path: fieldpath.Path{"spec", "selector"}, Type: "Required", Message: "must be set: a budget without a selector applies to no pod"}}
}

// checkEtcdMembers finds an etcd with an even number of members, which tolerates no more failures
// than one member less.
func checkEtcdMembers(object map[string]any) []structure.Finding {
	path := fieldpath.Path{"spec", "replicas"}
	if count, ok := valueAt(object, path).(int64); ok && count > 0 && count%2 == 0 {
		return []structure.Finding{{Path: path, Type: "Invalid", Message: fmt.Sprintf("%d members survive the loss of no more members than %d; write an odd number", count, count-1)}}
	}
	return nil
}

// checkAllowedPorts checks annotations of a Service that open ports: unreadable ones create no
// policy.
func checkAllowedPorts(object map[string]any) []structure.Finding {
	var out []structure.Finding
	given, _ := valueAt(object, fieldpath.Path{"metadata", "annotations"}).(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(given)) {
		text, _ := given[name].(string)
		if !strings.HasPrefix(name, "networking.resources.gardener.cloud/from-") || !strings.HasSuffix(name, "-ports") {
			continue
		}
		at := fieldpath.Path{"metadata", "annotations", fieldpath.Key(name)}
		var ports []struct {
			Protocol string `json:"protocol"`
			Port     any    `json:"port"`
		}
		if err := json.Unmarshal([]byte(text), &ports); err != nil {
			out = append(out, structure.Finding{Path: at, Type: "Invalid",
				Message: fmt.Sprintf("is not a JSON list of ports such as %s: %v", `[{"protocol":"TCP","port":8080}]`, err)})
		}
		for _, port := range ports {
			if known := []string{"SCTP", "TCP", "UDP"}; port.Protocol != "" && !slices.Contains(known, port.Protocol) {
				out = append(out, structure.Finding{Path: at, Type: "NotSupported", Message: fmt.Sprintf("%q is not a protocol%s", port.Protocol, knownWordsHint(port.Protocol, known))})
			}
		}
	}
	return out
}

// checkTargetAPI checks the API of an autoscaler's target: workloads of Kubernetes are in apps/v1.
func checkTargetAPI(object map[string]any) []structure.Finding {
	for _, field := range []string{"scaleTargetRef", "targetRef"} {
		kind, _ := valueAt(object, fieldpath.Path{"spec", field, "kind"}).(string)
		version, has := valueAt(object, fieldpath.Path{"spec", field, "apiVersion"}).(string)
		if has && slices.Contains([]string{"DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"}, kind) && version != "apps/v1" {
			return []structure.Finding{{Path: fieldpath.Path{"spec", field, "apiVersion"}, Type: "NotSupported", Message: fmt.Sprintf("a %s is of apps/v1, not of %q", kind, version)}}
		}
	}
	return nil
}

// checkWebhookRules finds unknown groups and resources in rules of webhooks.
func checkWebhookRules(object map[string]any) []structure.Finding {
	var out []structure.Finding
	webhooks, _ := object["webhooks"].([]any)
	for i, webhook := range webhooks {
		rules, _ := valueAt(webhook, fieldpath.Path{"rules"}).([]any)
		for j, rule := range rules {
			var groups []string
			for _, check := range []struct {
				field string
				wrong func(string) string
			}{
				{"apiGroups", func(group string) string { groups = append(groups, group); return requests.CheckGroup(group) }},
				{"resources", func(resource string) string {
					return requests.CheckResource(resource, groups, requests.KubernetesResources)
				}},
			} {
				words, _ := valueAt(rule, fieldpath.Path{check.field}).([]any)
				for k, word := range words {
					text, _ := word.(string)
					if strings.Contains(text, "*") {
						groups = append(groups, "*") // its resources are unknown
						continue
					}
					if wrong := check.wrong(text); wrong != "" && !strings.Contains(text, SymbolicMark) {
						out = append(out, structure.Finding{Path: fieldpath.Path{"webhooks", i, "rules", j, check.field, k}, Type: "NotSupported", Message: wrong})
					}
				}
			}
		}
	}
	return out
}

// isAlwaysFiring reports whether an alert fires for any metrics: a comparison with bool yields 0 or
// 1, and both are values.
func isAlwaysFiring(expression parser.Expr) bool {
	for {
		paren, is := expression.(*parser.ParenExpr)
		if !is {
			break
		}
		expression = paren.Expr
	}
	binary, is := expression.(*parser.BinaryExpr)
	return is && binary.ReturnBool
}

// labelsOf are the labels of the result of an expression, if an aggregation determines them.
func labelsOf(expression parser.Expr) (names []string, known bool) {
	switch e := expression.(type) {
	case *parser.ParenExpr:
		return labelsOf(e.Expr)
	case *parser.AggregateExpr:
		if e.Without || slices.Contains([]parser.ItemType{parser.TOPK, parser.BOTTOMK, parser.COUNT_VALUES, parser.LIMITK, parser.LIMIT_RATIO}, e.Op) {
			return nil, false
		}
		return e.Grouping, true
	case *parser.BinaryExpr:
		if _, isNumber := e.RHS.(*parser.NumberLiteral); isNumber && e.Op.IsComparisonOperator() {
			return labelsOf(e.LHS)
		}
	}
	return nil, false
}

var usedLabelPattern = regexp.MustCompile(`\$labels\.([A-Za-z_][A-Za-z0-9_]*)`)

// checkAggregatedLabels finds labels in annotations of an alert that its expression aggregates
// away.
func checkAggregatedLabels(at fieldpath.Path, rule map[string]any, expression parser.Expr) []structure.Finding {
	names, known := labelsOf(expression)
	if !known {
		return nil
	}
	var out []structure.Finding
	added, _ := rule["labels"].(map[string]any)
	texts, _ := rule["annotations"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		text, _ := texts[name].(string)
		for _, used := range usedLabelPattern.FindAllStringSubmatch(text, -1) {
			if _, has := added[used[1]]; !has && !slices.Contains(names, used[1]) {
				out = append(out, structure.Finding{Path: at.Append("annotations").Append(fieldpath.Key(name)), Type: "NotFound",
					Message: fmt.Sprintf("the expression leaves no label %s: it has %s", used[1], cmp.Or(strings.Join(names, ", "), "none"))})
			}
		}
	}
	return out
}

// checkRequiredFields checks that required fields of a definition exist, or no object is ever
// valid.
func checkRequiredFields(object map[string]any) []structure.Finding {
	var out []structure.Finding
	var walk func(at fieldpath.Path, value any)
	walk = func(at fieldpath.Path, value any) {
		node, _ := value.(map[string]any)
		fields, _ := node["properties"].(map[string]any)
		required, _ := node["required"].([]any)
		for i, item := range required {
			name, _ := item.(string)
			if _, has := fields[name]; has || len(fields) == 0 || node["x-kubernetes-preserve-unknown-fields"] == true {
				continue
			}
			hint := ""
			if meant := suggest.Closest(name, slices.Sorted(maps.Keys(fields))); meant != "" {
				hint = fmt.Sprintf("; did you mean %q?", meant)
			}
			out = append(out, structure.Finding{Path: slices.Concat(at, fieldpath.Path{"required", i}), Type: "NotFound", Message: fmt.Sprintf("there is no field %q, so no object is ever valid%s", name, hint)})
		}
		for _, name := range slices.Sorted(maps.Keys(fields)) {
			walk(slices.Concat(at, fieldpath.Path{"properties", fieldpath.Key(name)}), fields[name])
		}
		if node["items"] != nil {
			walk(at.Append("items"), node["items"])
		}
	}
	versions, _ := valueAt(object, fieldpath.Path{"spec", "versions"}).([]any)
	for i, version := range versions {
		walk(fieldpath.Path{"spec", "versions", i, "schema", "openAPIV3Schema"}, valueAt(version, fieldpath.Path{"schema", "openAPIV3Schema"}))
	}
	return out
}
