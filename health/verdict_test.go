// SPDX-License-Identifier: Apache-2.0

package health_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/pergola-dev/pergola/health"
)

// object decodes as a client does: numbers are int64.
func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(text))
	require.NoError(t, err)
	obj := &unstructured.Unstructured{}
	require.NoError(t, obj.UnmarshalJSON(raw))
	return obj
}

func TestVerdictJSON(t *testing.T) {
	v := health.Check(object(t, `
apiVersion: extensions.gardener.cloud/v1alpha1
kind: Infrastructure
metadata: {namespace: shoot--dev--x, name: x}
status: {lastError: {description: no quota, codes: [ERR_INFRA_QUOTA_EXCEEDED]}}
`))
	raw, err := json.Marshal(v)
	require.NoError(t, err)
	assert.JSONEq(t, `{"kind":"Infrastructure","namespace":"shoot--dev--x","name":"x","healthy":false,"progressing":false,"status":"Failed",
		"reason":"InfrastructureUnhealthy","message":"the extension reports an error: no quota","codes":["ERR_INFRA_QUOTA_EXCEEDED"]}`, string(raw))
}

func TestVerdicts(t *testing.T) {
	for name, c := range map[string]struct {
		yaml                 string
		opts                 []health.Option
		healthy, progressing bool
		status               health.Status
		reason               string
	}{
		"kinds without a rule exist": {`{apiVersion: v1, kind: ConfigMap, metadata: {name: x}}`, nil, true, false, "Current", ""},
		"foreign kinds keep their kstatus": {`{apiVersion: x.io/v1, kind: Foo, metadata: {name: x}, status: {conditions: [{type: Ready, status: "False"}]}}`,
			nil, true, false, "InProgress", ""},
		"health check skipped": {`{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: x, annotations: {resources.gardener.cloud/skip-health-check: "true"}}, spec: {replicas: 3}}`,
			nil, true, false, "InProgress", ""},
		"being deleted": {`{apiVersion: druid.gardener.cloud/v1alpha1, kind: Etcd, metadata: {name: x, deletionTimestamp: "2026-01-01T00:00:00Z"}, status: {ready: true}}`,
			nil, true, false, "Terminating", ""},
		"rollout of a healthy StatefulSet": {`{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: x}, spec: {replicas: 1}, status: {readyReplicas: 1}}`,
			nil, true, true, "InProgress", "StatefulSetProgressing"},
		"pending load balancer": {`{apiVersion: v1, kind: Service, metadata: {name: x}, spec: {type: LoadBalancer, clusterIP: 10.0.0.1}}`,
			nil, false, false, "Current", "ServiceUnhealthy"},
		"APIService": {`{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: x}, status: {conditions: [{type: Available, status: "False"}]}}`,
			nil, false, false, "Failed", "APIServiceUnhealthy"},
		"APIService as upstream's resource manager has it": {`{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: x}, status: {conditions: [{type: Available, status: "False"}]}}`,
			[]health.Option{health.OnlyManagedResourceKinds()}, true, false, "Current", ""},
		"Deployment is among upstream's kinds": {`{apiVersion: apps/v1, kind: Deployment, metadata: {name: x}}`,
			[]health.Option{health.OnlyManagedResourceKinds()}, false, true, "InProgress", "DeploymentUnhealthy"},
		"Deployment of the old group": {`{apiVersion: extensions/v1beta1, kind: Deployment, metadata: {name: x}, status: {conditions: [{type: Available, status: "True"}]}}`,
			nil, true, true, "InProgress", "DeploymentProgressing"},
		"another project's MachineDeployment": {`{apiVersion: cluster.x-k8s.io/v1beta1, kind: MachineDeployment, metadata: {name: x}}`, nil, true, false, "Current", ""},
		"Cluster has no status":               {`{apiVersion: extensions.gardener.cloud/v1alpha1, kind: Cluster, metadata: {name: x, generation: 3}}`, nil, true, false, "Current", ""},
		"extension at work": {`{apiVersion: extensions.gardener.cloud/v1alpha1, kind: Worker, metadata: {name: x}, status: {lastOperation: {state: Processing}}}`,
			nil, false, false, "InProgress", "WorkerUnhealthy"},
		"BackupBucket of the garden": {`{apiVersion: core.gardener.cloud/v1beta1, kind: BackupBucket, metadata: {name: x}, status: {lastOperation: {state: Succeeded}}}`,
			nil, true, false, "Current", ""},
		"Seed of any instance": {`{apiVersion: core.gardener.cloud/v1beta1, kind: Seed, metadata: {name: x}, status: {conditions: [{type: GardenletReady, status: "True"}, {type: SeedSystemComponentsHealthy, status: "True"}]}}`,
			nil, true, false, "Current", ""},
		"Seed of another instance": {`{apiVersion: core.gardener.cloud/v1beta1, kind: Seed, metadata: {name: x}, status: {gardener: {id: a, name: a, version: "1"}, conditions: [{type: GardenletReady, status: "True"}, {type: SeedSystemComponentsHealthy, status: "True"}]}}`,
			[]health.Option{health.WithGardener(health.Gardener{ID: "b", Name: "a", Version: "1"})}, false, false, "InProgress", "SeedUnhealthy"},
		"Shoot that was never reconciled": {`{apiVersion: core.gardener.cloud/v1beta1, kind: Shoot, metadata: {name: x, generation: 1}}`, nil, false, true, "InProgress", "ShootUnhealthy"},
		"Shoot at work": {`{apiVersion: core.gardener.cloud/v1beta1, kind: Shoot, metadata: {name: x}, status: {lastOperation: {state: Processing, description: Waiting}, conditions: [{type: APIServerAvailable, status: "True"}]}}`,
			nil, true, true, "InProgress", "ShootProgressing"},
		"Shoot with a failed condition": {`{apiVersion: core.gardener.cloud/v1beta1, kind: Shoot, metadata: {name: x}, status: {lastOperation: {state: Succeeded}, conditions: [{type: A, status: "True"}, {type: B, status: "False"}]}}`,
			nil, false, false, "Failed", "ShootUnhealthy"},
		"Shoot within its threshold": {`{apiVersion: core.gardener.cloud/v1beta1, kind: Shoot, metadata: {name: x}, status: {lastOperation: {state: Succeeded}, conditions: [{type: A, status: Progressing}]}}`,
			nil, true, true, "InProgress", "ShootProgressing"},
		"Garden that failed": {`{apiVersion: operator.gardener.cloud/v1alpha1, kind: Garden, metadata: {name: x}, status: {lastOperation: {state: Failed, description: broken}}}`,
			nil, false, false, "Failed", "GardenUnhealthy"},
		"ControllerInstallation": {`{apiVersion: core.gardener.cloud/v1beta1, kind: ControllerInstallation, metadata: {name: x}, status: {conditions: [{type: Installed, status: "True"}, {type: Healthy, status: "True"}, {type: Progressing, status: "False"}]}}`,
			nil, true, false, "Current", ""},
		"ControllerInstallation rolling out": {`{apiVersion: core.gardener.cloud/v1beta1, kind: ControllerInstallation, metadata: {name: x}, status: {conditions: [{type: Installed, status: "True"}, {type: Healthy, status: "True"}, {type: Progressing, status: "True"}]}}`,
			nil, true, true, "InProgress", "ControllerInstallationProgressing"},
		"ManagedResource rolling out": {managedResource(`{type: ResourcesApplied, status: "True"}, {type: ResourcesHealthy, status: "True"}, {type: ResourcesProgressing, status: "True"}`),
			nil, true, true, "InProgress", "ManagedResourceProgressing"},
		"DaemonSet within a rollout": {`{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: x, generation: 1}, spec: {updateStrategy: {type: RollingUpdate, rollingUpdate: {maxUnavailable: "40%"}}}, status: {observedGeneration: 1, desiredNumberScheduled: 5, currentNumberScheduled: 5, updatedNumberScheduled: 3, numberUnavailable: 2}}`,
			nil, true, true, "InProgress", "DaemonSetProgressing"},
		"DaemonSet after a rollout": {`{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: x}, spec: {updateStrategy: {type: RollingUpdate, rollingUpdate: {maxUnavailable: 2}}}, status: {desiredNumberScheduled: 5, currentNumberScheduled: 5, updatedNumberScheduled: 5, numberUnavailable: 1}}`,
			nil, false, false, "InProgress", "DaemonSetUnhealthy"},
	} {
		t.Run(name, func(t *testing.T) {
			v := health.Check(object(t, c.yaml), c.opts...)
			assert.Equal(t, c.healthy, v.Healthy, "%+v", v)
			assert.Equal(t, c.progressing, v.Progressing, "%+v", v)
			assert.Equal(t, c.status, v.Status, "%+v", v)
			assert.Equal(t, c.reason, v.Reason, "%+v", v)
			assert.NotEmpty(t, v.Message)
		})
	}
}

