// SPDX-License-Identifier: Apache-2.0

package health_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pergola-dev/pergola/health"
)

func TestJudgeAllKinds(t *testing.T) {
	const claim = `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: x`
	for name, c := range map[string]struct {
		yaml                 string
		healthy, progressing bool
		status               health.Status
		reason, message      string
	}{
		"ConfigMap":             {manifest("v1", "ConfigMap", `data: {}`), true, false, "Current", "", "ConfigMap exists"},
		"custom resource":       {manifest("x.io/v1", "Foo", `status: {conditions: [{type: Ready, status: "True"}]}`), true, false, "Current", "", "Foo exists"},
		"not ready":             {manifest("x.io/v1", "Foo", `status: {conditions: [{type: Ready, status: "False", message: no disk}]}`), true, true, "InProgress", "FooProgressing", "no disk"},
		"not ready, no words":   {manifest("x.io/v1", "Foo", `status: {conditions: [{type: Ready, status: "False", reason: NoDisk}]}`), true, true, "InProgress", "FooProgressing", `condition "Ready" has status False: NoDisk`},
		"stalled":               {manifest("x.io/v1", "Foo", `status: {conditions: [{type: Stalled, status: "True", message: bad spec}]}`), false, false, "Failed", "FooUnhealthy", "bad spec"},
		"not observed":          {manifest("x.io/v1", "Foo", `status: {observedGeneration: 1}`), true, true, "InProgress", "FooProgressing", "latest observed generation is 1"},
		"claim bound":           {claim + `}, status: {phase: Bound}}`, true, false, "Current", "", "PersistentVolumeClaim exists"},
		"claim lost":            {claim + `}, spec: {volumeName: pv-1}, status: {phase: Lost}}`, false, false, "InProgress", "PersistentVolumeClaimUnhealthy", `lost its volume "pv-1"`},
		"claim without class":   {claim + `}, status: {phase: Pending}}`, true, true, "InProgress", "PersistentVolumeClaimProgressing", "not bound"},
		"claim provisioning":    {claim + `, annotations: {volume.kubernetes.io/storage-provisioner: x}}, spec: {storageClassName: fast}, status: {phase: Pending}}`, true, true, "InProgress", "PersistentVolumeClaimProgressing", "not bound"},
		"claim of a volume":     {claim + `}, spec: {storageClassName: fast, volumeName: pv-1}, status: {phase: Pending}}`, true, true, "InProgress", "PersistentVolumeClaimProgressing", "not bound"},
		"claim without a pod":   {claim + `}, spec: {storageClassName: fast}, status: {phase: Pending}}`, true, false, "InProgress", "", "waits for its first consumer"},
		"volume":                {manifest("v1", "PersistentVolume", `status: {phase: Available}`), true, false, "Current", "", "exists"},
		"volume failed":         {manifest("v1", "PersistentVolume", `status: {phase: Failed, message: in use}`), false, false, "Current", "PersistentVolumeUnhealthy", "in use"},
		"ingress":               {manifest("networking.k8s.io/v1", "Ingress", `spec: {}`), true, false, "Current", "", "exists"},
		"autoscaler":            {manifest("autoscaling/v2", "HorizontalPodAutoscaler", `status: {conditions: [{type: AbleToScale, status: "True"}, {type: ScalingActive, status: "False", reason: ScalingDisabled}]}`), true, false, "Current", "", "exists"},
		"autoscaler blind":      {manifest("autoscaling/v2", "HorizontalPodAutoscaler", `status: {conditions: [{type: ScalingActive, status: "False", reason: FailedGetResourceMetric, message: no metrics}]}`), true, false, "Current", "", "FailedGetResourceMetric: no metrics"},
		"namespace":             {manifest("v1", "Namespace", `status: {phase: Active}`), true, false, "Current", "", "exists"},
		"namespace going":       {`{apiVersion: v1, kind: Namespace, metadata: {name: x, deletionTimestamp: "2026-01-01T00:00:00Z"}, status: {phase: Terminating, conditions: [{type: NamespaceContentRemaining, status: "True", reason: SomeResourcesRemain, message: "Some resources are remaining: foos.x.io has 1 resource instances"}]}}`, true, true, "Terminating", "NamespaceProgressing", "foos.x.io has 1 resource instances"},
		"going":                 {`{apiVersion: x.io/v1, kind: Foo, metadata: {name: x, deletionTimestamp: "2026-01-01T00:00:00Z", finalizers: [a/b, c]}}`, true, true, "Terminating", "FooProgressing", `waits for "a/b", "c"`},
		"Gardener's kinds stay": {manifest("batch/v1", "Job", `spec: {}`), true, false, "InProgress", "", "Job not started"},
		"skipped":               {`{apiVersion: x.io/v1, kind: Foo, metadata: {name: x, annotations: {resources.gardener.cloud/skip-health-check: "true"}}, status: {conditions: [{type: Stalled, status: "True"}]}}`, true, false, "Failed", "", "Stalled"},
	} {
		t.Run(name, func(t *testing.T) {
			v := health.Check(object(t, c.yaml), health.JudgeAllKinds())
			assert.Equal(t, c.healthy, v.Healthy, "%+v", v)
			assert.Equal(t, c.progressing, v.Progressing, "%+v", v)
			assert.Equal(t, c.status, v.Status, "%+v", v)
			assert.Equal(t, c.reason, v.Reason, "%+v", v)
			assert.Contains(t, v.Message, c.message)

			without := health.Check(object(t, c.yaml))
			assert.True(t, without.Healthy, "upstream asks for existence only: %+v", without)
			assert.False(t, without.Progressing)
			assert.Equal(t, c.status, without.Status, "the status does not depend on the option")
			if c.status != health.StatusCurrent && without.Kind != "Job" {
				assert.NotContains(t, without.Message, "exists", "the message tells what the status says")
			}
		})
	}
}
