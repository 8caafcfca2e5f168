package plan

import "strings"

// standards are defaults of Kubernetes' own APIs, by the last two keys of the field: to a reviewer a field that is not there
// is the same as its default. What an API server decides by other fields is in derived. Not here are replicas: where they are not
// declared somebody else sets them.
var standards = map[string]any{
	"ports.protocol": "TCP", "env.value": "",
	"spec.restartPolicy": "Always", "spec.dnsPolicy": "ClusterFirst", "spec.schedulerName": "default-scheduler",
	"spec.terminationGracePeriodSeconds": int64(30), "spec.enableServiceLinks": true,
	"spec.hostNetwork": false, "spec.hostPID": false, "spec.hostIPC": false,
	"containers.terminationMessagePath": "/dev/termination-log", "containers.terminationMessagePolicy": "File",
	"initContainers.terminationMessagePath": "/dev/termination-log", "initContainers.terminationMessagePolicy": "File",
	"volumeMounts.readOnly": false, "configMap.optional": false, "secret.optional": false,
	"configMap.defaultMode": int64(420), "secret.defaultMode": int64(420), "projected.defaultMode": int64(420),
	"downwardAPI.defaultMode": int64(420), "fieldRef.apiVersion": "v1", "serviceAccountToken.expirationSeconds": int64(3600),
	"httpGet.scheme": "HTTP", "grpc.service": "",
	"spec.revisionHistoryLimit": int64(10), "spec.progressDeadlineSeconds": int64(600), "spec.minReadySeconds": int64(0),
	"spec.podManagementPolicy": "OrderedReady", "spec.paused": false,
	"spec.sessionAffinity": "None", "spec.internalTrafficPolicy": "Cluster", "spec.externalTrafficPolicy": "Cluster",
	"spec.allocateLoadBalancerNodePorts": true, "spec.publishNotReadyAddresses": false,
	"spec.concurrencyPolicy": "Allow", "spec.suspend": false, "spec.successfulJobsHistoryLimit": int64(3), "spec.failedJobsHistoryLimit": int64(1),
	"spec.completionMode": "NonIndexed", "spec.backoffLimit": int64(6),
	"webhooks.failurePolicy": "Fail", "webhooks.matchPolicy": "Equivalent", "webhooks.timeoutSeconds": int64(10),
	"webhooks.reinvocationPolicy": "Never", "rules.scope": "*", "service.port": int64(443),
	"conversion.strategy":             "None",
	"spec.unhealthyPodEvictionPolicy": "IfHealthyBudget", "spec.volumeMode": "Filesystem",
}

// probes are the defaults of all three kinds of probes.
var probes = map[string]any{"timeoutSeconds": int64(1), "periodSeconds": int64(10), "successThreshold": int64(1), "failureThreshold": int64(3),
	"initialDelaySeconds": int64(0)}

// topStandards are those of single kinds, by kind and path.
var topStandards = map[string]any{
	"Secret.type": "Opaque", "Service.spec.type": "ClusterIP", "StorageClass.volumeBindingMode": "Immediate",
	"StorageClass.reclaimPolicy": "Delete", "PriorityClass.globalDefault": false, "PriorityClass.preemptionPolicy": "PreemptLowerPriority",
	"CustomResourceDefinition.spec.preserveUnknownFields": false, "ServiceAccount.automountServiceAccountToken": true,
}

// isStandard is true where an object leaves a field to the API server, and v is what that would set.
func (l location) isStandard(object map[string]any, key string, v any) bool {
	if v == nil || object == nil || object[key] != nil {
		return false
	}
	if want, known := l.derived(object); known {
		return same(want, v)
	}
	if want, known := l.standard(); known {
		return l.sameScalar(v, want)
	}
	return l.builtin && l.last() == "creationTimestamp"
}

// derived is what the API server sets from other fields of the same object or list item.
func (l location) derived(object map[string]any) (any, bool) {
	if l.kind == "CustomResourceDefinition" {
		kind, _ := object["kind"].(string)
		switch strings.Join(l.keys, ".") {
		case "spec.names.listKind":
			return kind + "List", true
		case "spec.names.singular":
			return strings.ToLower(kind), true
		case "spec.conversion":
			return map[string]any{"strategy": "None"}, true
		}
		return nil, false
	}
	if !l.builtin {
		return nil, false
	}
	switch path := strings.Join(l.keys, "."); {
	case l.last() == "serviceAccount" && object["serviceAccountName"] != nil:
		return object["serviceAccountName"], true
	case path == "spec.ports.targetPort" && l.kind == "Service":
		return object["port"], true
	case l.last() == "imagePullPolicy":
		image, _ := object["image"].(string)
		return pullPolicy(image), true
	case path == "spec.strategy" && l.kind == "Deployment":
		return map[string]any{"type": "RollingUpdate", "rollingUpdate": map[string]any{"maxSurge": "25%", "maxUnavailable": "25%"}}, true
	case path == "spec.updateStrategy" && l.kind == "DaemonSet":
		return map[string]any{"type": "RollingUpdate", "rollingUpdate": map[string]any{"maxSurge": int64(0), "maxUnavailable": int64(1)}}, true
	case path == "spec.updateStrategy" && l.kind == "StatefulSet":
		return map[string]any{"type": "RollingUpdate", "rollingUpdate": map[string]any{"partition": int64(0)}}, true
	case path == "webhooks.namespaceSelector", path == "webhooks.objectSelector":
		return map[string]any{}, true
	}
	return nil, false
}

// pullPolicy is that of a container that has none.
func pullPolicy(image string) string {
	name := image[strings.LastIndex(image, "/")+1:]
	if _, tag, tagged := strings.Cut(name, ":"); strings.Contains(name, "@") || tagged && tag != "latest" {
		return "IfNotPresent"
	}
	return "Always"
}

// standard is the default of the field here.
func (l location) standard() (any, bool) {
	if len(l.keys) == 0 {
		return nil, false
	}
	if want, ok := topStandards[l.kind+"."+strings.Join(l.keys, ".")]; ok && (l.builtin || l.kind == "CustomResourceDefinition") {
		return want, true
	}
	if len(l.keys) < 2 {
		return nil, false
	}
	parent := l.keys[len(l.keys)-2]
	if !l.builtin {
		return nil, false
	}
	if strings.HasSuffix(parent, "Probe") {
		want, ok := probes[l.last()]
		return want, ok
	}
	want, ok := standards[parent+"."+l.last()]
	return want, ok
}