func TestMissingObjects(t *testing.T) {
	v := health.NotFound(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, "garden", "x")
	assert.Equal(t, "DeploymentMissing", v.Reason)
	assert.Equal(t, health.StatusNotFound, v.Status)
	assert.False(t, v.Healthy)
	assert.Equal(t, health.StatusNotFound, health.Check(nil).Status)
	assert.Equal(t, "Missing", health.Argo(nil))
}

func TestUnschedulablePodAndTheClock(t *testing.T) {
	pod := object(t, `{apiVersion: v1, kind: Pod, metadata: {name: x, creationTimestamp: "2026-01-01T00:00:00Z"}, status: {phase: Pending, conditions: [{type: PodScheduled, status: "False", reason: Unschedulable}]}}`)
	created := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	assert.Equal(t, health.StatusInProgress, health.Check(pod).Status, "no clock is read")
	assert.Equal(t, health.StatusInProgress, health.Check(pod, health.WithTime(created.Add(14*time.Second))).Status)
	assert.Equal(t, health.StatusFailed, health.Check(pod, health.WithTime(created.Add(15*time.Second))).Status)
}

func managedResource(conditions string) string {
	return `{apiVersion: resources.gardener.cloud/v1alpha1, kind: ManagedResource, metadata: {namespace: garden, name: x, generation: 2}, status: {observedGeneration: 2, conditions: [` + conditions + `]}}`
}

