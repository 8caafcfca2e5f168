// SPDX-License-Identifier: Apache-2.0

package health_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/pergola-dev/pergola/health"
)

const (
	unavailable = `{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: garden, name: web}, spec: {selector: {matchLabels: {app: web}}},
		status: {conditions: [{type: Available, status: "False", reason: MinimumReplicasUnavailable, message: none}]}}`
	notEnough = `{apiVersion: apps/v1, kind: StatefulSet, metadata: {namespace: garden, name: web, uid: u1}, spec: {selector: {matchLabels: {app: web}}}}`
	onNode    = `conditions: [{type: PodScheduled, status: "True"}]`
)

func decode[T any](t *testing.T, text string) T {
	t.Helper()
	var out T
	require.NoError(t, yaml.UnmarshalStrict([]byte(text), &out))
	return out
}

// pod makes a pod of the app `web`.
func pod(t *testing.T, name, spec, status string) corev1.Pod {
	t.Helper()
	return decode[corev1.Pod](t, `{metadata: {namespace: garden, name: `+name+`, uid: `+name+`, labels: {app: web}, creationTimestamp: "2026-01-01T00:00:00Z"}, spec: {`+spec+`}, status: {`+status+`}}`)
}

// event makes an event that was seen the given minutes after the pods were made.
func event(t *testing.T, minutes int, about, kind, reason, message string) corev1.Event {
	t.Helper()
	e := corev1.Event{Type: kind, Reason: reason, Message: message}
	e.InvolvedObject.Kind, e.InvolvedObject.Name, _ = strings.Cut(about, "/")
	e.InvolvedObject.Namespace = "garden"
	e.LastTimestamp = metav1.NewTime(time.Date(2026, 1, 1, 0, minutes, 0, 0, time.UTC))
	return e
}

// spec has a container that writes a termination message, and one with its log as fallback.
const spec = `containers: [{name: c, image: "example.org/app:v1", terminationMessagePolicy: File}, {name: log, terminationMessagePolicy: FallbackToLogsOnError}]`

type causeCase struct {
	object  string
	related health.RelatedObjects
	message string
	reason  string
	codes   []string
}

func checkCauses(t *testing.T, cases map[string]causeCase) {
	t.Helper()
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			obj := object(t, c.object)
			cause, ok := health.FindCause(obj, c.related)
			assert.Equal(t, c.reason != "", ok)
			assert.Equal(t, c.message, cause.String())
			assert.Equal(t, c.reason, cause.Reason)

			v := health.Check(obj, health.WithRelatedObjects(c.related))
			assert.False(t, v.Healthy)
			assert.Contains(t, v.Message, c.message)
			assert.Equal(t, c.codes, v.Codes)
			if c.reason != "" {
				require.NotNil(t, v.Cause)
				assert.Equal(t, cause, *v.Cause)
			}
		})
	}
}

