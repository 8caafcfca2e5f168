// SPDX-License-Identifier: Apache-2.0

package strict

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestPodFields(t *testing.T) {
	pod := func(spec string) string {
		return "{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, namespace: b}, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {" + spec + "}}}}"
	}
	const container = "containers: [{name: c, image: i}]"
	mounting := func(volume string) string {
		return pod("volumes: [{name: v, " + volume + "}], containers: [{name: c, image: i, volumeMounts: [{name: v, mountPath: /v}]}]")
	}
	with := func(fields string) string { return pod("containers: [{name: c, image: i, " + fields + "}]") }
	stops := func(grace, command string) string {
		return pod(grace + "containers: [{name: c, image: i, lifecycle: {preStop: {exec: {command: " + command + "}}}}]")
	}
	selects := func(selector, terms string) string {
		return pod("nodeSelector: {" + selector + "}, affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [" + terms + "]}}}, " + container)
	}
	checkObjects(t, map[string]objectCase{
		"names of the node":        {pod("hostNetwork: true, dnsPolicy: ClusterFirst, " + container), "spec.template.spec.dnsPolicy: with hostNetwork ClusterFirst is the same as Default"},
		"no names written":         {pod("hostNetwork: true, " + container), ""},
		"a volume without a mount": {pod("volumes: [{name: a, emptyDir: {}}, {name: b, emptyDir: {}}], containers: [{name: a, image: i, volumeMounts: [{name: a, mountPath: /a}]}]"), "spec.template.spec.volumes[1]: no container mounts the volume b"},
		"names of the cluster":     {pod("hostNetwork: true, dnsPolicy: ClusterFirstWithHostNet, " + container), ""},
		"names in its own network": {pod("dnsPolicy: ClusterFirst, " + container), ""},
		"names of a job":           {"{apiVersion: batch/v1, kind: CronJob, metadata: {name: a, namespace: b}, spec: {schedule: '@daily', jobTemplate: {spec: {template: {spec: {restartPolicy: Never, hostNetwork: true, dnsPolicy: ClusterFirst, " + container + "}}}}}}", "spec.jobTemplate.spec.template.spec.dnsPolicy"},

		"a short sleep":         {stops("", "[sleep, '20']"), ""},
		"a sleep of all":        {stops("", "[sleep, '30']"), `lifecycle.preStop.exec.command: "sleep 30": the pod has 30 seconds (terminationGracePeriodSeconds) to stop`},
		"a sleep of more":       {stops("terminationGracePeriodSeconds: 60, ", "[/bin/sh, -c, 'sleep 120 && kill 1']"), "the pod has 60 seconds"},
		"a sleep of minutes":    {stops("terminationGracePeriodSeconds: 60, ", "[/bin/sleep, 2m]"), "the pod has 60 seconds"},
		"a sleep in enough":     {stops("terminationGracePeriodSeconds: 60, ", "[sh, -c, 'sleep 30']"), ""},
		"a sleep behind others": {stops("", "[sh, -c, 'test -f /x || sleep 120']"), ""},

		"modes":                 {mounting("configMap: {name: x, defaultMode: 420, items: [{key: a, path: a, mode: 256}]}"), ""},
		"octal modes":           {mounting("secret: {secretName: x, defaultMode: 0440}"), ""},
		"a mode in decimal":     {mounting("secret: {secretName: x, defaultMode: 400}"), "spec.template.spec.volumes[0].secret.defaultMode: 400 is 0620 in octal digits; write 0400"},
		"a mode of a file":      {mounting("configMap: {name: x, items: [{key: a, path: a, mode: 444}]}"), "spec.template.spec.volumes[0].configMap.items[0].mode: 444 is 0674"},
		"a mode of a source":    {mounting("projected: {sources: [{secret: {name: x, items: [{key: a, path: a, mode: 440}]}}]}"), "volumes[0].projected.sources[0].secret.items[0].mode"},
		"a mode of a field":     {mounting("downwardAPI: {defaultMode: 500, items: [{path: a, fieldRef: {fieldPath: metadata.name}}]}"), "volumes[0].downwardAPI.defaultMode"},
		"a mode API servers do": {mounting("configMap: {name: x, defaultMode: 644}"), "volumes[0].configMap.defaultMode"},

		"a limit":                {mounting("emptyDir: {sizeLimit: 100Mi}"), ""},
		"a limit of little":      {mounting("emptyDir: {sizeLimit: 64Ki}"), ""},
		"a limit in thousandths": {mounting("emptyDir: {sizeLimit: 100m}"), `volumes[0].emptyDir.sizeLimit: "100m": is 0.100 bytes, since m stands for thousandths; did you mean 100Mi?`},
		"a limit without a unit": {mounting("emptyDir: {sizeLimit: 500}"), "is 500 bytes; write a unit"},

		"variables":               {with("env: [{name: HOST, valueFrom: {fieldRef: {fieldPath: status.podIP}}}, {name: URL, value: 'http://$(HOST)'}], args: ['--url=$(URL)', $$(HOSTS), '$(date) $(hostname)', $(OTHER)]"), ""},
		"a variable below":        {with("env: [{name: URL, value: 'http://$(HOST)'}, {name: HOST, value: a}]"), `spec.template.spec.containers[0].env[0].value: "http://$(HOST)": $(HOST) is not expanded, since the variable is defined below; define it before`},
		"a variable of itself":    {with("env: [{name: URL, value: '$(URL)/a'}]"), "$(URL) is not expanded: a variable has no value before it is defined"},
		"a variable of others":    {with("envFrom: [{configMapRef: {name: m}}], env: [{name: URL, value: 'http://$(HOST)'}, {name: HOST, value: a}]"), ""},
		"a variable of a Service": {with("env: [{name: URL, value: 'http://$(WEB_SERVICE_HOST)'}, {name: WEB_SERVICE_HOSTS, value: a}]"), ""},
		"a variable misspelt":     {with("env: [{name: POD_NAME, value: a}], args: [--a, '--name=$(POD_NMAE)']"), `spec.template.spec.containers[0].args[1]: "--name=$(POD_NMAE)": $(POD_NMAE) is not expanded: no variable has this name; did you mean $(POD_NAME)?`},
		"escaped":                 {with("env: [{name: POD_NAME, value: a}], command: [a, '--name=$$(POD_NMAE)']"), ""},
		"escaped and not":         {with("env: [{name: POD_NAME, value: a}], command: [a, '--name=$$$(POD_NMAE)']"), "command[1]"},

		"taints":                  {pod("tolerations: [{key: node.kubernetes.io/not-ready, operator: Exists}, {key: example.org/x, operator: Exists}, {operator: Exists}], " + container), ""},
		"no such taint":           {pod("tolerations: [{key: node.kubernetes.io/notready, operator: Exists}], " + container), `spec.template.spec.tolerations[0].key: "node.kubernetes.io/notready": no node has this taint; did you mean "node.kubernetes.io/not-ready"?`},
		"a taint nobody knows":    {"{apiVersion: v1, kind: Node, metadata: {name: a}, spec: {taints: [{key: node-role.kubernetes.io/control-plain, effect: NoSchedule}]}}", `spec.taints[0].key: no pod tolerates the taint "node-role.kubernetes.io/control-plain"; did you mean "node-role.kubernetes.io/control-plane"?`},
		"a preferred processor":   {pod("affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, preference: {matchExpressions: [{key: kubernetes.io/arch, operator: In, values: [amd46]}]}}]}}, " + container), `preferredDuringSchedulingIgnoredDuringExecution[0].preference.matchExpressions[0].values[0]: "amd46": no node has this value`},
		"the same nodes":          {selects("kubernetes.io/arch: arm64", "{matchExpressions: [{key: kubernetes.io/arch, operator: In, values: [amd64, arm64]}]}"), ""},
		"other nodes":             {selects("kubernetes.io/arch: arm64", "{matchExpressions: [{key: kubernetes.io/arch, operator: In, values: [amd64]}]}"), `nodeSelectorTerms[0].matchExpressions[0]: "kubernetes.io/arch": no node matches both this and kubernetes.io/arch=arm64 of nodeSelector`},
		"others, or the same":     {selects("x: w", "{matchExpressions: [{key: x, operator: In, values: [z]}]}, {matchExpressions: [{key: x, operator: In, values: [w]}]}"), ""},
		"nodes without the label": {selects("x: w", "{matchExpressions: [{key: x, operator: DoesNotExist}]}"), "no node matches both this"},

		"amounts of a scaler":   {"{apiVersion: autoscaling.k8s.io/v1, kind: VerticalPodAutoscaler, metadata: {name: a, namespace: b}, spec: {resourcePolicy: {containerPolicies: [{containerName: a, minAllowed: {memory: 10Mi, cpu: 10m}}]}}}", ""},
		"memory in thousandths": {"{apiVersion: autoscaling.k8s.io/v1, kind: VerticalPodAutoscaler, metadata: {name: a, namespace: b}, spec: {resourcePolicy: {containerPolicies: [{containerName: a, minAllowed: {memory: 100m}}]}}}", "spec.resourcePolicy.containerPolicies[0].minAllowed[memory]: 100m is 0.100 bytes"},
		"a quota":               {"{apiVersion: v1, kind: ResourceQuota, metadata: {name: a, namespace: b}, spec: {hard: {requests.memory: 10, requests.cpu: 10, pods: 10}}}", "spec.hard[requests.memory]: 10 is 10 bytes"},
		"no memory at all":      {"{apiVersion: v1, kind: ResourceQuota, metadata: {name: a, namespace: b}, spec: {hard: {requests.memory: 0, requests.cpu: 100m}}}", ""},
	})
}

func TestExpandedVariables(t *testing.T) {
	for text, want := range map[string][]string{
		"$(AB)$(CD)": {"AB", "CD"}, "$$(AB)": nil, "$$$(AB)": {"AB"}, "$(AB": nil, "$": nil, "$(ab)": nil, "$(AB CD)": nil, "a$(AB)b": {"AB"}, "${AB}": nil, "$$": nil,
	} {
		assert.Equal(t, want, expandedVariables(text), text)
	}
}