func TestCareManagedResource(t *testing.T) {
	const (
		applied = `{type: ResourcesApplied, status: "True"}`
		healthy = `{type: ResourcesHealthy, status: "True"}`
		done    = `{type: ResourcesProgressing, status: "False"}`
		rolling = `{type: ResourcesProgressing, status: "True", reason: DeploymentProgressing, message: slow, lastTransitionTime: "2026-01-01T00:00:00Z"}`
	)
	const unsure = `{type: ResourcesProgressing, status: Unknown, reason: ChecksPending, lastTransitionTime: "2026-01-01T00:00:00Z"}`
	began := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	hour := time.Hour
	for name, c := range map[string]struct {
		yaml      string
		threshold *time.Duration
		after     time.Duration
		reason    string
	}{
		"all well":                     {managedResource(applied + "," + healthy + "," + done), nil, 0, ""},
		"not applied":                  {managedResource(`{type: ResourcesApplied, status: "False", reason: ApplyFailed, message: no}` + "," + healthy + "," + done), nil, 0, "ApplyFailed"},
		"being applied":                {managedResource(`{type: ResourcesApplied, status: Progressing, reason: ApplyProgressing}` + "," + healthy + "," + done), nil, 0, ""},
		"health unknown":               {managedResource(applied + `,{type: ResourcesHealthy, status: Unknown, reason: ChecksPending},` + done), nil, 0, "ChecksPending"},
		"unhealthy without a reason":   {managedResource(applied + `,{type: ResourcesHealthy, status: "False"},` + done), nil, 0, "ResourcesHealthy"},
		"one is missing":               {managedResource(applied + "," + healthy), nil, 0, "MissingManagedResourceCondition"},
		"rollout without a threshold":  {managedResource(applied + "," + healthy + "," + rolling), nil, 0, "DeploymentProgressing"},
		"rollout within the threshold": {managedResource(applied + "," + healthy + "," + rolling), &hour, hour - time.Second, ""},
		"rollout at the threshold":     {managedResource(applied + "," + healthy + "," + rolling), &hour, hour, "ProgressingRolloutStuck"},
		"progress unknown":             {managedResource(applied + "," + healthy + "," + unsure), nil, 0, "ChecksPending"},
		"progress unknown for a while": {managedResource(applied + "," + healthy + "," + unsure), &hour, time.Minute, ""},
		"progress unknown for long":    {managedResource(applied + "," + healthy + "," + unsure), &hour, 2 * hour, "ProgressingRolloutStuck"},
		"failure goes before rollout":  {managedResource(applied + `,{type: ResourcesHealthy, status: "False", reason: DeploymentUnhealthy},` + rolling), &hour, 2 * hour, "DeploymentUnhealthy"},
		"outdated": {`{apiVersion: resources.gardener.cloud/v1alpha1, kind: ManagedResource, metadata: {name: x, generation: 3}, status: {observedGeneration: 2, conditions: [` + applied + `]}}`,
			nil, 0, "OutdatedStatus"},
		"outdated, because the last one failed": {`{apiVersion: resources.gardener.cloud/v1alpha1, kind: ManagedResource, metadata: {name: x, generation: 3}, status: {observedGeneration: 2, conditions: [{type: ResourcesApplied, status: "False", reason: DecodingFailed}]}}`,
			nil, 0, "DecodingFailed"},
	} {
		t.Run(name, func(t *testing.T) {
			f := health.CareManagedResource(object(t, c.yaml), c.threshold, began.Add(c.after))
			if c.reason == "" {
				assert.Nil(t, f)
				return
			}
			require.NotNil(t, f)
			assert.Equal(t, c.reason, f.Reason)
			assert.NotEmpty(t, f.Message)
		})
	}
}

