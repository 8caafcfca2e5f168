// SPDX-License-Identifier: Apache-2.0

package health_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pergola-dev/pergola/health"
)

// judgedAt is the time of the judgement.
var judgedAt = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// availableDeployment is a Deployment of the app `web`, available since some time before noon.
func availableDeployment(available time.Duration, progressing string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "web", "namespace": "garden", "generation": int64(1)},
		"spec": map[string]any{"replicas": int64(1), "selector": map[string]any{"matchLabels": map[string]any{"app": "web"}}},
		"status": map[string]any{"observedGeneration": int64(1), "conditions": []any{
			map[string]any{"type": "Available", "status": "True", "lastTransitionTime": judgedAt.Add(-available).Format(time.RFC3339)},
			map[string]any{"type": "Progressing", "status": "True", "reason": progressing},
		}},
	}}
}

// restartedPodStatus is a pod whose container ran for some time, ended, and restarted some time
// before noon.
func restartedPodStatus(times int, ran, since time.Duration) string {
	started := judgedAt.Add(-since)
	return fmt.Sprintf(`{phase: Running, conditions: [{type: Ready, status: "True"}], containerStatuses: [{name: c, ready: true, restartCount: %d, image: i, imageID: i,
  state: {running: {startedAt: %q}}, lastState: {terminated: {exitCode: 1, reason: Error, startedAt: %q, finishedAt: %q}}}]}`,
		times, started.Format(time.RFC3339), started.Add(-ran-time.Second).Format(time.RFC3339), started.Add(-time.Second).Format(time.RFC3339))
}

func TestCrashingDeploymentIsUnhealthy(t *testing.T) {
	waits := `{phase: Running, conditions: [{type: Ready, status: "False"}], containerStatuses: [{name: c, ready: false, restartCount: %d, image: i, imageID: i,
  state: {waiting: {reason: CrashLoopBackOff}}, lastState: {terminated: {exitCode: 1, reason: Error}}}]}`
	crashes := `pod "a": container "c" runs, but keeps crashing: 3 restart(s), last Error (exit code 1)`
	for name, c := range map[string]struct {
		pods []string
		want string
	}{
		"never restarted":                {[]string{`{phase: Running, containerStatuses: [{name: c, ready: true, restartCount: 0, image: i, imageID: i, state: {running: {}}}]}`}, ""},
		"once":                           {[]string{restartedPodStatus(1, 20*time.Second, time.Second)}, ""},
		"runs shorter than before":       {[]string{restartedPodStatus(3, 20*time.Second, 5*time.Second)}, crashes},
		"runs not yet twice as long":     {[]string{restartedPodStatus(3, 20*time.Second, 39*time.Second)}, crashes},
		"runs twice as long":             {[]string{restartedPodStatus(3, 20*time.Second, 40*time.Second)}, ""},
		"ended after days, and runs":     {[]string{restartedPodStatus(3, 72*time.Hour, time.Minute)}, ""},
		"ran for nine minutes each time": {[]string{restartedPodStatus(3, 9*time.Minute, 9*time.Minute+59*time.Second)}, crashes},
		"the kubelet has forgotten it":   {[]string{restartedPodStatus(3, 9*time.Minute, 10*time.Minute)}, ""},
		"a sidecar": {[]string{`{phase: Running, conditions: [{type: Ready, status: "True"}], initContainerStatuses: [{name: s, ready: false, restartCount: 9, image: i, imageID: i,
  state: {waiting: {reason: CrashLoopBackOff}}, lastState: {terminated: {exitCode: 1, reason: Error}}}]}`}, `a container keeps crashing; pod "a": container "s": CrashLoopBackOff after 9 restart(s), last Error (exit code 1)`},
		"waits to be started again":     {[]string{fmt.Sprintf(waits, 2)}, `a container keeps crashing; pod "a": container "c": CrashLoopBackOff after 2 restart(s), last Error (exit code 1)`},
		"waits to be started once more": {[]string{fmt.Sprintf(waits, 1)}, ""},
		"has just ended": {[]string{`{phase: Running, containerStatuses: [{name: c, ready: false, restartCount: 2, image: i, imageID: i,
  state: {terminated: {exitCode: 1, reason: Error}}, lastState: {terminated: {exitCode: 1, reason: Error}}}]}`}, `a container keeps crashing; pod "a": container "c": Error (exit code 1)`},
		"a new one crashes, an old one runs": {[]string{`{phase: Running}`, restartedPodStatus(3, time.Minute, time.Second)}, `pod "b": container "c" runs, but keeps crashing: 3 restart(s), last Error (exit code 1)`},
	} {
		t.Run(name, func(t *testing.T) {
			pods := []corev1.Pod{}
			for i, status := range c.pods {
				pods = append(pods, webPod(t, string(rune('a'+i)), status))
			}
			v := health.Check(availableDeployment(time.Minute, "NewReplicaSetAvailable"), health.WithPods(pods), health.WithTime(judgedAt))
			assert.Equal(t, c.want == "", v.Healthy, v.Message)
			if c.want != "" {
				assert.Equal(t, health.ReasonCrashing, v.Reason)
				assert.Equal(t, c.want, v.Message)
			}
			assert.True(t, health.Check(availableDeployment(time.Minute, "NewReplicaSetAvailable"), health.WithPods(pods)).Healthy, "nobody knows what time it is")
		})
	}
	going := webPod(t, "a", restartedPodStatus(3, 20*time.Second, time.Second))
	going.DeletionTimestamp = &going.CreationTimestamp
	assert.True(t, health.Check(availableDeployment(time.Minute, "NewReplicaSetAvailable"), health.WithPods([]corev1.Pod{going}), health.WithTime(judgedAt)).Healthy, "it goes")
}

func TestCanBeCrashing(t *testing.T) {
	assert.True(t, health.CanBeCrashing(availableDeployment(9*time.Minute, "NewReplicaSetAvailable"), judgedAt), "available again a while ago")
	assert.False(t, health.CanBeCrashing(availableDeployment(11*time.Minute, "NewReplicaSetAvailable"), judgedAt), "for long")
	assert.True(t, health.CanBeCrashing(availableDeployment(time.Hour, "ReplicaSetUpdated"), judgedAt), "rolling: the former revision serves")
	short := availableDeployment(time.Hour, "NewReplicaSetAvailable")
	assert.NoError(t, unstructured.SetNestedField(short.Object, int64(1), "status", "unavailableReplicas"))
	assert.True(t, health.CanBeCrashing(short, judgedAt), "enough others serve")
	set := availableDeployment(time.Minute, "NewReplicaSetAvailable")
	set.SetKind("StatefulSet")
	assert.False(t, health.CanBeCrashing(set, judgedAt), "its readiness probes tell")
}
