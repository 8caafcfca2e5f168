// SPDX-License-Identifier: Apache-2.0

package health_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/pergola-dev/pergola/health"
)

// webPod makes a pod of the app `web` with a decoded status.
func webPod(t *testing.T, name, status string) corev1.Pod {
	t.Helper()
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: name, Labels: map[string]string{"app": "web"}}}
	require.NoError(t, yaml.UnmarshalStrict([]byte(status), &pod.Status))
	return pod
}

const (
	readyPod     = `{phase: Running, conditions: [{type: Ready, status: "True"}], containerStatuses: [{name: c, ready: true, restartCount: 3, image: i, imageID: i, lastState: {terminated: {exitCode: 1}}}]}`
	etcdNotReady = `{phase: Running, conditions: [{type: Ready, status: "False", reason: ContainersNotReady, message: "containers with unready status: [c]"}]}`
	imagePull    = `{phase: Pending, containerStatuses: [{name: c, ready: false, restartCount: 0, image: i, imageID: i, state: {waiting: {reason: ImagePullBackOff, message: 'Back-off pulling image "x:1"'}}}]}`
	crashLoop    = `{phase: Running, conditions: [{type: Ready, status: "False"}], containerStatuses: [{name: c, ready: false, restartCount: 7, image: i, imageID: i, state: {waiting: {reason: CrashLoopBackOff, message: back-off}}, lastState: {terminated: {exitCode: 137, reason: OOMKilled, message: "password=hunter2"}}}]}`
	unschedule   = `{phase: Pending, conditions: [{type: PodScheduled, status: "False", reason: Unschedulable, message: "0/3 nodes are available"}]}`
	evicted      = `{phase: Failed, reason: Evicted, message: "The node was low on resource: memory."}`
	exited       = `{phase: Failed, containerStatuses: [{name: c, ready: false, restartCount: 0, image: i, imageID: i, state: {terminated: {exitCode: 2, reason: Error}}}]}`
	oomOnce      = `{phase: Running, conditions: [{type: Ready, status: "False"}], containerStatuses: [{name: c, ready: false, restartCount: 1, image: i, imageID: i, state: {running: {}}, lastState: {terminated: {exitCode: 137, reason: OOMKilled}}}]}`
	initFails    = `{phase: Pending, initContainerStatuses: [{name: init, ready: false, restartCount: 0, image: i, imageID: i, state: {waiting: {reason: CreateContainerConfigError, message: 'secret "x" not found'}}}], containerStatuses: [{name: c, ready: false, restartCount: 0, image: i, imageID: i, state: {waiting: {reason: PodInitializing}}}]}`
	starting     = `{phase: Pending, containerStatuses: [{name: c, ready: false, restartCount: 0, image: i, imageID: i, state: {waiting: {reason: ContainerCreating}}}]}`
	succeededPod = `{phase: Succeeded, conditions: [{type: Ready, status: "False", reason: PodCompleted}]}`
	completedPod = `{phase: Running, conditions: [{type: Ready, status: "False", reason: PodCompleted}]}`
	bySignal     = `{phase: Failed, containerStatuses: [{name: c, ready: false, restartCount: 0, image: i, imageID: i, state: {terminated: {exitCode: 1, signal: 9}}}]}`
)

func TestPodReason(t *testing.T) {
	for name, c := range map[string]struct {
		statuses        []string
		reason, message string
	}{
		"no pods":             {nil, "", ""},
		"ready":               {[]string{readyPod}, "", ""},
		"succeeded":           {[]string{succeededPod}, "", ""},
		"not ready":           {[]string{etcdNotReady}, "ContainersNotReady", `pod "a": ContainersNotReady: containers with unready status: [c]`},
		"image":               {[]string{imagePull}, "ImagePullBackOff", `pod "a": container "c": ImagePullBackOff: Back-off pulling image "x:1"`},
		"crash loop":          {[]string{crashLoop}, "CrashLoopBackOff", `pod "a": container "c": CrashLoopBackOff after 7 restart(s), last OOMKilled (exit code 137)`},
		"unschedulable":       {[]string{unschedule}, "Unschedulable", `pod "a": Unschedulable: 0/3 nodes are available`},
		"evicted":             {[]string{evicted}, "Evicted", `pod "a": Evicted: The node was low on resource: memory.`},
		"exit code":           {[]string{exited}, "Error", `pod "a": container "c": Error (exit code 2)`},
		"killed and running":  {[]string{oomOnce}, "OOMKilled", `pod "a": container "c": not ready after 1 restart(s), last OOMKilled (exit code 137)`},
		"init container":      {[]string{initFails}, "CreateContainerConfigError", `pod "a": container "init": CreateContainerConfigError: secret "x" not found`},
		"starting":            {[]string{starting}, "Pending", `pod "a": Pending: its containers have not started yet`},
		"the worst is named":  {[]string{readyPod, starting, imagePull, etcdNotReady}, "ImagePullBackOff", `pod "c": container "c": ImagePullBackOff: Back-off pulling image "x:1"`},
		"the first of equals": {[]string{readyPod, imagePull, imagePull}, "ImagePullBackOff", `pod "b": container "c": ImagePullBackOff: Back-off pulling image "x:1"`},
	} {
		t.Run(name, func(t *testing.T) {
			var pods []corev1.Pod
			for i, status := range c.statuses {
				pods = append(pods, webPod(t, string(rune('a'+i)), status))
			}
			reason, message := health.PodReason(pods)
			assert.Equal(t, c.reason, reason)
			assert.Equal(t, c.message, message)
		})
	}
	t.Run("pods on their way out do not count", func(t *testing.T) {
		pod := webPod(t, "a", crashLoop)
		pod.DeletionTimestamp = &metav1.Time{Time: time.Unix(0, 0)}
		reason, _ := health.PodReason([]corev1.Pod{pod})
		assert.Empty(t, reason)
	})
	t.Run("termination messages are left out", func(t *testing.T) {
		_, message := health.PodReason([]corev1.Pod{webPod(t, "a", crashLoop)})
		assert.NotContains(t, message, "hunter2")
	})
}

