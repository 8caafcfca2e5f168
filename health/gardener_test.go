// SPDX-License-Identifier: Apache-2.0

package health_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pergola-dev/pergola/health"
)

func manifest(apiVersion, kind, rest string) string {
	return `{apiVersion: ` + apiVersion + `, kind: ` + kind + `, metadata: {namespace: garden, name: x, generation: 2}, ` + rest + `}`
}

func observedStatus(rest string) string { return `status: {observedGeneration: 2, ` + rest + `}` }

// ruleCases maps the manifest after the metadata to a text in the failure; empty means healthy.
type ruleCases struct {
	apiVersion, kind string
	cases            map[string]string
}

type cases = map[string]string

// checkRules runs the cases of every branch of upstream's checks (pkg/utils/kubernetes/health).
func checkRules(t *testing.T, kinds map[string]ruleCases) {
	t.Helper()
	for name, c := range kinds {
		t.Run(name, func(t *testing.T) {
			for rest, want := range c.cases {
				v := health.Check(object(t, manifest(c.apiVersion, c.kind, rest)))
				assert.Equal(t, want == "", v.Healthy, "%s: %+v", rest, v)
				assert.Contains(t, v.Message, want, rest)
				if want != "" {
					assert.Equal(t, c.kind+"Unhealthy", v.Reason)
				}
			}
		})
	}
}

func TestGardenerWorkloads(t *testing.T) {
	checkRules(t, map[string]ruleCases{
		"Deployment": {"apps/v1", "Deployment", cases{
			`status: {observedGeneration: 1}`: "outdated (1/2)",
			observedStatus(``):                `"Available" is missing`,
			observedStatus(`conditions: [{type: Available, status: "False"}]`):                                                                 `"Available" has status False`,
			observedStatus(`conditions: [{type: Available, status: Unknown}]`):                                                                 `"Available" has status Unknown`,
			observedStatus(`conditions: [{type: Available, status: "True"}]`):                                                                  "",
			observedStatus(`conditions: [{type: Available, status: "True"}, {type: Progressing, status: "True"}]`):                             "",
			observedStatus(`conditions: [{type: Available, status: "True"}, {type: Progressing, status: "False"}]`):                            `"Progressing" has status False`,
			observedStatus(`conditions: [{type: Available, status: "True"}, {type: ReplicaFailure, status: "False"}]`):                         "",
			observedStatus(`conditions: [{type: Available, status: "True"}, {type: ReplicaFailure, status: "True", reason: R, message: why}]`): "R: why",
		}},
		"StatefulSet": {"apps/v1", "StatefulSet", cases{
			`status: {observedGeneration: 1, readyReplicas: 1}`: "outdated (1/2)",
			observedStatus(``):                                           "(0/1)",
			observedStatus(`readyReplicas: 1`):                           "",
			`spec: {replicas: 0}, ` + observedStatus(``):                 "",
			`spec: {replicas: 3}, ` + observedStatus(`readyReplicas: 2`): "(2/3)",
		}},
		"DaemonSet": {"apps/v1", "DaemonSet", cases{
			`status: {observedGeneration: 1}`:                                      "outdated (1/2)",
			observedStatus(`desiredNumberScheduled: 1`):                            "not enough scheduled pods (0/1)",
			observedStatus(`numberMisscheduled: 1`):                                "1 pod(s) run on nodes",
			observedStatus(`numberUnavailable: 1`):                                 "too many unavailable pods",
			observedStatus(`desiredNumberScheduled: 2, currentNumberScheduled: 2`): "",
			`spec: {updateStrategy: {type: RollingUpdate, rollingUpdate: {maxUnavailable: 1}}}, ` + observedStatus(`desiredNumberScheduled: 2, currentNumberScheduled: 2, updatedNumberScheduled: 1, numberUnavailable: 1`):     "",
			`spec: {updateStrategy: {type: RollingUpdate, rollingUpdate: {maxUnavailable: "50%"}}}, ` + observedStatus(`desiredNumberScheduled: 3, currentNumberScheduled: 3, updatedNumberScheduled: 1, numberUnavailable: 2`): "1 allowed",
			`spec: {updateStrategy: {type: RollingUpdate, rollingUpdate: {maxUnavailable: odd}}}, ` + observedStatus(`desiredNumberScheduled: 3, currentNumberScheduled: 3, updatedNumberScheduled: 1, numberUnavailable: 1`):   "0 allowed",
			`spec: {updateStrategy: {type: RollingUpdate}}, ` + observedStatus(`desiredNumberScheduled: 2, currentNumberScheduled: 2, updatedNumberScheduled: 1, numberUnavailable: 1`):                                         "0 allowed",
			`spec: {updateStrategy: {type: OnDelete, rollingUpdate: {maxUnavailable: 1}}}, ` + observedStatus(`desiredNumberScheduled: 2, currentNumberScheduled: 2, updatedNumberScheduled: 1, numberUnavailable: 1`):          "0 allowed",
			`spec: {updateStrategy: {type: RollingUpdate, rollingUpdate: {maxUnavailable: 1}}}, ` + observedStatus(`desiredNumberScheduled: 2, currentNumberScheduled: 2, updatedNumberScheduled: 2, numberUnavailable: 1`):     "0 allowed",
		}},
		"ReplicaSet":            {"apps/v1", "ReplicaSet", cases{`status: {readyReplicas: 1}`: "outdated (0/2)", observedStatus(`readyReplicas: 1`): "", `spec: {replicas: 2}, ` + observedStatus(`readyReplicas: 1`): "(1/2)"}},
		"ReplicationController": {"v1", "ReplicationController", cases{`status: {readyReplicas: 1}`: "outdated (0/2)", observedStatus(`readyReplicas: 1`): "", `spec: {replicas: 2}, ` + observedStatus(`readyReplicas: 1`): "(1/2)"}},
		"Job": {"batch/v1", "Job", cases{
			`spec: {}`: "",
			`status: {conditions: [{type: Failed, status: "False"}]}`:                              "",
			`status: {conditions: [{type: Failed, status: "True", reason: BackoffLimitExceeded}]}`: "BackoffLimitExceeded",
			`status: {conditions: [{type: Failed, status: Unknown}]}`:                              "Unknown",
			`status: {conditions: [{type: Complete, status: "True"}]}`:                             "",
		}},
		"Pod": {"v1", "Pod", cases{
			`status: {phase: Running}`: "", `status: {phase: Succeeded}`: "", `status: {phase: Pending}`: `phase "Pending"`, `status: {phase: Failed}`: `phase "Failed"`,
			`status: {phase: Unknown}`: `phase "Unknown"`, `spec: {}`: `phase ""`,
		}},
	})
}