func TestCausesInPods(t *testing.T) {
	warn := func(minutes int, about, reason, message string) corev1.Event {
		return event(t, minutes, about, corev1.EventTypeWarning, reason, message)
	}
	checkCauses(t, map[string]causeCase{
		"nothing to see": {unavailable, health.RelatedObjects{Pods: []corev1.Pod{pod(t, "a", spec, `phase: Running`)}}, "", "", nil},
		"image, with its name": {unavailable, health.RelatedObjects{Pods: []corev1.Pod{pod(t, "a", spec, `phase: Pending, containerStatuses: [{name: c, ready: false, restartCount: 0, image: i, imageID: "", state: {waiting: {reason: ErrImagePull}}}]`)}},
			`pod "a": container "c": ErrImagePull (image "example.org/app:v1")`, "ErrImagePull", nil},
		"last words": {unavailable, health.RelatedObjects{Pods: []corev1.Pod{pod(t, "a", spec, `phase: Running, containerStatuses: [{name: c, ready: false, restartCount: 4, image: i, imageID: "", state: {waiting: {reason: CrashLoopBackOff, message: back-off}}, lastState: {terminated: {exitCode: 2, reason: Error, message: "cannot open\n  /config: no such file, password=hunter2"}}}]`)}},
			`pod "a": container "c": CrashLoopBackOff after 4 restart(s), last Error (exit code 2): cannot open /config: no such file, password=[hidden]`, "CrashLoopBackOff", nil},
		"no words out of a log": {unavailable, health.RelatedObjects{Pods: []corev1.Pod{pod(t, "a", spec, `phase: Running, containerStatuses: [{name: log, ready: false, restartCount: 4, image: i, imageID: "", state: {waiting: {reason: CrashLoopBackOff}}, lastState: {terminated: {exitCode: 2, reason: Error, message: "the log"}}}]`)}},
			`pod "a": container "log": CrashLoopBackOff after 4 restart(s), last Error (exit code 2)`, "CrashLoopBackOff", nil},
		"init container fails": {unavailable, health.RelatedObjects{Pods: []corev1.Pod{pod(t, "a", spec, `phase: Pending, initContainerStatuses: [{name: i, ready: false, restartCount: 2, image: i, imageID: "", state: {waiting: {reason: CrashLoopBackOff}}, lastState: {terminated: {exitCode: 1, reason: OOMKilled}}}]`)}},
			`pod "a": container "i": CrashLoopBackOff after 2 restart(s), last OOMKilled (exit code 1)`, "CrashLoopBackOff", nil},
		"init container goes on": {unavailable, health.RelatedObjects{Pods: []corev1.Pod{pod(t, "a", spec, `phase: Pending, `+onNode+`, initContainerStatuses: [{name: i, ready: false, restartCount: 0, image: i, imageID: "", state: {running: {}}}]`)}},
			`pod "a": Initializing: init container "i" has not ended yet`, "Initializing", nil},
		"sidecar is ready": {unavailable, health.RelatedObjects{Pods: []corev1.Pod{pod(t, "a", spec, `phase: Pending, `+onNode+`, initContainerStatuses: [{name: i, ready: true, started: true, restartCount: 0, image: i, imageID: "", state: {running: {}}}]`)}},
			`pod "a": Pending: its containers have not started yet`, "Pending", nil},
		"missing Secret": {unavailable, health.RelatedObjects{Pods: []corev1.Pod{pod(t, "a", spec, `phase: Pending, `+onNode+`, containerStatuses: [{name: c, ready: false, restartCount: 0, image: i, imageID: "", state: {waiting: {reason: ContainerCreating}}}]`)},
			Events: []corev1.Event{
				warn(9, "Pod/a", "FailedMount", "Unable to attach or mount volumes: unmounted volumes=[cert], timed out waiting for the condition"),
				warn(8, "Pod/a", "FailedMount", `MountVolume.SetUp failed for volume "cert" : secret "web-tls" not found`),
				warn(9, "Pod/b", "FailedMount", "another pod")}},
			`pod "a": FailedMount: MountVolume.SetUp failed for volume "cert" : secret "web-tls" not found`, "FailedMount", nil},
		"volume takes too long": {unavailable, health.RelatedObjects{Pods: []corev1.Pod{pod(t, "a", spec, `phase: Pending, `+onNode)},
			Events: []corev1.Event{
				warn(9, "Pod/a", "FailedMount", "Unable to attach or mount volumes: timed out"),
				warn(7, "Pod/a", "FailedAttachVolume", "Multi-Attach error for volume"), warn(6, "Pod/a", "FailedAttachVolume", "older")}},
			`pod "a": FailedAttachVolume: Multi-Attach error for volume`, "FailedAttachVolume", nil},
		"events of Normal do not count": {unavailable, health.RelatedObjects{Pods: []corev1.Pod{pod(t, "a", spec, `phase: Pending, `+onNode)}, Events: []corev1.Event{event(t, 9, "Pod/a", corev1.EventTypeNormal, "FailedMount", "no")}},
			`pod "a": Pending: its containers have not started yet`, "Pending", nil},
		"namesake that is gone": {notEnough, health.RelatedObjects{Pods: []corev1.Pod{pod(t, "web-0", spec, `phase: Pending, `+onNode)}, Events: []corev1.Event{withUID(warn(9, "Pod/web-0", "FailedMount", "no"), "gone")}},
			`pod "web-0": Pending: its containers have not started yet`, "Pending", nil},
		"a container says more than events": {unavailable, health.RelatedObjects{Pods: []corev1.Pod{pod(t, "a", spec, `phase: Pending, `+onNode+`, containerStatuses: [{name: c, ready: false, restartCount: 0, image: i, imageID: "", state: {waiting: {reason: CreateContainerConfigError, message: 'secret "x" not found'}}}]`)},
			Events: []corev1.Event{warn(9, "Pod/a", "FailedMount", `secret "y" not found`)}},
			`pod "a": container "c": CreateContainerConfigError: secret "x" not found`, "CreateContainerConfigError", nil},
		"probe": {unavailable, health.RelatedObjects{Pods: []corev1.Pod{pod(t, "a", spec, `phase: Running, conditions: [{type: Ready, status: "False", reason: ContainersNotReady, message: "containers with unready status: [c]"}]`)},
			Events: []corev1.Event{warn(2, "Pod/a", "Unhealthy", "Liveness probe failed: old"), warn(9, "Pod/a", "Unhealthy", "Readiness probe failed: HTTP probe failed with statuscode: 500")}},
			`pod "a": Unhealthy: Readiness probe failed: HTTP probe failed with statuscode: 500`, "Unhealthy", nil},
	})
}