const deploymentYAML = `
apiVersion: apps/v1
kind: Deployment
metadata: {namespace: garden, name: web, generation: 2}
spec: {replicas: 1, selector: {matchLabels: {app: web}}}
status:
  observedGeneration: 2
  conditions:
  - {type: Available, status: "True"}
  - {type: Progressing, status: "True", reason: NewReplicaSetAvailable}
`

func TestDeploymentWithPods(t *testing.T) {
	obj := object(t, deploymentYAML)
	foreign := webPod(t, "foreign", crashLoop)
	foreign.Labels = nil
	elsewhere := webPod(t, "elsewhere", crashLoop)
	elsewhere.Namespace = "other"
	disrupted := webPod(t, "d", `{phase: Running, conditions: [{type: DisruptionTarget, status: "True"}]}`)
	for name, c := range map[string]struct {
		pods        []corev1.Pod
		progressing bool
		message     string
	}{
		"one pod":                     {[]corev1.Pod{webPod(t, "a", readyPod), foreign, elsewhere}, false, "Replicas: 0/1"},
		"an old pod is still there":   {[]corev1.Pod{webPod(t, "a", readyPod), webPod(t, "b", readyPod)}, true, "2 pods exist, expected 1"},
		"a new pod fails":             {[]corev1.Pod{webPod(t, "a", readyPod), webPod(t, "b", imagePull)}, true, "ImagePullBackOff"},
		"ended pods do not count":     {[]corev1.Pod{webPod(t, "a", readyPod), webPod(t, "b", succeededPod), webPod(t, "c", bySignal)}, false, ""},
		"evicted pods do not count":   {[]corev1.Pod{webPod(t, "a", readyPod), webPod(t, "b", evicted)}, false, ""},
		"disrupted pods do not count": {[]corev1.Pod{webPod(t, "a", readyPod), disrupted}, false, ""},
		"completed pods don't count":  {[]corev1.Pod{webPod(t, "a", readyPod), webPod(t, "b", completedPod)}, false, ""},
		"no pods at all":              {nil, true, "0 pods exist, expected 1"},
	} {
		t.Run(name, func(t *testing.T) {
			v := health.Check(obj, health.WithPods(c.pods))
			assert.True(t, v.Healthy)
			assert.Equal(t, c.progressing, v.Progressing, v.Message)
			assert.Contains(t, v.Message, c.message)
		})
	}
	assert.False(t, health.Check(obj).Progressing, "without pods the conditions decide")
}

func TestUnhealthyDeploymentNamesThePod(t *testing.T) {
	obj := object(t, `
apiVersion: apps/v1
kind: Deployment
metadata: {namespace: garden, name: web}
spec: {replicas: 1, selector: {matchExpressions: [{key: app, operator: In, values: [web]}]}}
status: {conditions: [{type: Available, status: "False", reason: MinimumReplicasUnavailable, message: none}]}
`)
	v := health.Check(obj, health.WithPods([]corev1.Pod{webPod(t, "a", crashLoop)}))
	assert.False(t, v.Healthy)
	assert.Equal(t, "DeploymentUnhealthy", v.Reason)
	assert.Contains(t, v.Message, "MinimumReplicasUnavailable: none")
	assert.Contains(t, v.Message, "CrashLoopBackOff after 7 restart(s)")
}
