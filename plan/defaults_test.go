// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pergola-dev/pergola/change/redact"
)

// assignedFields are fields that the API server assigns or that depend on the cluster: they are not
// defaults.
var assignedFields = map[string][]string{
	"Service":               {"spec.clusterIP", "spec.clusterIPs", "spec.ipFamilies", "spec.ports[0].nodePort", "spec.ports[port=80].nodePort"},
	"DaemonSet":             {"metadata.annotations"},
	"PersistentVolumeClaim": {"metadata.finalizers"},
	"PersistentVolume":      {"metadata.finalizers"},
	"VolumeAttributesClass": {"metadata.finalizers"},
	"Job": {"spec.selector", "spec.template.metadata.labels[batch.kubernetes.io/controller-uid]", "spec.template.metadata.labels.controller-uid",
		"spec.template.metadata.labels[batch.kubernetes.io/job-name]", "spec.template.metadata.labels.job-name"},
	"Pod": {"spec.priority", "spec.preemptionPolicy", "spec.serviceAccount", "spec.serviceAccountName", "spec.tolerations"},
}

// TestDefaultsOfTheServerAreNoDifference checks defaults of minimal objects.
func TestDefaultsOfTheServerAreNoDifference(t *testing.T) {
	s := newServer(t)
	for _, declared := range documents(t, "testdata/declared.yaml") {
		t.Run(declared.GetKind()+" "+declared.GetName(), func(t *testing.T) {
			stored, err := s.dryRun(declared)
			require.NoError(t, err)
			for _, pair := range [][2]map[string]any{{declared.Object, stored.Object}, {stored.Object, declared.Object}} {
				for _, f := range (redact.Masking{}).CompareMeaning(pair[0], pair[1]) {
					assert.Contains(t, assignedFields[declared.GetKind()], f.Path, "%v → %v", f.Old, f.New)
				}
			}
		})
	}
}

