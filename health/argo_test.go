// SPDX-License-Identifier: Apache-2.0

package health_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pergola-dev/pergola/health"
)

func TestArgoBuiltIn(t *testing.T) {
	const hpa = `autoscaling.alpha.kubernetes.io/conditions: `
	for name, c := range map[string]struct{ yaml, want string }{
		"foreign kind":          {`{apiVersion: x.io/v1, kind: Foo, metadata: {name: x}}`, ""},
		"being deleted":         {`{apiVersion: v1, kind: ConfigMap, metadata: {name: x, deletionTimestamp: "2026-01-01T00:00:00Z"}}`, "Progressing"},
		"hook being deleted":    {`{apiVersion: v1, kind: Service, metadata: {name: x, deletionTimestamp: "2026-01-01T00:00:00Z", finalizers: [argocd.argoproj.io/hook-finalizer]}}`, "Healthy"},
		"version of old":        {`{apiVersion: apps/v1beta1, kind: Deployment, metadata: {name: x}}`, "Unknown"},
		"group of old":          {`{apiVersion: extensions/v1beta1, kind: Deployment, metadata: {name: x}}`, ""},
		"Ingress of old":        {`{apiVersion: extensions/v1beta1, kind: Ingress, metadata: {name: x}}`, "Progressing"},
		"claim":                 {`{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: x}, status: {phase: Lost}}`, "Degraded"},
		"claim bound":           {`{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: x}, status: {phase: Bound}}`, "Healthy"},
		"claim without phase":   {`{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: x}}`, "Unknown"},
		"workflow new":          {`{apiVersion: argoproj.io/v1alpha1, kind: Workflow, metadata: {name: x}}`, "Progressing"},
		"workflow done":         {`{apiVersion: argoproj.io/v1alpha1, kind: Workflow, metadata: {name: x}, status: {phase: Succeeded}}`, "Healthy"},
		"workflow failed":       {`{apiVersion: argoproj.io/v1alpha1, kind: Workflow, metadata: {name: x}, status: {phase: Error}}`, "Degraded"},
		"workflow unknown":      {`{apiVersion: argoproj.io/v1alpha1, kind: Workflow, metadata: {name: x}, status: {phase: Odd}}`, "Unknown"},
		"APIService":            {`{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: x}, status: {conditions: [{type: Available, status: "True"}]}}`, "Healthy"},
		"APIService new":        {`{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: x}}`, "Progressing"},
		"job running":           {`{apiVersion: batch/v1, kind: Job, metadata: {name: x}, status: {active: 1}}`, "Progressing"},
		"job resumed":           {`{apiVersion: batch/v1, kind: Job, metadata: {name: x}, status: {conditions: [{type: Suspended, status: "False"}]}}`, "Healthy"},
		"job failed, suspended": {`{apiVersion: batch/v1, kind: Job, metadata: {name: x}, status: {conditions: [{type: Suspended, status: "True"}, {type: Failed, status: "True"}]}}`, "Degraded"},

		"autoscaler failing first":    {`{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: x}, status: {conditions: [{type: AbleToScale, status: "False", reason: FailedGetScale}]}}`, "Degraded"},
		"autoscaler failing later":    {`{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: x}, status: {conditions: [{type: AbleToScale, status: "True"}, {type: ScalingActive, status: "False", reason: InvalidSelector}]}}`, "Degraded"},
		"autoscaler limited":          {`{apiVersion: autoscaling/v2beta2, kind: HorizontalPodAutoscaler, metadata: {name: x}, status: {conditions: [{type: ScalingLimited, status: "True"}]}}`, "Healthy"},
		"autoscaler of old":           {`{apiVersion: autoscaling/v3, kind: HorizontalPodAutoscaler, metadata: {name: x}}`, "Unknown"},
		"autoscaler v1, empty":        {`{apiVersion: autoscaling/v1, kind: HorizontalPodAutoscaler, metadata: {name: x, annotations: {` + hpa + `"[]"}}}`, "Progressing"},
		"autoscaler v1, not readable": {`{apiVersion: autoscaling/v1, kind: HorizontalPodAutoscaler, metadata: {name: x, annotations: {` + hpa + `"{"}}}`, "Unknown"},

		"Deployment not observed": {`{apiVersion: apps/v1, kind: Deployment, metadata: {name: x, generation: 2}, status: {observedGeneration: 1}}`, "Progressing"},
		"Deployment updating":     {`{apiVersion: apps/v1, kind: Deployment, metadata: {name: x}, spec: {replicas: 2}, status: {updatedReplicas: 1}}`, "Progressing"},
		"Deployment with old":     {`{apiVersion: apps/v1, kind: Deployment, metadata: {name: x}, spec: {replicas: 1}, status: {replicas: 2, updatedReplicas: 1, availableReplicas: 2}}`, "Progressing"},
		"Deployment starting":     {`{apiVersion: apps/v1, kind: Deployment, metadata: {name: x}, spec: {replicas: 1}, status: {replicas: 1, updatedReplicas: 1}}`, "Progressing"},
		"Deployment done":         {`{apiVersion: apps/v1, kind: Deployment, metadata: {name: x}, spec: {replicas: 1}, status: {replicas: 1, updatedReplicas: 1, availableReplicas: 1}}`, "Healthy"},
		"ReplicaSet failing":      {`{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: x}, status: {conditions: [{type: ReplicaFailure, status: "True"}]}}`, "Degraded"},
		"ReplicaSet starting":     {`{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: x}, spec: {replicas: 1}}`, "Progressing"},
		"ReplicaSet not observed": {`{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: x, generation: 1}}`, "Progressing"},
		"StatefulSet new":         {`{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: x}}`, "Progressing"},
		"StatefulSet partly":      {`{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: x}, spec: {replicas: 3, updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: 1}}}, status: {observedGeneration: 1, readyReplicas: 3, updatedReplicas: 1}}`, "Progressing"},
		"StatefulSet partitioned": {`{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: x}, spec: {replicas: 3, updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: 1}}}, status: {observedGeneration: 1, readyReplicas: 3, updatedReplicas: 2, updateRevision: a}}`, "Healthy"},
		"StatefulSet rolling":     {`{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: x}, spec: {replicas: 3}, status: {observedGeneration: 1, readyReplicas: 3, updateRevision: a, currentRevision: b}}`, "Progressing"},
		"DaemonSet by hand":       {`{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: x}, spec: {updateStrategy: {type: OnDelete}}, status: {desiredNumberScheduled: 3}}`, "Healthy"},
		"DaemonSet starting":      {`{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: x}, status: {desiredNumberScheduled: 3, updatedNumberScheduled: 3, numberAvailable: 2}}`, "Progressing"},
		"DaemonSet not observed":  {`{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: x, generation: 1}}`, "Progressing"},

		"pod that cannot pull":      {argoPod(`restartPolicy: Always`, ``, `phase: Pending, containerStatuses: [{state: {waiting: {reason: ErrImagePull}}}]`), "Degraded"},
		"job's pod cannot pull":     {argoPod(`restartPolicy: Never`, ``, `phase: Pending, containerStatuses: [{state: {waiting: {reason: ErrImagePull}}}]`), "Progressing"},
		"pod that was killed":       {argoPod(`restartPolicy: Always`, ``, `phase: Running, containerStatuses: [{lastState: {terminated: {exitCode: 1}}}]`), "Degraded"},
		"pod that is ready":         {argoPod(`restartPolicy: Always`, ``, `phase: Running, conditions: [{type: Ready, status: "True"}], containerStatuses: [{lastState: {terminated: {exitCode: 1}}}]`), "Healthy"},
		"pod that starts":           {argoPod(`restartPolicy: Always`, ``, `phase: Running`), "Progressing"},
		"pod that runs once":        {argoPod(`restartPolicy: OnFailure`, ``, `phase: Running, conditions: [{type: Ready, status: "True"}]`), "Progressing"},
		"pod without a policy":      {argoPod(``, ``, `phase: Running`), "Unknown"},
		"pod without a phase":       {argoPod(`restartPolicy: Always`, ``, ``), "Unknown"},
		"policy ignored":            {argoPod(`restartPolicy: Never`, `argocd.argoproj.io/ignore-restart-policy: "true"`, `phase: Running, conditions: [{type: Ready, status: "True"}]`), "Healthy"},
		"policy ignored, back-off":  {argoPod(`restartPolicy: Never`, `argocd.argoproj.io/ignore-restart-policy: "true"`, `phase: Running, containerStatuses: [{state: {waiting: {reason: ImagePullBackOff}}}]`), "Degraded"},
		"policy not ignored (Helm)": {argoPod(`restartPolicy: Never`, `argocd.argoproj.io/ignore-restart-policy: "true", helm.sh/hook: pre-install`, `phase: Running, conditions: [{type: Ready, status: "True"}]`), "Progressing"},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.want, health.ArgoBuiltIn(object(t, c.yaml)))
			assert.Equal(t, c.want, health.Argo(object(t, c.yaml)), "no script is for this kind")
		})
	}
}