func TestCreationCauses(t *testing.T) {
	warn := func(minutes int, about, reason, message string) corev1.Event {
		return event(t, minutes, about, corev1.EventTypeWarning, reason, message)
	}
	normal := func(minutes int, about, reason, message string) corev1.Event {
		return event(t, minutes, about, corev1.EventTypeNormal, reason, message)
	}
	replicaSet := func(name, rest string) appsv1.ReplicaSet {
		return decode[appsv1.ReplicaSet](t, `{metadata: {namespace: garden, name: `+name+`, labels: {app: web}}, `+rest+`}`)
	}
	const quota = `pods "web-5d9-x" is forbidden: exceeded quota: small, requested: pods=1, used: pods=4, limited: pods=4`
	failing := replicaSet("web-5d9", `status: {replicas: 0, conditions: [{type: ReplicaFailure, status: "True", reason: FailedCreate, message: '`+quota+`'}]}`)
	old := replicaSet("web-4c8", `spec: {replicas: 0, selector: {}, template: {}}, status: {replicas: 0, conditions: [{type: ReplicaFailure, status: "True", reason: FailedCreate, message: old}]}`)
	claim := decode[corev1.PersistentVolumeClaim](t, `{metadata: {namespace: garden, name: data-web-0}, status: {phase: Pending}}`)
	const mounts = `volumes: [{name: data, persistentVolumeClaim: {claimName: data-web-0}}]`

	checkCauses(t, map[string]causeCase{
		"cannot be scheduled": {unavailable, health.RelatedObjects{Pods: []corev1.Pod{pod(t, "a", spec, `phase: Pending, conditions: [{type: PodScheduled, status: "False", reason: Unschedulable, message: "0/3 nodes are available: 3 Insufficient cpu."}]`)},
			Events: []corev1.Event{warn(9, "Pod/a", "FailedMount", "stale")}},
			`pod "a": Unschedulable: 0/3 nodes are available: 3 Insufficient cpu.`, "Unschedulable", nil},
		"claim": {notEnough, health.RelatedObjects{Pods: []corev1.Pod{pod(t, "web-0", mounts, `phase: Pending, conditions: [{type: PodScheduled, status: "False", reason: Unschedulable, message: "pod has unbound immediate PersistentVolumeClaims"}]`)},
			Claims: []corev1.PersistentVolumeClaim{claim}, Events: []corev1.Event{warn(9, "PersistentVolumeClaim/data-web-0", "ProvisioningFailed", `storageclass.storage.k8s.io "fast" not found`)}},
			`pod "web-0": claim "data-web-0": ProvisioningFailed: storageclass.storage.k8s.io "fast" not found`, "ProvisioningFailed", nil},
		"claim without a class": {notEnough, health.RelatedObjects{Pods: []corev1.Pod{pod(t, "web-0", mounts, `phase: Pending`)},
			Claims: []corev1.PersistentVolumeClaim{claim}, Events: []corev1.Event{normal(9, "PersistentVolumeClaim/data-web-0", "FailedBinding", "no persistent volumes available for this claim and no storage class is set")}},
			`pod "web-0": claim "data-web-0": FailedBinding: no persistent volumes available for this claim and no storage class is set`, "FailedBinding", nil},
		"claim that waits for the pod": {notEnough, health.RelatedObjects{Pods: []corev1.Pod{pod(t, "web-0", mounts, `phase: Pending, conditions: [{type: PodScheduled, status: "False", reason: Unschedulable, message: no node}]`)},
			Claims: []corev1.PersistentVolumeClaim{claim}, Events: []corev1.Event{normal(9, "PersistentVolumeClaim/data-web-0", "WaitForFirstConsumer", "waiting")}},
			`pod "web-0": Unschedulable: no node`, "Unschedulable", nil},
		"quota": {unavailable, health.RelatedObjects{ReplicaSets: []appsv1.ReplicaSet{old, failing}},
			`ReplicaSet "web-5d9": FailedCreate: ` + quota, "FailedCreate", []string{"ERR_INFRA_QUOTA_EXCEEDED"}},
		"not created goes before not running": {unavailable, health.RelatedObjects{ReplicaSets: []appsv1.ReplicaSet{failing}, Pods: []corev1.Pod{pod(t, "a", spec, `phase: Running, containerStatuses: [{name: c, ready: false, restartCount: 4, image: i, imageID: "", state: {waiting: {reason: CrashLoopBackOff}}}]`)}},
			`ReplicaSet "web-5d9": FailedCreate: ` + quota, "FailedCreate", []string{"ERR_INFRA_QUOTA_EXCEEDED"}},
		"webhook": {notEnough, health.RelatedObjects{Events: []corev1.Event{warn(9, "StatefulSet/web", "FailedCreate", `create Pod web-0 in StatefulSet web failed error: admission webhook "check.example.org" denied the request: no`)}},
			`FailedCreate: create Pod web-0 in StatefulSet web failed error: admission webhook "check.example.org" denied the request: no`, "FailedCreate", nil},
		"webhook of long ago": {notEnough, health.RelatedObjects{Pods: []corev1.Pod{pod(t, "web-0", spec, `phase: Running`)}, Events: []corev1.Event{warn(-9, "StatefulSet/web", "FailedCreate", "old")}}, "", "", nil},
		"of an operator's StatefulSet": {`{apiVersion: druid.gardener.cloud/v1alpha1, kind: Etcd, metadata: {namespace: garden, name: web}}`, health.RelatedObjects{Events: []corev1.Event{warn(9, "StatefulSet/web", "FailedCreate", "forbidden")}},
			`FailedCreate: forbidden`, "FailedCreate", nil},
		"load balancer": {`{apiVersion: v1, kind: Service, metadata: {namespace: garden, name: web}, spec: {type: LoadBalancer}}`, health.RelatedObjects{Events: []corev1.Event{
			warn(1, "Service/web", "SyncLoadBalancerFailed", "old"), normal(9, "Service/web", "EnsuringLoadBalancer", "x"), warn(5, "Service/web", "SyncLoadBalancerFailed", "Error syncing load balancer: quota has been met")}},
			`SyncLoadBalancerFailed: Error syncing load balancer: quota has been met`, "SyncLoadBalancerFailed", []string{"ERR_INFRA_QUOTA_EXCEEDED"}},
	})
}

