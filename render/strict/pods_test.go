// SPDX-License-Identifier: Apache-2.0

package strict

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestPods: settings of pods that API servers accept, but nodes do not run as written, are found.
func TestPods(t *testing.T) {
	for name, tt := range map[string]struct{ pod, want string }{
		"as it should be":            {"securityContext: {runAsNonRoot: true, runAsUser: 65532}, volumes: [{name: v, emptyDir: {medium: Memory}}], containers: [{name: c, image: i, securityContext: {capabilities: {drop: [ALL], add: [NET_BIND_SERVICE]}}, resources: {requests: {memory: 10Mi, cpu: 100m}}}]", ""},
		"milli bytes":                {"containers: [{name: c, image: i, resources: {requests: {memory: 800m}}}]", `spec.template.spec.containers[0].resources.requests[memory]: fractional byte value "800m" is invalid, must be an integer`},
		"a limit in milli bytes":     {"initContainers: [{name: d, image: i, resources: {limits: {memory: 1500m}}}], containers: [{name: c, image: i}]", `spec.template.spec.initContainers[0].resources.limits[memory]: fractional byte value`},
		"a variable twice":           {"containers: [{name: c, image: i, env: [{name: A, value: a}, {name: A, value: b}]}]", `env[1]`},
		"a port twice":               {"containers: [{name: c, image: i, ports: [{containerPort: 1}, {name: b, containerPort: 1}]}]", `spec.template.spec.containers[0].ports[1]: is already used`},
		"nothing is selected":        {"containers: [{name: c, image: i}], topologySpreadConstraints: [{maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: DoNotSchedule}]", "a null labelSelector results in matching no pod"},
		"a medium":                   {"volumes: [{name: v, emptyDir: {medium: memory}}], containers: [{name: c, image: i}]", `spec.template.spec.volumes[0].emptyDir.medium: "memory" is not supported`},
		"huge pages":                 {"volumes: [{name: v, emptyDir: {medium: HugePages-2Mi}}], containers: [{name: c, image: i, resources: {limits: {hugepages-2Mi: 2Mi, cpu: 1}}}]", ""},
		"root, but not root":         {"containers: [{name: c, image: i, securityContext: {runAsNonRoot: true, runAsUser: 0}}]", "spec.template.spec.containers[0].securityContext.runAsUser: 0: is root, and runAsNonRoot forbids it: container c does not start"},
		"root by the pod":            {"securityContext: {runAsUser: 0}, containers: [{name: c, image: i, securityContext: {runAsNonRoot: true}}]", "spec.template.spec.securityContext.runAsUser"},
		"a different user than root": {"securityContext: {runAsNonRoot: true, runAsUser: 0}, containers: [{name: c, image: i, securityContext: {runAsUser: 1}}]", ""},
		"one may be root":            {"securityContext: {runAsNonRoot: true}, containers: [{name: c, image: i, securityContext: {runAsNonRoot: false, runAsUser: 0}}]", ""},
		"CAP_":                       {"containers: [{name: c, image: i, securityContext: {capabilities: {add: [CAP_NET_ADMIN]}}}]", `capabilities.add[0]: "CAP_NET_ADMIN": write "NET_ADMIN": container runtimes put CAP_ before it`},
		"a misspelt capability":      {"containers: [{name: c, image: i, securityContext: {capabilities: {drop: [NET_ADMN]}}}]", `capabilities.drop[0]: "NET_ADMN": did you mean "NET_ADMIN"?`},
		"small letters":              {"containers: [{name: c, image: i, securityContext: {capabilities: {drop: [all]}}}]", ""},
		"a path in two sources":      {"volumes: [{name: v, configMap: {name: a, items: [{key: a, path: p}, {key: b, path: p}]}}], containers: [{name: c, image: i}]", `spec.template.spec.volumes`},
		"a suffix of cores":          {"containers: [{name: c, image: i, resources: {requests: {cpu: 500M}}}]", `spec.template.spec.containers[0].resources.requests[cpu]: "500M": is 500000000 cores, more than machines have`},
		"no unit of memory":          {"containers: [{name: c, image: i, resources: {limits: {memory: 512}}}]", `containers[0].resources.limits[memory]: "512": is 512 bytes; write a unit, such as Mi or Gi`},
		"nodes":                      {"nodeSelector: {kubernetes.io/os: linux, topology.kubernetes.io/zone: a, example.org/zones: b}, containers: [{name: c, image: i}]", ""},
		"no such system":             {"nodeSelector: {kubernetes.io/os: linx}, containers: [{name: c, image: i}]", `spec.template.spec.nodeSelector[kubernetes.io/os]: "linx": no node has this value of kubernetes.io/os; did you mean "linux"?`},
		"no such label":              {"nodeSelector: {kubernetes.io/oss: linux}, containers: [{name: c, image: i}]", `spec.template.spec.nodeSelector[kubernetes.io/oss]: "kubernetes.io/oss": no node has this label; did you mean "kubernetes.io/os"?`},
		"a processor":                {"affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/arch, operator: In, values: [amd64, arm46]}]}]}}}, containers: [{name: c, image: i}]", `nodeSelectorTerms[0].matchExpressions[0].values[1]: "arm46": no node has this value`},
		"a zone of an affinity":      {"affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: topology.kubernetes.io/zonee, labelSelector: {matchLabels: {a: b}}}]}}, containers: [{name: c, image: i}]", `podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey: "topology.kubernetes.io/zonee"`},
		"spread":                     {"containers: [{name: c, image: i}], topologySpreadConstraints: [{maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {a: b}}}]", ""},
		"others are counted":         {"containers: [{name: c, image: i}], topologySpreadConstraints: [{maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {a: c}}}]", `topologySpreadConstraints[0].labelSelector.matchLabels[a]: "c": the pods themselves have "b": other pods are counted, and these are not spread`},
		"a deprecated annotation":    {"nodeSelector: {beta.kubernetes.io/os: linux}, containers: [{name: c, image: i}]", ""},
	} {
		t.Run(name, func(t *testing.T) {
			object := "{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, namespace: b}, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {" + tt.pod + "}}}}"
			got := checkText(t, kubernetesKind(t, object), object, 36)
			if tt.want == "" {
				assert.Empty(t, got)
				return
			}
			assert.Contains(t, got, tt.want)
		})
	}
}