// TestTemplateEquality: pod templates that the server treats as equal restart
// nothing, and all other changes do.
func TestTemplateEquality(t *testing.T) {
	s := newServer(t)
	const text = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: %s, namespace: default}, spec: {replicas: 0, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: %s}}}`
	for i, c := range []struct{ one, other string }{
		{"{containers: [{name: a, image: a}]}", "{containers: [{name: a, image: a}], affinity: {}}"},
		{"{containers: [{name: a, image: a}]}", "{containers: [{name: a, image: a}], affinity: {nodeAffinity: {}}}"},
		{"{containers: [{name: a, image: a}]}", "{containers: [{name: a, image: a}], dnsConfig: {}}"},
		{"{containers: [{name: a, image: a}]}", "{containers: [{name: a, image: a}], securityContext: {}}"},
		{"{containers: [{name: a, image: a}]}", "{containers: [{name: a, image: a}], securityContext: {runAsNonRoot: false}}"},
		{"{containers: [{name: a, image: a}]}", "{containers: [{name: a, image: a}], enableServiceLinks: true}"},
		{"{containers: [{name: a, image: a}]}", "{containers: [{name: a, image: a}], automountServiceAccountToken: true}"},
		{"{containers: [{name: a, image: a}]}", "{containers: [{name: a, image: a}], shareProcessNamespace: false}"},
		{"{containers: [{name: a, image: a}]}", "{containers: [{name: a, image: a}], hostNetwork: false, hostPID: false, hostIPC: false}"},
		{"{containers: [{name: a, image: a}]}", "{containers: [{name: a, image: a}], hostUsers: true}"},
		{"{containers: [{name: a, image: a}]}", "{containers: [{name: a, image: a}], nodeSelector: {}, tolerations: [], volumes: [], initContainers: [], imagePullSecrets: [], hostAliases: [], topologySpreadConstraints: [], readinessGates: []}"},
		{"{containers: [{name: a, image: a}]}", "{containers: [{name: a, image: a}], overhead: {}, hostname: '', subdomain: '', priorityClassName: '', nodeName: ''}"},
		{"{containers: [{name: a, image: a}]}", "{containers: [{name: a, image: a}], setHostnameAsFQDN: false}"},
		{"{containers: [{name: a, image: a}]}", "{containers: [{name: a, image: a}], serviceAccountName: default}"},
		{"{containers: [{name: a, image: a}]}", "{containers: [{name: a, image: a, securityContext: {}}]}"},
		{"{containers: [{name: a, image: a}]}", "{containers: [{name: a, image: a, securityContext: {capabilities: {}}}]}"},
		{"{containers: [{name: a, image: a}]}", "{containers: [{name: a, image: a, lifecycle: {}}]}"},
		{"{containers: [{name: a, image: a}]}", "{containers: [{name: a, image: a, stdin: false, tty: false, workingDir: ''}]}"},
		{"{containers: [{name: a, image: a}]}", "{containers: [{name: a, image: a, args: [], command: [], env: [], envFrom: [], ports: [], volumeMounts: [], volumeDevices: []}]}"},
		{"{containers: [{name: a, image: a}]}", "{containers: [{name: a, image: a, resources: {requests: {}, limits: {}}}]}"},
		{"{containers: [{name: a, image: a, resources: {limits: {cpu: 1}}}]}", "{containers: [{name: a, image: a, resources: {limits: {cpu: 1}, requests: {cpu: 1}}}]}"},
		{"{containers: [{name: a, image: a, resources: {limits: {cpu: 500m}}}]}", "{containers: [{name: a, image: a, resources: {limits: {cpu: 0.5}}}]}"},
		{"{containers: [{name: a, image: a, resources: {limits: {memory: 1Gi, ephemeral-storage: 2048Mi}}}]}", "{containers: [{name: a, image: a, resources: {limits: {memory: 1024Mi, ephemeral-storage: 2Gi}}}]}"},
		{"{containers: [{name: a, image: a, resources: {limits: {memory: 1G}}}]}", "{containers: [{name: a, image: a, resources: {limits: {memory: 1Gi}}}]}"},
		{"{containers: [{name: a, image: a, env: [{name: A}]}]}", "{containers: [{name: a, image: a, env: [{name: A, value: ''}]}]}"},
		{"{containers: [{name: a, image: a, env: [{name: A}, {name: B}]}]}", "{containers: [{name: a, image: a, env: [{name: B}, {name: A}]}]}"},
		{"{containers: [{name: a, image: a, env: [{name: A, valueFrom: {secretKeyRef: {name: a, key: b}}}]}]}", "{containers: [{name: a, image: a, env: [{name: A, valueFrom: {secretKeyRef: {name: a, key: b, optional: false}}}]}]}"},
		{"{containers: [{name: a, image: a, env: [{name: A, valueFrom: {resourceFieldRef: {resource: limits.cpu}}}]}]}", "{containers: [{name: a, image: a, env: [{name: A, valueFrom: {resourceFieldRef: {resource: limits.cpu, divisor: '0'}}}]}]}"},
		{"{containers: [{name: a, image: a, ports: [{containerPort: 80}]}]}", "{containers: [{name: a, image: a, ports: [{containerPort: 80, protocol: TCP, hostPort: 0, hostIP: '', name: ''}]}]}"},
		{"{containers: [{name: a, image: a, ports: [{containerPort: 80}, {containerPort: 81}]}]}", "{containers: [{name: a, image: a, ports: [{containerPort: 81}, {containerPort: 80}]}]}"},
		{"{hostNetwork: true, containers: [{name: a, image: a, ports: [{containerPort: 80}]}]}", "{hostNetwork: true, containers: [{name: a, image: a, ports: [{containerPort: 80, hostPort: 80}]}]}"},
		{"{containers: [{name: a, image: a, livenessProbe: {httpGet: {port: 80}}}]}", "{containers: [{name: a, image: a, livenessProbe: {httpGet: {port: 80, path: /, host: '', httpHeaders: []}, initialDelaySeconds: 0, periodSeconds: 10}}]}"},
		{"{containers: [{name: a, image: a, livenessProbe: {httpGet: {port: 80}}}]}", "{containers: [{name: a, image: a, livenessProbe: {httpGet: {port: '80a'}}}]}"},
		{"{containers: [{name: a, image: a, livenessProbe: {httpGet: {port: 80, path: ''}}}]}", "{containers: [{name: a, image: a, livenessProbe: {httpGet: {port: 80, path: /}}}]}"},
		{"{containers: [{name: a, image: a, livenessProbe: {grpc: {port: 80}}}]}", "{containers: [{name: a, image: a, livenessProbe: {grpc: {port: 80, service: ''}, timeoutSeconds: 1, failureThreshold: 3, successThreshold: 1}}]}"},
		{"{containers: [{name: a, image: a, livenessProbe: {exec: {command: [a]}}}]}", "{containers: [{name: a, image: a, livenessProbe: {exec: {command: [a]}, terminationGracePeriodSeconds: 30}}]}"},
		{"{volumes: [{name: v}], containers: [{name: a, image: a}]}", "{volumes: [{name: v, emptyDir: {}}], containers: [{name: a, image: a}]}"},
		{"{volumes: [{name: v, emptyDir: {}}], containers: [{name: a, image: a}]}", "{volumes: [{name: v, emptyDir: {medium: ''}}], containers: [{name: a, image: a}]}"},
		{"{volumes: [{name: v, emptyDir: {sizeLimit: 1Gi}}], containers: [{name: a, image: a}]}", "{volumes: [{name: v, emptyDir: {sizeLimit: 1024Mi}}], containers: [{name: a, image: a}]}"},
		{"{volumes: [{name: v, hostPath: {path: /a}}], containers: [{name: a, image: a}]}", "{volumes: [{name: v, hostPath: {path: /a, type: ''}}], containers: [{name: a, image: a}]}"},
		{"{volumes: [{name: v, secret: {secretName: a}}], containers: [{name: a, image: a}]}", "{volumes: [{name: v, secret: {secretName: a, items: [], defaultMode: 420}}], containers: [{name: a, image: a}]}"},
		{"{volumes: [{name: v, secret: {secretName: a}}], containers: [{name: a, image: a}]}", "{volumes: [{name: v, secret: {secretName: a, optional: false}}], containers: [{name: a, image: a}]}"},
		{"{volumes: [{name: v, configMap: {name: a}}], containers: [{name: a, image: a}]}", "{volumes: [{name: v, configMap: {name: a, optional: false}}], containers: [{name: a, image: a}]}"},
		{"{volumes: [{name: v}], containers: [{name: a, image: a, volumeMounts: [{name: v, mountPath: /a}]}]}", "{volumes: [{name: v}], containers: [{name: a, image: a, volumeMounts: [{name: v, mountPath: /a, readOnly: false, subPath: '', subPathExpr: ''}]}]}"},
		{"{containers: [{name: a, image: 'a:1'}]}", "{containers: [{name: a, image: 'a:1', imagePullPolicy: IfNotPresent, terminationMessagePath: /dev/termination-log}]}"},
		{"{containers: [{name: a, image: 'a:1'}]}", "{containers: [{name: a, image: 'a:1', imagePullPolicy: Always}]}"},
		{"{containers: [{name: a, image: a}], tolerations: [{key: a}, {key: b}]}", "{containers: [{name: a, image: a}], tolerations: [{key: b}, {key: a}]}"},
		{"{containers: [{name: a, image: a}], tolerations: [{key: a, operator: Exists}]}", "{containers: [{name: a, image: a}], tolerations: [{key: a, operator: Exists, value: ''}]}"},
		{"{containers: [{name: a, image: a}], tolerations: [{key: a}]}", "{containers: [{name: a, image: a}], tolerations: [{key: a, operator: Equal}]}"},
		{"{containers: [{name: a, image: a}], runtimeClassName: a}", "{containers: [{name: a, image: a}]}"},
	} {
		t.Run(c.other, func(t *testing.T) {
			one, other := object(t, fmt.Sprintf(text, fmt.Sprint("t", i), c.one)), object(t, fmt.Sprintf(text, fmt.Sprint("t", i), c.other))
			made, err := s.resource(one).Create(s.context(), one, metav1.CreateOptions{FieldManager: "pergola"})
			require.NoError(t, err)
			defer func() { require.NoError(t, s.resource(one).Delete(s.context(), one.GetName(), metav1.DeleteOptions{})) }()
			other.SetResourceVersion(made.GetResourceVersion())
			answer, err := s.resource(other).Update(s.context(), other, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
			require.NoError(t, err)
			fields := redact.Masking{}.CompareMeaning(one.Object, other.Object)
			assert.Equal(t, answer.GetGeneration() != made.GetGeneration(), len(fields) > 0, "%v", fields)
			assert.Equal(t, len(fields) > 0, len(redact.Masking{}.CompareMeaning(other.Object, one.Object)) > 0, "the other way round")
		})
	}
}