func withUID(e corev1.Event, uid types.UID) corev1.Event {
	e.InvolvedObject.UID = uid
	return e
}

func TestCauseOfSingleObjects(t *testing.T) {
	mounting := event(t, 9, "Pod/x", corev1.EventTypeWarning, "FailedMount", `configmap "c" not found`)
	p := object(t, `{apiVersion: v1, kind: Pod, metadata: {namespace: garden, name: x}, status: {phase: Pending, `+onNode+`}}`)
	v := health.Check(p, health.WithRelatedObjects(health.RelatedObjects{Events: []corev1.Event{mounting}}))
	require.NotNil(t, v.Cause)
	assert.Empty(t, v.Cause.Object, "it is the object itself")
	assert.Contains(t, v.Message, `FailedMount: configmap "c" not found`)
	assert.NotContains(t, v.Message, `pod "x"`)

	claim := object(t, `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {namespace: garden, name: x}, status: {phase: Pending}}`)
	failed := event(t, 9, "PersistentVolumeClaim/x", corev1.EventTypeNormal, "FailedBinding", "no volume")
	around := health.WithRelatedObjects(health.RelatedObjects{Events: []corev1.Event{failed}})
	assert.Equal(t, "the claim is not bound to a volume yet; FailedBinding: no volume", health.Check(claim, health.JudgeAllKinds(), around).Message)
	assert.Nil(t, health.Check(claim, around).Cause, "of what is healthy by existing no cause is sought")
}