func TestGardenerKindsOfKubernetes(t *testing.T) {
	checkRules(t, map[string]ruleCases{
		"Service": {"v1", "Service", cases{
			`spec: {}`: "", `spec: {type: ClusterIP}`: "", `spec: {type: LoadBalancer}`: "no address",
			`spec: {type: LoadBalancer}, status: {loadBalancer: {ingress: []}}`: "no address", `spec: {type: LoadBalancer}, status: {loadBalancer: {ingress: [{ip: 1.2.3.4}]}}`: "",
		}},
		"CustomResourceDefinition": {"apiextensions.k8s.io/v1", "CustomResourceDefinition", cases{
			`status: {conditions: [{type: Established, status: "True"}]}`:                                                                                                `"NamesAccepted" is missing`,
			`status: {conditions: [{type: NamesAccepted, status: "True"}]}`:                                                                                              `"Established" is missing`,
			`status: {conditions: [{type: NamesAccepted, status: "True"}, {type: Established, status: "False"}]}`:                                                        `"Established" has status False`,
			`status: {conditions: [{type: NamesAccepted, status: "True"}, {type: Established, status: "True"}]}`:                                                         "",
			`status: {conditions: [{type: NamesAccepted, status: "True"}, {type: Established, status: "True"}, {type: Terminating, status: "False"}]}`:                   "",
			`status: {conditions: [{type: NamesAccepted, status: "True"}, {type: Established, status: "True"}, {type: Terminating, status: "True", reason: Instances}]}`: "Instances",
		}},
		"APIService": {"apiregistration.k8s.io/v1", "APIService", cases{
			`spec: {}`: `"Available" is missing`, `status: {conditions: [{type: Available, status: "True"}]}`: "", `status: {conditions: [{type: Available, status: "False"}]}`: "False",
		}},
		"Node": {"v1", "Node", cases{
			`spec: {}`: `"Ready" is missing`,
			`status: {conditions: [{type: Ready, status: Unknown}]}`:                                            `"Ready" has status Unknown`,
			`status: {conditions: [{type: Ready, status: "True"}]}`:                                             "",
			`status: {conditions: [{type: Ready, status: "True"}, {type: DiskPressure, status: "True"}]}`:       "DiskPressure",
			`status: {conditions: [{type: Ready, status: "True"}, {type: MemoryPressure, status: "True"}]}`:     "MemoryPressure",
			`status: {conditions: [{type: Ready, status: "True"}, {type: NetworkUnavailable, status: "True"}]}`: "NetworkUnavailable",
			`status: {conditions: [{type: Ready, status: "True"}, {type: PIDPressure, status: Unknown}]}`:       "PIDPressure",
			`status: {conditions: [{type: Ready, status: "True"}, {type: Other, status: "True"}]}`:              "",
		}},
		"VerticalPodAutoscaler": {"autoscaling.k8s.io/v1", "VerticalPodAutoscaler", cases{
			`spec: {}`: "", `status: {conditions: [{type: ConfigUnsupported, status: "False"}]}`: "", `status: {conditions: [{type: ConfigUnsupported, status: "True"}]}`: "ConfigUnsupported",
		}},
		"Prometheus":   {"monitoring.coreos.com/v1", "Prometheus", monitoringCases()},
		"Alertmanager": {"monitoring.coreos.com/v1", "Alertmanager", monitoringCases()},
		"Certificate": {"cert.gardener.cloud/v1alpha1", "Certificate", cases{
			`status: {state: Ready}`: "", `spec: {}`: `state ""`, `status: {state: Error, message: no such domain}`: "no such domain",
			`status: {state: Ready, conditions: [{type: Ready, status: "False"}]}`: `"Ready" has status False`,
			`status: {state: Error, conditions: [{type: Ready, status: "True"}]}`:  `state "Error"`,
		}},
		"Issuer": {"cert.gardener.cloud/v1alpha1", "Issuer", cases{
			`status: {state: Ready, conditions: [{type: Ready, status: "False"}]}`: "", `status: {state: Pending}`: `state "Pending"`,
		}},
	})
}

