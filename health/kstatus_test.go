// SPDX-License-Identifier: Apache-2.0

package health_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/pergola-dev/pergola/health"
)

// TestKStatus has a case for every branch of kubernetes-sigs/cli-utils, since the library in use is
// a fork of it.
func TestKStatus(t *testing.T) {
	for name, c := range map[string]struct{ yaml, want string }{
		"deleted":              {`{apiVersion: v1, kind: ConfigMap, metadata: {name: x, deletionTimestamp: "2026-01-01T00:00:00Z"}}`, "Terminating"},
		"generation":           {manifest("x.io/v1", "Foo", `status: {observedGeneration: 1}`), "InProgress"},
		"generation ahead":     {manifest("x.io/v1", "Foo", `status: {observedGeneration: 3}`), "InProgress"},
		"generation unknown":   {manifest("x.io/v1", "Foo", `status: {}`), "Current"},
		"reconciling":          {manifest("x.io/v1", "Foo", `status: {conditions: [{type: Reconciling, status: "True"}, {type: Ready, status: "True"}]}`), "InProgress"},
		"stalled":              {manifest("x.io/v1", "Foo", `status: {conditions: [{type: Stalled, status: "True"}]}`), "Failed"},
		"not stalled":          {manifest("x.io/v1", "Foo", `status: {conditions: [{type: Stalled, status: "False"}]}`), "Current"},
		"ready":                {manifest("x.io/v1", "Foo", `status: {conditions: [{type: Ready, status: "True"}]}`), "Current"},
		"not ready":            {manifest("x.io/v1", "Foo", `status: {conditions: [{type: Ready, status: "False"}]}`), "InProgress"},
		"ready unknown":        {manifest("x.io/v1", "Foo", `status: {conditions: [{type: Ready, status: Unknown}]}`), "InProgress"},
		"ready odd":            {manifest("x.io/v1", "Foo", `status: {conditions: [{type: Ready, status: Perhaps}]}`), "Current"},
		"conditions odd":       {manifest("x.io/v1", "Foo", `status: {conditions: 7}`), "Unknown"},
		"always ready":         {manifest("v1", "Secret", `status: {conditions: [{type: Ready, status: "False"}]}`), "Current"},
		"claim bound":          {manifest("v1", "PersistentVolumeClaim", `status: {phase: Bound}`), "Current"},
		"claim pending":        {manifest("v1", "PersistentVolumeClaim", `status: {phase: Pending}`), "InProgress"},
		"claim lost":           {manifest("v1", "PersistentVolumeClaim", `status: {phase: Lost}`), "InProgress"},
		"budget":               {manifest("policy/v1", "PodDisruptionBudget", `status: {observedGeneration: 2}`), "Current"},
		"Service":              {manifest("v1", "Service", `spec: {type: LoadBalancer}`), "InProgress"},
		"Service with IP":      {manifest("v1", "Service", `spec: {type: LoadBalancer, clusterIP: 10.0.0.1}`), "Current"},
		"job new":              {manifest("batch/v1", "Job", `spec: {}`), "InProgress"},
		"job running":          {manifest("batch/v1", "Job", `status: {startTime: "2026-01-01T00:00:00Z"}`), "Current"},
		"job complete":         {manifest("batch/v1", "Job", `status: {conditions: [{type: Complete, status: "True"}]}`), "Current"},
		"job failed":           {manifest("batch/v1", "Job", `status: {conditions: [{type: Failed, status: "True"}]}`), "Failed"},
		"job suspended":        {manifest("batch/v1", "Job", `spec: {suspend: true}, status: {conditions: [{type: Suspended, status: "True"}]}`), "Current"},
		"job being suspended":  {manifest("batch/v1", "Job", `spec: {suspend: true}, status: {conditions: [{type: Suspended, status: "False"}]}`), "InProgress"},
		"job being resumed":    {manifest("batch/v1", "Job", `spec: {suspend: false}, status: {conditions: [{type: Suspended, status: "True"}]}`), "InProgress"},
		"job suspended, busy":  {manifest("batch/v1", "Job", `spec: {suspend: true}, status: {conditions: [{type: Suspended, status: "True"}, {type: Reconciling, status: "True"}]}`), "InProgress"},
		"CRD not installed":    {manifest("apiextensions.k8s.io/v1", "CustomResourceDefinition", `status: {conditions: [{type: Established, status: "False", reason: Installing}]}`), "InProgress"},
		"CRD refused":          {manifest("apiextensions.k8s.io/v1", "CustomResourceDefinition", `status: {conditions: [{type: Established, status: "False", reason: NotAccepted}]}`), "Failed"},
		"CRD":                  {manifest("apiextensions.k8s.io/v1", "CustomResourceDefinition", `status: {conditions: [{type: NamesAccepted, status: "True"}, {type: Established, status: "True"}]}`), "Current"},
		"pod new":              {manifest("v1", "Pod", `status: {}`), "InProgress"},
		"pod odd":              {manifest("v1", "Pod", `status: {phase: Odd}`), "Unknown"},
		"pod failed":           {manifest("v1", "Pod", `status: {phase: Failed}`), "Current"},
		"pod crashing":         {manifest("v1", "Pod", `status: {phase: Running, containerStatuses: [{name: a, state: {waiting: {reason: CrashLoopBackOff}}}]}`), "Failed"},
		"DaemonSet unseen":     {manifest("apps/v1", "DaemonSet", `status: {desiredNumberScheduled: 0}`), "InProgress"},
		"DaemonSet":            {manifest("apps/v1", "DaemonSet", observedStatus(`desiredNumberScheduled: 0`)), "Current"},
		"StatefulSet by hand":  {manifest("apps/v1", "StatefulSet", `spec: {updateStrategy: {type: OnDelete}}`), "Current"},
		"StatefulSet in parts": {manifest("apps/v1", "StatefulSet", `spec: {replicas: 3, updateStrategy: {rollingUpdate: {partition: 2}}}, status: {replicas: 3, readyReplicas: 3, updatedReplicas: 1}`), "Current"},
		"StatefulSet revision": {manifest("apps/v1", "StatefulSet", `status: {replicas: 1, readyReplicas: 1, currentReplicas: 1, currentRevision: a, updateRevision: b}`), "InProgress"},
		"ReplicaSet":           {manifest("apps/v1", "ReplicaSet", `status: {replicas: 1, readyReplicas: 1, availableReplicas: 1, fullyLabeledReplicas: 1}`), "Current"},
		"ReplicaSet failing":   {manifest("apps/v1", "ReplicaSet", `status: {conditions: [{type: ReplicaFailure, status: "True"}]}`), "InProgress"},
		"Deployment exceeded":  {manifest("apps/v1", "Deployment", `status: {conditions: [{type: Progressing, status: "False", reason: ProgressDeadlineExceeded}]}`), "Failed"},
	} {
		t.Run(name, func(t *testing.T) {
			got, message := health.KStatus(object(t, c.yaml))
			assert.Equal(t, c.want, string(got), message)
			assert.NotEmpty(t, message)
		})
	}
}

// TestUnobservedPodIsNotUnschedulable: the generation is checked before the scheduling time.
func TestUnobservedPodIsNotUnschedulable(t *testing.T) {
	pod := object(t, `{apiVersion: v1, kind: Pod, metadata: {name: x, generation: 2, creationTimestamp: "2026-01-01T00:00:00Z"},
		status: {observedGeneration: 1, phase: Pending, conditions: [{type: PodScheduled, status: "False", reason: Unschedulable}]}}`)
	later := health.WithTime(time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC))
	assert.Equal(t, health.StatusInProgress, health.Check(pod, later).Status)
}