func TestCheckEtcdDeployed(t *testing.T) {
	const updated = `conditions: [{type: AllMembersUpdated, status: "True"}]`
	for name, c := range map[string]struct {
		meta, status, want string
		severe             bool
	}{
		"deployed":           {`generation: 2`, `observedGeneration: 2, ready: true, ` + updated, "", false},
		"error":              {`generation: 2`, `observedGeneration: 2, ready: true, lastErrors: [{description: no disk}], ` + updated, "no disk", true},
		"being deleted":      {`generation: 2, deletionTimestamp: "2026-01-01T00:00:00Z"`, `observedGeneration: 2, ready: true, ` + updated, "deleted", false},
		"not observed":       {`generation: 3`, `observedGeneration: 2, ready: true, ` + updated, "outdated (2/3)", false},
		"operation pending":  {`generation: 2, annotations: {gardener.cloud/operation: reconcile}`, `observedGeneration: 2, ready: true, ` + updated, "has not started operation", false},
		"members not update": {`generation: 2`, `observedGeneration: 2, ready: true, conditions: [{type: AllMembersUpdated, status: "False"}]`, "AllMembersUpdated", false},
		"not ready, and why": {`generation: 2`, `observedGeneration: 2, conditions: [{type: AllMembersUpdated, status: "True"}, {type: Ready, status: "False", reason: NoQuorum, message: two of three members are down}]`,
			"not ready yet: Ready is False", false},
		"not ready": {`generation: 2`, `observedGeneration: 2, ` + updated, "not ready yet", false},
	} {
		t.Run(name, func(t *testing.T) {
			err := health.CheckEtcdDeployed(object(t, `{apiVersion: druid.gardener.cloud/v1alpha1, kind: Etcd, metadata: {name: x, `+c.meta+`}, status: {`+c.status+`}}`))
			if c.want == "" {
				assert.NoError(t, err)
				return
			}
			assert.ErrorContains(t, err, c.want)
			assert.Equal(t, c.severe, health.IsSevere(err))
		})
	}
}