func argoPod(spec, annotations, status string) string {
	return `{apiVersion: v1, kind: Pod, metadata: {name: x, annotations: {` + annotations + `}}, spec: {` + spec + `}, status: {` + status + `}}`
}

func TestArgoCustomized(t *testing.T) {
	of := func(apiVersion, kind, rest string) string {
		return `{apiVersion: ` + apiVersion + `, kind: ` + kind + `, metadata: {name: x, generation: 2}, ` + rest + `}`
	}
	conditions := func(list string) string { return `status: {conditions: [` + list + `]}` }
	for name, c := range map[string]struct{ yaml, want string }{
		"CronJob suspended":       {of("batch/v1", "CronJob", `spec: {suspend: true}`), "Suspended"},
		"CronJob new":             {of("batch/v1", "CronJob", `spec: {}`), "Progressing"},
		"CronJob never scheduled": {of("batch/v1", "CronJob", `status: {lastSuccessfulTime: "2026-01-01T00:00:00Z"}`), "Healthy"},
		"CronJob running":         {of("batch/v1", "CronJob", `status: {active: [{name: a}], lastScheduleTime: "2026-01-02T00:00:00Z", lastSuccessfulTime: "2026-01-01T00:00:00Z"}`), "Healthy"},
		"CronJob failed":          {of("batch/v1", "CronJob", `status: {lastScheduleTime: "2026-01-02T00:00:00Z", lastSuccessfulTime: "2026-01-01T00:00:00Z"}`), "Degraded"},

		"budget without status": {of("policy/v1", "PodDisruptionBudget", `spec: {}`), "Progressing"},
		"budget with too few":   {of("policy/v1", "PodDisruptionBudget", conditions(`{type: DisruptionAllowed, status: "False", reason: InsufficientPods}`)), "Healthy"},
		"budget failed":         {of("policy/v1", "PodDisruptionBudget", conditions(`{type: DisruptionAllowed, status: "False", reason: SyncFailed}`)), "Degraded"},

		"definition with names refused": {of("apiextensions.k8s.io/v1", "CustomResourceDefinition", conditions(`{type: NamesAccepted, status: "False"}, {type: Established, status: "True"}`)), "Degraded"},
		"definition not structural":     {of("apiextensions.k8s.io/v1", "CustomResourceDefinition", conditions(`{type: NonStructuralSchema, status: "True"}, {type: Established, status: "True"}`)), "Degraded"},
		"definition installing":         {of("apiextensions.k8s.io/v1", "CustomResourceDefinition", conditions(`{type: Established, status: "False", reason: Installing}`)), "Progressing"},

		"certificate issuing":    {of("cert-manager.io/v1", "Certificate", conditions(`{type: Ready, status: "True"}, {type: Issuing, status: "True"}`)), "Progressing"},
		"certificate issued":     {of("cert-manager.io/v1", "Certificate", conditions(`{type: Ready, status: "True"}, {type: Issuing, status: "False"}`)), "Healthy"},
		"issuer of the cluster":  {of("cert-manager.io/v1", "ClusterIssuer", conditions(`{type: Ready, status: "False"}`)), "Degraded"},
		"issuer, unknown":        {of("cert-manager.io/v1", "Issuer", conditions(`{type: Ready, status: Unknown}`)), "Progressing"},
		"secret synced":          {of("external-secrets.io/v1", "ExternalSecret", conditions(`{type: Ready, status: "True"}`)), "Healthy"},
		"secret to be refreshed": {of("external-secrets.io/v1", "ExternalSecret", `spec: {refreshPolicy: OnChange}, status: {refreshTime: "2026-01-02T00:00:00Z", conditions: [{type: Ready, status: "True", lastTransitionTime: "2026-01-01T00:00:00Z"}]}`), "Progressing"},
		"secret refreshed":       {of("external-secrets.io/v1", "ExternalSecret", `spec: {refreshPolicy: OnChange}, status: {refreshTime: "2026-01-01T00:00:00Z", conditions: [{type: Ready, status: "True", lastTransitionTime: "2026-01-01T00:00:00Z"}]}`), "Healthy"},

		"gateway new":                {of("gateway.networking.k8s.io/v1", "Gateway", `spec: {}`), "Progressing"},
		"gateway with a bad ref":     {of("gateway.networking.k8s.io/v1", "Gateway", conditions(`{type: Programmed, status: "False"}, {type: ResolvedRefs, status: "False"}`)), "Degraded"},
		"gateway with bad listener":  {of("gateway.networking.k8s.io/v1", "Gateway", `status: {conditions: [{type: Accepted, status: "True"}], listeners: [{name: a}, {name: b, conditions: [{type: Accepted, status: "False"}]}]}`), "Degraded"},
		"gateway with slow listener": {of("gateway.networking.k8s.io/v1", "Gateway", `status: {listeners: [{name: b, conditions: [{type: Programmed, status: Unknown}]}]}`), "Progressing"},
		"gateway, listeners only":    {of("gateway.networking.k8s.io/v1", "Gateway", `status: {listeners: [{name: b}]}`), "Healthy"},
		"route of old":               {of("gateway.networking.k8s.io/v1", "HTTPRoute", `status: {parents: [{conditions: [{type: Accepted, status: "False", observedGeneration: 1}]}]}`), "Progressing"},
		"route refused":              {of("gateway.networking.k8s.io/v1", "HTTPRoute", `status: {parents: [{conditions: [{type: Accepted, status: "False", observedGeneration: 2}]}]}`), "Degraded"},
		"route refused by one":       {of("gateway.networking.k8s.io/v1", "HTTPRoute", `status: {parents: [{conditions: [{type: Accepted, status: "True", observedGeneration: 2}]}, {conditions: [{type: ResolvedRefs, status: "False", observedGeneration: 2}]}]}`), "Degraded"},

		"Flux suspended":       {of("kustomize.toolkit.fluxcd.io/v1", "Kustomization", `spec: {suspend: true}`), "Suspended"},
		"Flux new":             {of("kustomize.toolkit.fluxcd.io/v1", "Kustomization", `spec: {}`), "Progressing"},
		"Flux failed":          {of("kustomize.toolkit.fluxcd.io/v1", "Kustomization", conditions(`{type: Ready, status: "False"}`)), "Degraded"},
		"release tested":       {of("helm.toolkit.fluxcd.io/v2", "HelmRelease", conditions(`{type: Ready, status: "True"}, {type: TestSuccess, status: "True"}`)), "Healthy"},
		"release, ready only":  {of("helm.toolkit.fluxcd.io/v2", "HelmRelease", conditions(`{type: Ready, status: "True"}`)), "Degraded"},
		"repository at work":   {of("source.toolkit.fluxcd.io/v1", "GitRepository", conditions(`{type: Ready, status: Unknown}, {type: Reconciling, status: "True"}`)), "Progressing"},
		"repository in store":  {of("source.toolkit.fluxcd.io/v1", "GitRepository", conditions(`{type: Ready, status: "True"}, {type: ArtifactInStorage, status: "True"}`)), "Healthy"},
		"OCI is not suspended": {of("source.toolkit.fluxcd.io/v1", "OCIRepository", `spec: {suspend: true}, `+conditions(`{type: Ready, status: "False"}`)), "Degraded"},

		"machines going":     {of("cluster.x-k8s.io/v1beta1", "MachineDeployment", `status: {phase: ScalingDown}`), "Progressing"},
		"machines failed":    {of("cluster.x-k8s.io/v1beta1", "MachineDeployment", `status: {phase: Failed}`), "Degraded"},
		"machines not ready": {of("cluster.x-k8s.io/v1beta1", "MachineDeployment", `status: {phase: Running, replicas: 2, updatedReplicas: 2, readyReplicas: 1}`), "Progressing"},
		"Prometheus new":     {of("monitoring.coreos.com/v1", "Prometheus", `spec: {}`), "Progressing"},
		"Prometheus waiting": {of("monitoring.coreos.com/v1", "Prometheus", conditions(`{type: Available, status: "False", reason: SomePodsNotReady}`)), "Progressing"},
		"Prometheus broken":  {of("monitoring.coreos.com/v1", "Prometheus", conditions(`{type: Available, status: Degraded, reason: NoPodReady}`)), "Degraded"},
		"Shoot unlabelled":   {of("core.gardener.cloud/v1beta1", "Shoot", `spec: {}`), "Progressing"},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.want, health.Argo(object(t, c.yaml)))
			assert.Empty(t, health.ArgoBuiltIn(object(t, c.yaml)), "gitops-engine has no check for this kind")
		})
	}
}