func TestGardenerOwnKinds(t *testing.T) {
	checkRules(t, map[string]ruleCases{
		"Etcd": {"druid.gardener.cloud/v1alpha1", "Etcd", cases{
			`status: {ready: true}`: "", `spec: {}`: "not ready yet", `status: {ready: false}`: "not ready yet",
			`status: {ready: true, conditions: [{type: BackupReady, status: "False", message: no bucket}]}`: "no bucket",
			`status: {ready: true, conditions: [{type: BackupReady, status: Unknown}]}`:                     "",
			`status: {ready: true, conditions: [{type: BackupReady, status: "True"}]}`:                      "",
		}},
		"MachineDeployment": {"machine.sapcloud.io/v1alpha1", "MachineDeployment", cases{
			`status: {observedGeneration: 1}`: "outdated (1/2)",
			observedStatus(``):                `"Available" is missing`,
			observedStatus(`conditions: [{type: Available, status: "True"}]`):                                                                                              "",
			observedStatus(`conditions: [{type: Available, status: "False"}]`):                                                                                             `"Available" has status False`,
			observedStatus(`conditions: [{type: Available, status: "True"}, {type: Progressing, status: "False"}]`):                                                        `"Progressing" has status False`,
			observedStatus(`conditions: [{type: Available, status: "True"}, {type: Frozen, status: "True"}]`):                                                              `"Frozen"`,
			observedStatus(`conditions: [{type: Available, status: "True"}, {type: ReplicaFailure, status: "True"}]`):                                                      `"ReplicaFailure"`,
			manualUpdateManifest(observedStatus(`replicas: 2, updatedReplicas: 1, conditions: [{type: Available, status: "True"}, {type: Progressing, status: "False"}]`)): "",
			manualUpdateManifest(observedStatus(`replicas: 2, updatedReplicas: 2, conditions: [{type: Available, status: "True"}, {type: Progressing, status: "False"}]`)): `"Progressing" has status False`,
		}},
		"Seed": {"core.gardener.cloud/v1beta1", "Seed", cases{
			`status: {observedGeneration: 1}`: "outdated (1/2)", observedStatus(``): `"GardenletReady" is missing`,
			observedStatus(`conditions: [{type: GardenletReady, status: "True"}]`):                                                           `"SeedSystemComponentsHealthy" is missing`,
			observedStatus(`conditions: [{type: GardenletReady, status: "True"}, {type: SeedSystemComponentsHealthy, status: Progressing}]`): "Progressing",
			observedStatus(`conditions: [{type: GardenletReady, status: "True"}, {type: SeedSystemComponentsHealthy, status: "True"}]`):      "",
		}},
		"ManagedSeed": {"seedmanagement.gardener.cloud/v1alpha1", "ManagedSeed", cases{
			`status: {observedGeneration: 1}`: "outdated (1/2)", observedStatus(``): `"ShootReconciled" is missing`,
			observedStatus(`conditions: [{type: ShootReconciled, status: "True"}]`):                                          `"SeedRegistered" is missing`,
			observedStatus(`conditions: [{type: ShootReconciled, status: "False"}, {type: SeedRegistered, status: "True"}]`): `"ShootReconciled" has status False`,
			observedStatus(`conditions: [{type: ShootReconciled, status: "True"}, {type: SeedRegistered, status: "True"}]`):  "",
		}},
		"extension": {"extensions.gardener.cloud/v1alpha1", "Worker", cases{
			`status: {lastError: {description: no quota}, observedGeneration: 1}`: "no quota",
			observedStatus(`lastError: null, lastOperation: {state: Succeeded}`):  "",
			`status: {observedGeneration: 3}`:                                     "outdated (3/2)",
			observedStatus(``):                                                    "has not reported an operation",
			observedStatus(`lastOperation: {state: Error, description: broken}`):  "broken",
			observedStatus(`lastOperation: {state: Succeeded}`):                   "",
		}},
	})
}