func TestEventsV1(t *testing.T) {
	at := func(minutes int) metav1.MicroTime {
		return metav1.NewMicroTime(time.Date(2026, 1, 1, 0, minutes, 0, 0, time.UTC))
	}
	list := []corev1.Event{
		event(t, 5, "Service/web", corev1.EventTypeWarning, "Counted", "a"),
		event(t, 0, "Service/web", corev1.EventTypeWarning, "Once", "b"),
		event(t, 0, "Service/web", corev1.EventTypeWarning, "Series", "c"),
	}
	for i := range list[1:] {
		list[i+1].LastTimestamp = metav1.Time{}
	}
	list[1].EventTime, list[2].EventTime = at(6), at(1)
	list[2].Series = &corev1.EventSeries{Count: 9, LastObservedTime: at(7)}
	service := object(t, `{apiVersion: v1, kind: Service, metadata: {namespace: garden, name: web}, spec: {type: LoadBalancer}}`)
	cause, _ := health.FindCause(service, health.RelatedObjects{Events: list})
	assert.Equal(t, "Series", cause.Reason)
	cause, _ = health.FindCause(service, health.RelatedObjects{Events: list[:2]})
	assert.Equal(t, "Once", cause.Reason)
	assert.Equal(t, "Counted", list[0].Reason, "the input keeps its order")
}

