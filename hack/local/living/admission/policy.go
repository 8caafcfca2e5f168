// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"fmt"
	"strconv"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	applyadmission "k8s.io/client-go/applyconfigurations/admissionregistration/v1"
	applymeta "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// PolicyName is the name of the policy, of its binding, and of their field manager.
const PolicyName = "local.pergola.dev"

// Ensure applies the policy and its binding. pattern is a regular expression of the images that can
// run; key is the key of the nodes' label and taint. oneNode: there is only one such node. It
// needs: patch of mutatingadmissionpolicies and mutatingadmissionpolicybindings in
// admissionregistration.k8s.io.
func Ensure(ctx context.Context, client kubernetes.Interface, pattern, key string, oneNode bool) error {
	options := metav1.ApplyOptions{FieldManager: PolicyName, Force: true}
	if _, err := client.AdmissionregistrationV1().MutatingAdmissionPolicies().Apply(ctx, policy(pattern, key, oneNode), options); err != nil {
		return fmt.Errorf("creating the policy that sends pods to living nodes: %w", err)
	}
	binding := applyadmission.MutatingAdmissionPolicyBinding(PolicyName).WithSpec(applyadmission.MutatingAdmissionPolicyBindingSpec().WithPolicyName(PolicyName))
	if _, err := client.AdmissionregistrationV1().MutatingAdmissionPolicyBindings().Apply(ctx, binding, options); err != nil {
		return fmt.Errorf("binding the policy that sends pods to living nodes: %w", err)
	}
	return nil
}

func policy(pattern, key string, oneNode bool) *applyadmission.MutatingAdmissionPolicyApplyConfiguration {
	// Strings in CEL have the same escapes as in Go.
	p, k := strconv.Quote(pattern), strconv.Quote(key)
	more := removeRunAsUser
	if oneNode {
		more += " + " + relaxTopologySpread
	}
	condition := func(name, expression string) *applyadmission.MatchConditionApplyConfiguration {
		return applyadmission.MatchCondition().WithName(name).WithExpression(expression)
	}
	marked := func(annotation string) string {
		a := strconv.Quote(annotation)
		return fmt.Sprintf(`!(has(object.metadata.annotations) && %s in object.metadata.annotations && object.metadata.annotations[%s] == "true") && !(has(object.metadata.labels) && %s in object.metadata.labels && object.metadata.labels[%s] == "true")`, a, a, a, a)
	}
	return applyadmission.MutatingAdmissionPolicy(PolicyName).WithSpec(applyadmission.MutatingAdmissionPolicySpec().
		WithFailurePolicy(admissionregistrationv1.Fail).
		WithReinvocationPolicy(admissionregistrationv1.NeverReinvocationPolicy).
		WithMatchConstraints(applyadmission.MatchResources().
			WithMatchPolicy(admissionregistrationv1.Equivalent).
			WithNamespaceSelector(applymeta.LabelSelector()).WithObjectSelector(applymeta.LabelSelector()).
			WithResourceRules(applyadmission.NamedRuleWithOperations().
				WithOperations(admissionregistrationv1.Create).WithAPIGroups("").WithAPIVersions("v1").WithResources("pods"))).
		WithMatchConditions(
			condition("nobody-has-chosen-a-node", `!has(object.spec.nodeName) || object.spec.nodeName == ""`),
			condition("all-images-are-executables", fmt.Sprintf(`object.spec.containers.all(c, c.image.matches(%s)) && (!has(object.spec.initContainers) || object.spec.initContainers.all(c, c.image.matches(%s)))`, p, p)),
			condition("not-to-be-played", marked("local.pergola.dev/play")),
			condition("not-to-fail", marked("local.pergola.dev/never-ready")),
		).
		WithMutations(applyadmission.Mutation().
			WithPatchType(admissionregistrationv1.PatchTypeJSONPatch).
			WithJSONPatch(applyadmission.JSONPatch().WithExpression(fmt.Sprintf(`[
  has(object.spec.tolerations)
    ? JSONPatch{op: "add", path: "/spec/tolerations/-", value: Object.spec.tolerations{key: %[1]s, operator: "Exists"}}
    : JSONPatch{op: "add", path: "/spec/tolerations", value: [Object.spec.tolerations{key: %[1]s, operator: "Exists"}]},
  has(object.spec.nodeSelector)
    ? JSONPatch{op: "add", path: "/spec/nodeSelector/" + jsonpatch.escapeKey(%[1]s), value: "true"}
    : JSONPatch{op: "add", path: "/spec/nodeSelector", value: {%[1]s: "true"}}
] + %[2]s`, k, more)))))
}

// relaxTopologySpread turns required topology spread constraints into preferred constraints and
// removes minDomains.
const relaxTopologySpread = `(has(object.spec.topologySpreadConstraints) ? [0, 1, 2, 3, 4].filter(i, i < size(object.spec.topologySpreadConstraints))
  .map(i, JSONPatch{op: "replace", path: "/spec/topologySpreadConstraints/" + string(i) + "/whenUnsatisfiable", value: "ScheduleAnyway"}) +
  [0, 1, 2, 3, 4].filter(i, i < size(object.spec.topologySpreadConstraints) && has(object.spec.topologySpreadConstraints[i].minDomains))
  .map(i, JSONPatch{op: "remove", path: "/spec/topologySpreadConstraints/" + string(i) + "/minDomains"}) : [])`

// removeRunAsUser removes runAsUser: with one user in the namespaces, the kubelet cannot give
// files, such as ServiceAccount tokens, to another user.
var removeRunAsUser = func() string {
	// CEL has no loop over indexes, only over a list of them.
	const most = "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]"
	out := `(has(object.spec.securityContext) && has(object.spec.securityContext.runAsUser) ? [JSONPatch{op: "remove", path: "/spec/securityContext/runAsUser"}] : [])`
	for _, list := range []string{"containers", "initContainers"} {
		out += fmt.Sprintf(` + (has(object.spec.%[1]s) ? %[2]s.filter(i, i < size(object.spec.%[1]s) && has(object.spec.%[1]s[i].securityContext) && has(object.spec.%[1]s[i].securityContext.runAsUser))
  .map(i, JSONPatch{op: "remove", path: "/spec/%[1]s/" + string(i) + "/securityContext/runAsUser"}) : [])`, list, most)
	}
	return out
}()