func monitoringCases() map[string]string {
	return map[string]string{
		`spec: {}`: `"Available" is missing`,
		`status: {conditions: [{type: Available, status: "True", observedGeneration: 1}]}`:                                            "outdated (1/2)",
		`status: {conditions: [{type: Available, status: Degraded, observedGeneration: 2}]}`:                                          "Degraded",
		`status: {conditions: [{type: Available, status: "True", observedGeneration: 2}]}`:                                            "(0/1)",
		`status: {availableReplicas: 1, conditions: [{type: Available, status: "True", observedGeneration: 2}]}`:                      "",
		`spec: {replicas: 2}, status: {availableReplicas: 1, conditions: [{type: Available, status: "True", observedGeneration: 2}]}`: "(1/2)",
	}
}

func manualUpdateManifest(rest string) string {
	return `spec: {strategy: {type: InPlaceUpdate, inPlaceUpdate: {orchestrationType: Manual}}}, ` + rest
}

func TestGardenerProgressing(t *testing.T) {
	for name, c := range map[string]struct {
		apiVersion, kind, rest, want string
	}{
		"Deployment not observed":      {"apps/v1", "Deployment", `status: {observedGeneration: 1}`, "outdated (1/2)"},
		"Deployment without condition": {"apps/v1", "Deployment", observedStatus(``), `"Progressing" is missing`},
		"Deployment not True":          {"apps/v1", "Deployment", observedStatus(`conditions: [{type: Progressing, status: "False", reason: NewReplicaSetAvailable, message: why}]`), "why"},
		"Deployment other reason":      {"apps/v1", "Deployment", observedStatus(`conditions: [{type: Progressing, status: "True", reason: ReplicaSetUpdated, message: why}]`), "why"},
		"Deployment done":              {"apps/v1", "Deployment", observedStatus(`conditions: [{type: Progressing, status: "True", reason: NewReplicaSetAvailable}]`), ""},
		"StatefulSet not observed":     {"apps/v1", "StatefulSet", `status: {updatedReplicas: 1}`, "outdated (0/2)"},
		"StatefulSet updating":         {"apps/v1", "StatefulSet", `spec: {replicas: 2}, ` + observedStatus(`updatedReplicas: 1`), "1 of 2"},
		"StatefulSet done":             {"apps/v1", "StatefulSet", observedStatus(`updatedReplicas: 1`), ""},
		"DaemonSet not observed":       {"apps/v1", "DaemonSet", `status: {}`, "outdated (0/2)"},
		"DaemonSet updating":           {"apps/v1", "DaemonSet", observedStatus(`desiredNumberScheduled: 2, updatedNumberScheduled: 1`), "1 of 2"},
		"DaemonSet done":               {"apps/v1", "DaemonSet", observedStatus(`desiredNumberScheduled: 2, updatedNumberScheduled: 2`), ""},
		"Prometheus":                   {"monitoring.coreos.com/v1", "Prometheus", `status: {updatedReplicas: 1}`, `"Reconciled" is missing`},
		"Prometheus not observed":      {"monitoring.coreos.com/v1", "Prometheus", `status: {updatedReplicas: 1, conditions: [{type: Reconciled, status: "True", observedGeneration: 1}]}`, "outdated (1/2)"},
		"Prometheus failed":            {"monitoring.coreos.com/v1", "Prometheus", `status: {updatedReplicas: 1, conditions: [{type: Reconciled, status: "False", observedGeneration: 2}]}`, "False"},
		"Alertmanager updating":        {"monitoring.coreos.com/v1", "Alertmanager", `status: {conditions: [{type: Reconciled, status: "True", observedGeneration: 2}]}`, "0 of 1"},
		"Alertmanager done":            {"monitoring.coreos.com/v1", "Alertmanager", `status: {updatedReplicas: 1, conditions: [{type: Reconciled, status: "True", observedGeneration: 2}]}`, ""},
		"Certificate":                  {"cert.gardener.cloud/v1alpha1", "Certificate", `status: {observedGeneration: 1}`, "outdated (1/2)"},
		"Issuer":                       {"cert.gardener.cloud/v1alpha1", "Issuer", observedStatus(``), ""},
		"kinds without a rule":         {"v1", "Service", `spec: {type: LoadBalancer}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			v := health.Check(object(t, manifest(c.apiVersion, c.kind, c.rest)))
			assert.Equal(t, c.want != "", v.Progressing, "%+v", v)
			if c.want != "" && v.Healthy {
				assert.Contains(t, v.Message, c.want)
			}
		})
	}
	for name, f := range map[string]func(*unstructured.Unstructured) (bool, string){
		"Deployment": health.IsDeploymentProgressing, "StatefulSet": health.IsStatefulSetProgressing, "DaemonSet": health.IsDaemonSetProgressing,
		"Prometheus": health.IsPrometheusProgressing, "Alertmanager": health.IsAlertmanagerProgressing,
		"Certificate": health.IsCertificateProgressing, "Issuer": health.IsCertificateIssuerProgressing,
	} {
		progressing, message := f(object(t, manifest("x/v1", name, `status: {}`)))
		assert.True(t, progressing, name)
		assert.NotEmpty(t, message, name)
	}
}

func TestNodeCodes(t *testing.T) {
	v := health.Check(object(t, manifest("v1", "Node", `status: {conditions: [{type: Ready, status: "True"}, {type: DiskPressure, status: "True", reason: KubeletHasDiskPressure}]}`)))
	assert.Equal(t, []string{"ERR_CONFIGURATION_PROBLEM"}, v.Codes)
}