func TestNeededLists(t *testing.T) {
	for text, want := range map[string]health.RelatedLists{
		unavailable: {Pods: true, ReplicaSets: true, Claims: true, Events: true},
		notEnough:   {Pods: true, Claims: true, Events: true},
		`{apiVersion: v1, kind: Pod, metadata: {name: x}}`:                                             {Claims: true, Events: true},
		`{apiVersion: v1, kind: Service, metadata: {name: x}, spec: {selector: {a: b}}}`:               {Events: true},
		`{apiVersion: monitoring.coreos.com/v1, kind: Prometheus, metadata: {name: x}}`:                {Pods: true, Claims: true, Events: true},
		`{apiVersion: v1, kind: ReplicationController, metadata: {name: x}, spec: {selector: {a: b}}}`: {Pods: true, Claims: true, Events: true},
		`{apiVersion: x.io/v1, kind: Deployment, metadata: {name: x}, spec: {selector: {a: b}}}`:       {Events: true},
	} {
		assert.Equal(t, want, health.NeededLists(object(t, text)), text)
	}
	for kind, want := range map[string]string{
		`druid.gardener.cloud/v1alpha1, kind: Etcd`:                 "app.kubernetes.io/managed-by=etcd-druid,app.kubernetes.io/part-of=x",
		`monitoring.coreos.com/v1, kind: Prometheus`:                "app.kubernetes.io/name=prometheus,prometheus=x",
		`monitoring.coreos.com/v1, kind: Alertmanager`:              "alertmanager=x,app.kubernetes.io/name=alertmanager",
		`v1, kind: ReplicationController, spec: {selector: {a: b}}`: "a=b",
	} {
		selector, ok := health.PodSelector(object(t, `{metadata: {name: x}, apiVersion: `+kind+`}`))
		require.True(t, ok, kind)
		assert.Equal(t, want, selector.String())
	}
}

// TestMessagesHideSecrets: messages hide likely secrets, but not names of objects, images and
// numbers.
func TestMessagesHideSecrets(t *testing.T) {
	for text, want := range map[string]string{
		`MountVolume.SetUp failed for volume "cert" : secret "web-tls" not found`: "",
		`failed to fetch token: serviceaccounts "web" not found`:                  "",
		`token: eyabc123 failed`:                       `token: [hidden] failed`,
		`couldn't find key token in Secret garden/web`: "",
		`Back-off pulling image "example.org/app@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"`: "",
		`Readiness probe failed: Get "http://10.0.0.1:8080/healthz": connection refused`:                                   "",
		`exec: /usr/local/bin/gardener-resource-manager-with-a-long-name-v1.2.3: not found`:                                "",
		"dial postgres://admin:hunter2@db:5432/x failed":                                                                   "dial postgres://[hidden]@db:5432/x failed",
		`PASSWORD="hunter2 and more" is wrong`:                                                                             `PASSWORD=[hidden] is wrong`,
		`{"client_secret": "hunter2", "a": 1}`:                                                                             `{"client_secret": [hidden], "a": 1}`,
		"Authorization: Bearer abc.def, next":                                                                              "Authorization: [hidden], next",
		"got header Bearer abcdefgh12345":                                                                                  "got header Bearer [hidden]",
		"api-key=hunter2;next":                                                                                             "api-key=[hidden];next",
		"--token hunter2 --token=hunter2":                                                                                  "--token [hidden] --token=[hidden]",
		"cannot start: DB_PW=hunter2, signingKey: hunter2":                                                                 "cannot start: DB_PW=[hidden], signingKey: [hidden]",
		"--client-key-data hunter2 --compass north":                                                                        "--client-key-data [hidden] --compass north",
		"bypass: yes": "",
		"jwt eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc":                               "jwt [hidden]",
		"key AKIAabcdefghijklmnopqrstuvwxyz0123456789":                               "key [hidden]",
		"-----BEGIN RSA PRIVATE KEY-----\nMIIabc\n-----END RSA PRIVATE KEY----- end": "[hidden] end",
		"-----BEGIN PRIVATE KEY-----\nMIIabc":                                        "[hidden]",
		"two\n  lines\tand \x00 more":                                                "two lines and more",
		strings.Repeat("ä", 200):                                                     strings.Repeat("ä", 150) + "…",
	} {
		if want == "" {
			want = text
		}
		service := object(t, `{apiVersion: v1, kind: Service, metadata: {namespace: garden, name: web}, spec: {type: LoadBalancer}}`)
		cause, ok := health.FindCause(service, health.RelatedObjects{Events: []corev1.Event{event(t, 0, "Service/web", corev1.EventTypeWarning, "R", text)}})
		require.True(t, ok)
		assert.Equal(t, "R: "+want, cause.Message)
	}
}
