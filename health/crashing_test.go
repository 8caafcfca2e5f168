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

// noon is the time of the judgement.
var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// deploymentSince is a Deployment of the app `web`, available since some time before noon.
func deploymentSince(available time.Duration, progressing string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "web", "namespace": "garden", "generation": int64(1)},
		"spec": map[string]any{"replicas": int64(1), "selector": map[string]any{"matchLabels": map[string]any{"app": "web"}}},
		"status": map[string]any{"observedGeneration": int64(1), "conditions": []any{
			map[string]any{"type": "Available", "status": "True", "lastTransitionTime": noon.Add(-available).Format(time.RFC3339)},
			map[string]any{"type": "Progressing", "status": "True", "reason": progressing},
		}},
	}}
}

// restarted is a pod whose container ran for some time, ended, and restarted some time before noon.
func restarted(times int, ran, since time.Duration) string {
	started := noon.Add(-since)
	return fmt.Sprintf(`{phase: Running, conditions: [{type: Ready, status: "True"}], containerStatuses: [{name: c, ready: true, restartCount: %d, image: i, imageID: i,
  state: {running: {startedAt: %q}}, lastState: {terminated: {exitCode: 1, reason: Error, startedAt: %q, finishedAt: %q}}}]}`,
		times, started.Format(time.RFC3339), started.Add(-ran-time.Second).Format(time.RFC3339), started.Add(-time.Second).Format(time.RFC3339))
}

func TestADeploymentThatCrashesBetweenIsNotHealthy(t *testing.T) {
	waits := `{phase: Running, conditions: [{type: Ready, status: "False"}], containerStatuses: [{name: c, ready: false, restartCount: %d, image: i, imageID: i,
  state: {waiting: {reason: CrashLoopBackOff}}, lastState: {terminated: {exitCode: 1, reason: Error}}}]}`
	crashes := `pod "a": container "c" runs, but ends again and again: 3 restart(s), last Error (exit code 1)`
	for name, c := range map[string]struct {
		pods []string
		want string
	}{
		"never restarted":                {[]string{`{phase: Running, containerStatuses: [{name: c, ready: true, restartCount: 0, image: i, imageID: i, state: {running: {}}}]}`}, ""},
		"once":                           {[]string{restarted(1, 20*time.Second, time.Second)}, ""},
		"runs shorter than before":       {[]string{restarted(3, 20*time.Second, 5*time.Second)}, crashes},
		"runs not yet twice as long":     {[]string{restarted(3, 20*time.Second, 39*time.Second)}, crashes},
		"runs twice as long":             {[]string{restarted(3, 20*time.Second, 40*time.Second)}, ""},
		"ended after days, and runs":     {[]string{restarted(3, 72*time.Hour, time.Minute)}, ""},
		"ran for nine minutes each time": {[]string{restarted(3, 9*time.Minute, 9*time.Minute+59*time.Second)}, crashes},
		"the kubelet has forgotten it":   {[]string{restarted(3, 9*time.Minute, 10*time.Minute)}, ""},
		"a sidecar": {[]string{`{phase: Running, conditions: [{type: Ready, status: "True"}], initContainerStatuses: [{name: s, ready: false, restartCount: 9, image: i, imageID: i,
  state: {waiting: {reason: CrashLoopBackOff}}, lastState: {terminated: {exitCode: 1, reason: Error}}}]}`}, `a container ends again and again; pod "a": container "s": CrashLoopBackOff after 9 restart(s), last Error (exit code 1)`},
		"waits to be started again":     {[]string{fmt.Sprintf(waits, 2)}, `a container ends again and again; pod "a": container "c": CrashLoopBackOff after 2 restart(s), last Error (exit code 1)`},
		"waits to be started once more": {[]string{fmt.Sprintf(waits, 1)}, ""},
		"has just ended": {[]string{`{phase: Running, containerStatuses: [{name: c, ready: false, restartCount: 2, image: i, imageID: i,
  state: {terminated: {exitCode: 1, reason: Error}}, lastState: {terminated: {exitCode: 1, reason: Error}}}]}`}, `a container ends again and again; pod "a": container "c": Error (exit code 1)`},
		"a new one crashes, an old one runs": {[]string{`{phase: Running}`, restarted(3, time.Minute, time.Second)}, `pod "b": container "c" runs, but ends again and again: 3 restart(s), last Error (exit code 1)`},
	} {
		t.Run(name, func(t *testing.T) {
			pods := []corev1.Pod{}
			for i, status := range c.pods {
				pods = append(pods, podNamed(t, string(rune('a'+i)), status))
			}
			v := health.Check(deploymentSince(time.Minute, "NewReplicaSetAvailable"), health.WithPods(pods), health.At(noon))
			assert.Equal(t, c.want == "", v.Healthy, v.Message)
			if c.want != "" {
				assert.Equal(t, health.ReasonCrashing, v.Reason)
				assert.Equal(t, c.want, v.Message)
			}
			assert.True(t, health.Check(deploymentSince(time.Minute, "NewReplicaSetAvailable"), health.WithPods(pods)).Healthy, "nobody knows what time it is")
		})
	}
	going := podNamed(t, "a", restarted(3, 20*time.Second, time.Second))
	going.DeletionTimestamp = &going.CreationTimestamp
	assert.True(t, health.Check(deploymentSince(time.Minute, "NewReplicaSetAvailable"), health.WithPods([]corev1.Pod{going}), health.At(noon)).Healthy, "it goes")
}

func TestWhosePodsAreWorthALook(t *testing.T) {
	assert.True(t, health.MayBeCrashing(deploymentSince(9*time.Minute, "NewReplicaSetAvailable"), noon), "available again a while ago")
	assert.False(t, health.MayBeCrashing(deploymentSince(11*time.Minute, "NewReplicaSetAvailable"), noon), "for long")
	assert.True(t, health.MayBeCrashing(deploymentSince(time.Hour, "ReplicaSetUpdated"), noon), "rolling: the former revision serves")
	short := deploymentSince(time.Hour, "NewReplicaSetAvailable")
	assert.NoError(t, unstructured.SetNestedField(short.Object, int64(1), "status", "unavailableReplicas"))
	assert.True(t, health.MayBeCrashing(short, noon), "enough others serve")
	set := deploymentSince(time.Minute, "NewReplicaSetAvailable")
	set.SetKind("StatefulSet")
	assert.False(t, health.MayBeCrashing(set, noon), "its readiness probes tell")
}
