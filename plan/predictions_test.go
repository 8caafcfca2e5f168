// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/controllers/conventions"
	"github.com/pergola-dev/pergola/hack/apiserver"
	"github.com/pergola-dev/pergola/plan"
	"github.com/pergola-dev/pergola/render"
)

const (
	podTemplate = `template: {metadata: {labels: {app: x, more: also}}, spec: {containers: [{name: a, image: "a:1"}]}}`
	jobPods     = `template: {metadata: {labels: {app: x, more: also}}, spec: {restartPolicy: Never, containers: [{name: a, image: "a:1"}]}}`
)

// baseObjects are the objects that the cases patch.
var baseObjects = map[string]string{
	"deployment":  `{apiVersion: apps/v1, kind: Deployment, metadata: {name: NS, namespace: NS}, spec: {replicas: 0, selector: {matchLabels: {app: x}}, ` + podTemplate + `}}`,
	"probed":      `{apiVersion: apps/v1, kind: Deployment, metadata: {name: NS, namespace: NS}, spec: {replicas: 0, selector: {matchLabels: {app: x}}, template: {metadata: {labels: {app: x}}, spec: {containers: [{name: a, image: "a:1", livenessProbe: {httpGet: {port: 80}}, lifecycle: {preStop: {httpGet: {port: 80}}}}], volumes: [{name: c, configMap: {name: a}}, {name: h, hostPath: {path: /a}}, {name: none}]}}}}`,
	"rolling":     `{apiVersion: apps/v1, kind: Deployment, metadata: {name: NS, namespace: NS}, spec: {replicas: 0, strategy: {rollingUpdate: {maxSurge: 1}}, selector: {matchLabels: {app: x}}, ` + podTemplate + `}}`,
	"preserved":   `{apiVersion: apps/v1, kind: Deployment, metadata: {name: NS, namespace: NS, annotations: {resources.gardener.cloud/preserve-replicas: "true", resources.gardener.cloud/preserve-resources: "true"}}, spec: {replicas: 0, selector: {matchLabels: {app: x}}, template: {metadata: {labels: {app: x}}, spec: {containers: [{name: a, image: "a:1", resources: {requests: {cpu: 1, memory: 1Gi}}}]}}}}`,
	"said":        `{apiVersion: apps/v1, kind: Deployment, metadata: {name: NS, namespace: NS}, spec: {replicas: 0, strategy: {type: RollingUpdate}, selector: {matchLabels: {app: x}}, ` + podTemplate + `}}`,
	"said set":    `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: NS, namespace: NS}, spec: {replicas: 0, serviceName: s, updateStrategy: {type: RollingUpdate}, selector: {matchLabels: {app: x}}, ` + podTemplate + `}}`,
	"said parts":  `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: NS, namespace: NS}, spec: {replicas: 0, serviceName: s, updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: 1}}, selector: {matchLabels: {app: x}}, ` + podTemplate + `}}`,
	"daemonset":   `{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: NS, namespace: NS}, spec: {selector: {matchLabels: {app: x}}, ` + podTemplate + `}}`,
	"replicaset":  `{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: NS, namespace: NS}, spec: {replicas: 0, selector: {matchLabels: {app: x}}, ` + podTemplate + `}}`,
	"controller":  `{apiVersion: v1, kind: ReplicationController, metadata: {name: NS, namespace: NS}, spec: {replicas: 0, selector: {app: x}, ` + podTemplate + `}}`,
	"statefulset": `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: NS, namespace: NS}, spec: {replicas: 0, serviceName: s, selector: {matchLabels: {app: x}}, ` + podTemplate + `, volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]}}`,
	"job":         `{apiVersion: batch/v1, kind: Job, metadata: {name: NS, namespace: NS}, spec: {completions: 2, backoffLimit: 5, ` + jobPods + `}}`,
	"suspended":   `{apiVersion: batch/v1, kind: Job, metadata: {name: NS, namespace: NS}, spec: {suspend: true, ` + jobPods + `}}`,
	"indexed":     `{apiVersion: batch/v1, kind: Job, metadata: {name: NS, namespace: NS}, spec: {completions: 2, parallelism: 2, completionMode: Indexed, ` + jobPods + `}}`,
	"cronjob":     `{apiVersion: batch/v1, kind: CronJob, metadata: {name: NS, namespace: NS}, spec: {schedule: "0 0 * * *", jobTemplate: {spec: {completions: 2, ` + jobPods + `}}}}`,
	"pod":         `{apiVersion: v1, kind: Pod, metadata: {name: NS, namespace: NS}, spec: {automountServiceAccountToken: false, terminationGracePeriodSeconds: 5, activeDeadlineSeconds: 100, containers: [{name: a, image: "a:1", env: [{name: A, value: b}]}], initContainers: [{name: i, image: "i:1"}], tolerations: [{key: a, operator: Exists}]}}`,
	"service":     `{apiVersion: v1, kind: Service, metadata: {name: NS, namespace: NS}, spec: {selector: {a: b}, ports: [{port: 80}]}}`,
	"address":     `{apiVersion: v1, kind: Service, metadata: {name: NS, namespace: NS}, spec: {clusterIP: 10.0.0.201, selector: {a: b}, ports: [{port: 80}]}}`,
	"headless":    `{apiVersion: v1, kind: Service, metadata: {name: NS, namespace: NS}, spec: {clusterIP: None, selector: {a: b}, ports: [{port: 80}]}}`,
	"balanced":    `{apiVersion: v1, kind: Service, metadata: {name: NS, namespace: NS}, spec: {type: LoadBalancer, externalTrafficPolicy: Local, loadBalancerClass: a/b, ipFamilies: [IPv4], ipFamilyPolicy: SingleStack, selector: {a: b}, ports: [{name: a, port: 80, nodePort: 30123}]}}`,
	"outside":     `{apiVersion: v1, kind: Service, metadata: {name: NS, namespace: NS}, spec: {type: ExternalName, externalName: example.com}}`,
	"claim":       `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: NS, namespace: NS}, spec: {storageClassName: fast, volumeName: v, accessModes: [ReadWriteOnce], resources: {requests: {storage: 2Gi}}}}`,
	"volume":      `{apiVersion: v1, kind: PersistentVolume, metadata: {name: NS}, spec: {persistentVolumeReclaimPolicy: Retain, accessModes: [ReadWriteOnce], capacity: {storage: 1Gi}, hostPath: {path: /a}, nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Exists}]}]}}}}`,
	"csi volume":  `{apiVersion: v1, kind: PersistentVolume, metadata: {name: NS}, spec: {accessModes: [ReadWriteOnce], capacity: {storage: 1Gi}, csi: {driver: a.b, volumeHandle: v}}}`,
	"quota":       `{apiVersion: v1, kind: ResourceQuota, metadata: {name: NS, namespace: NS}, spec: {scopes: [BestEffort], hard: {pods: 1}}}`,
	"secret":      `{apiVersion: v1, kind: Secret, metadata: {name: NS, namespace: NS}, stringData: {a: b}}`,
	"frozen":      `{apiVersion: v1, kind: ConfigMap, metadata: {name: NS, namespace: NS}, immutable: true, data: {a: b}}`,
	"config":      `{apiVersion: v1, kind: ConfigMap, metadata: {name: NS, namespace: NS}, data: {a: b}}`,
	"namespace":   `{apiVersion: v1, kind: Namespace, metadata: {name: NS-more, labels: {a: b}}}`,
	"node":        `{apiVersion: v1, kind: Node, metadata: {name: NS}, spec: {providerID: a}}`,
	"binding":     `{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: NS, namespace: NS}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}, subjects: [{kind: User, name: a, apiGroup: rbac.authorization.k8s.io}]}`,
	"everywhere":  `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: NS}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}}`,
	"class":       `{apiVersion: networking.k8s.io/v1, kind: IngressClass, metadata: {name: NS}, spec: {controller: a.b/c}}`,
	"ingress":     `{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: NS, namespace: NS}, spec: {ingressClassName: a, defaultBackend: {service: {name: a, port: {number: 80}}}}}`,
	"policy":      `{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: NS, namespace: NS}, spec: {podSelector: {matchLabels: {a: b}}}}`,
	"slice":       `{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: NS, namespace: NS}, addressType: IPv4, endpoints: [{addresses: [1.2.3.4]}], ports: [{port: 80}]}`,
	"priority":    `{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: NS}, value: 5, description: a}`,
	"runtime":     `{apiVersion: node.k8s.io/v1, kind: RuntimeClass, metadata: {name: NS}, handler: a}`,
	"storage":     `{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: NS}, provisioner: a, parameters: {a: b}, volumeBindingMode: Immediate, reclaimPolicy: Retain}`,
	"driver":      `{apiVersion: storage.k8s.io/v1, kind: CSIDriver, metadata: {name: NS.example.com}, spec: {attachRequired: true, podInfoOnMount: true, fsGroupPolicy: File, volumeLifecycleModes: [Persistent]}}`,
	"attributes":  `{apiVersion: storage.k8s.io/v1, kind: VolumeAttributesClass, metadata: {name: NS}, driverName: a.b, parameters: {a: b}}`,
	"capacity":    `{apiVersion: storage.k8s.io/v1, kind: CSIStorageCapacity, metadata: {name: NS, namespace: NS}, storageClassName: a, nodeTopology: {matchLabels: {a: b}}, capacity: 1Gi}`,
	"lease":       `{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: NS, namespace: NS}, spec: {holderIdentity: a}}`,
	"budget":      `{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: NS, namespace: NS}, spec: {minAvailable: 1, selector: {matchLabels: {a: b}}}}`,
	"scaler":      `{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: NS, namespace: NS}, spec: {maxReplicas: 3, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: a}}}`,
	"webhook":     `{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: NS}, webhooks: [{name: a.b.c, admissionReviewVersions: [v1], sideEffects: None, failurePolicy: Ignore, clientConfig: {url: "https://127.0.0.1:1"}, namespaceSelector: {matchLabels: {never: there}}, rules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}]}`,
	"definition":  `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: widgets.NS.example.com}, spec: {group: NS.example.com, scope: Namespaced, names: {kind: Widget, plural: widgets}, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}, {name: v2, served: true, storage: false, schema: {openAPIV3Schema: {type: object}}}]}}`,
	"api service": `{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: v1.NS.example.com}, spec: {group: NS.example.com, version: v1, groupPriorityMinimum: 100, versionPriority: 100, insecureSkipTLSVerify: true, service: {name: a, namespace: NS}}}`,
}

const recreateAnnotations = `metadata: {annotations: {resources.gardener.cloud/delete-on-invalid-update: "true", resources.gardener.cloud/deletion-propagation-on-invalid-update: Background}}, `

// patchCases are patches of these objects (null removes a field), with the expected result.
var patchCases = []struct {
	base, patch string
	want        change.Action
	said        string
}{
	{"deployment", `spec: {selector: {matchLabels: {more: also}}}`, change.Fail, "spec.selector"},
	{"deployment", recreateAnnotations + `spec: {selector: {matchLabels: {more: also}}}`, change.Recreate, "spec.selector"},
	{"deployment", `spec: {strategy: {type: Recreate}}`, change.Change, ""},
	{"deployment", `spec: {strategy: {rollingUpdate: {maxSurge: 1}}, minReadySeconds: 5, paused: true}`, change.Change, ""},
	{"rolling", `spec: {strategy: {type: Recreate, rollingUpdate: null}}`, change.Change, ""},
	{"deployment", `spec: {template: {spec: {containers: [{name: a, image: "a:1", livenessProbe: {tcpSocket: {port: 80}}}]}}}`, change.Change, ""},
	{"probed", `spec: {template: {spec: {containers: [{name: a, image: "a:1", livenessProbe: {tcpSocket: {port: 80}}, lifecycle: {preStop: {httpGet: {port: 80}}}}], volumes: [{name: c, configMap: {name: a}}, {name: h, hostPath: {path: /a}}, {name: none}]}}}`, change.Change, ""},
	{"probed", `spec: {template: {spec: {containers: [{name: a, image: "a:1", livenessProbe: {httpGet: {port: 80}}, lifecycle: {preStop: {exec: {command: [a]}}}}], volumes: [{name: c, configMap: {name: a}}, {name: h, hostPath: {path: /a}}, {name: none}]}}}`, change.Change, ""},
	{"probed", `spec: {template: {spec: {containers: [{name: a, image: "a:1", livenessProbe: {httpGet: {port: 80}}, lifecycle: {preStop: {httpGet: {port: 80}}}}], volumes: [{name: c, secret: {secretName: a}}, {name: h, hostPath: {path: /a}}, {name: none}]}}}`, change.Change, ""},
	{"probed", `spec: {template: {spec: {containers: [{name: a, image: "a:1", livenessProbe: {httpGet: {port: 80}}, lifecycle: {preStop: {httpGet: {port: 80}}}}], volumes: [{name: c, configMap: {name: a}}, {name: h, emptyDir: {}}, {name: none}]}}}`, change.Change, ""},
	{"probed", `spec: {template: {spec: {containers: [{name: a, image: "a:1", livenessProbe: {httpGet: {port: 80}}, lifecycle: {preStop: {httpGet: {port: 80}}}}], volumes: [{name: c, configMap: {name: a}}, {name: h, hostPath: {path: /a}}, {name: none, secret: {secretName: a}}]}}}`, change.Change, ""},
	{"daemonset", `spec: {selector: {matchLabels: {more: also}}}`, change.Fail, "spec.selector"},
	{"daemonset", `spec: {updateStrategy: {type: OnDelete}}`, change.Change, ""},
	{"replicaset", `spec: {selector: {matchLabels: {more: also}}}`, change.Fail, "spec.selector"},
	{"controller", `spec: {selector: {more: also}}`, change.Change, ""},
	{"statefulset", `spec: {serviceName: t}`, change.Fail, "spec.serviceName"},
	{"statefulset", recreateAnnotations + `spec: {podManagementPolicy: Parallel}`, change.Recreate, "spec.podManagementPolicy"},
	{"statefulset", `spec: {selector: {matchLabels: {more: also}}}`, change.Fail, "spec.selector"},
	{"statefulset", `spec: {ordinals: {start: 1}, minReadySeconds: 5, revisionHistoryLimit: 3, persistentVolumeClaimRetentionPolicy: {whenDeleted: Delete}}`, change.Change, ""},
	{"statefulset", `spec: {updateStrategy: {type: OnDelete}}`, change.Change, ""},
	{"preserved", `spec: {replicas: 3}`, change.Change, "keeps its live value"},
	{"preserved", `spec: {template: {spec: {containers: [{name: a, image: "a:1", resources: {requests: {cpu: 2, memory: 1Gi}}}]}}}`, change.Change, "keeps its live value"},
	{"preserved", `spec: {replicas: 2, template: {spec: {containers: [{name: a, image: "a:1"}]}}}`, change.Change, "keeps its live value"},
	{"preserved", `spec: {template: {spec: {containers: [{name: a, image: "a:1", resources: {limits: {memory: 3Gi}, requests: {cpu: 1, memory: 1Gi}}}]}}}`, change.Change, ""},
	{"deployment", `spec: {replicas: null}`, change.Change, "keeps its live value"},
	{"said", `spec: {strategy: {type: Recreate}}`, change.Change, ""},
	{"said set", `spec: {updateStrategy: {type: OnDelete}}`, change.Change, ""},
	{"said parts", `spec: {updateStrategy: {type: OnDelete, rollingUpdate: null}}`, change.Change, ""},
	{"statefulset", `spec: {volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 2Gi}}}}]}`, change.Change, "volumeClaimTemplates"},
	{"statefulset", recreateAnnotations + `spec: {volumeClaimTemplates: null}`, change.Change, "volumeClaimTemplates"},
	{"statefulset", `spec: {serviceName: t, volumeClaimTemplates: null}`, change.Fail, "spec.serviceName"},
	{"job", `spec: {completions: 3}`, change.Fail, "spec.completions"},
	{"job", `spec: {parallelism: 3, backoffLimit: 7, activeDeadlineSeconds: 100, ttlSecondsAfterFinished: 5}`, change.Change, ""},
	{"job", `spec: {template: {spec: {containers: [{name: a, image: "a:2"}]}}}`, change.Fail, "spec.template"},
	{"job", recreateAnnotations + `spec: {template: {spec: {containers: [{name: a, image: "a:2"}]}}}`, change.Recreate, "spec.template"},
	{"job", `spec: {template: {metadata: {labels: {new: z}}}}`, change.Fail, "spec.template"},
	{"job", `spec: {template: {metadata: {labels: {more: null}}}}`, change.Change, "spec.template.metadata.labels.more"},
	{"job", `spec: {completionMode: Indexed}`, change.Fail, "spec.completionMode"},
	{"indexed", `spec: {backoffLimitPerIndex: 1}`, change.Fail, "spec.backoffLimitPerIndex"},
	{"job", `spec: {suspend: true}`, change.Change, ""},
	{"suspended", `spec: {template: {spec: {nodeSelector: {a: b}}}}`, change.Change, ""},
	{"suspended", `spec: {template: {spec: {containers: [{name: a, image: "a:2"}]}}}`, change.Fail, "spec.template"},
	{"indexed", `spec: {completions: 3, parallelism: 3}`, change.Change, ""},
	{"indexed", `spec: {completions: 3}`, change.Fail, "spec.completions"},
	{"cronjob", `spec: {schedule: "1 0 * * *", jobTemplate: {spec: {completions: 3, template: {spec: {containers: [{name: a, image: "a:2"}]}}}}}`, change.Change, ""},
	{"pod", `spec: {containers: [{name: a, image: "a:2", env: [{name: A, value: b}]}]}`, change.Change, ""},
	{"pod", `spec: {initContainers: [{name: i, image: "i:2"}], activeDeadlineSeconds: 50, tolerations: [{key: a, operator: Exists}, {key: b, operator: Exists}]}`, change.Change, ""},
	{"pod", `spec: {containers: [{name: a, image: "a:1", env: [{name: A, value: c}]}]}`, change.Fail, "spec.containers[name=a].env[name=A].value"},
	{"pod", `spec: {activeDeadlineSeconds: 500}`, change.Fail, "spec.activeDeadlineSeconds"},
	{"pod", `spec: {activeDeadlineSeconds: null}`, change.Fail, "spec.activeDeadlineSeconds"},
	{"pod", `spec: {terminationGracePeriodSeconds: 7}`, change.Fail, "spec.terminationGracePeriodSeconds"},
	{"pod", `spec: {nodeSelector: {a: b}}`, change.Fail, "spec.nodeSelector"},
	{"pod", recreateAnnotations + `spec: {nodeSelector: {a: b}}`, change.Recreate, "spec.nodeSelector"},
	{"pod", `metadata: {labels: {a: b}}`, change.Change, ""},
	{"service", `spec: {clusterIP: None}`, change.Fail, "spec.clusterIP"},
	{"service", recreateAnnotations + `spec: {clusterIP: None}`, change.Recreate, "spec.clusterIP"},
	{"service", `spec: {clusterIP: 10.0.0.202}`, change.Change, "keeps its value"},
	{"service", `spec: {type: NodePort, selector: {c: d}, ports: [{port: 81}]}`, change.Change, ""},
	{"service", `spec: {type: LoadBalancer, loadBalancerClass: a/b}`, change.Change, ""},
	{"service", `spec: {type: ExternalName, externalName: example.com}`, change.Change, ""},
	{"address", `spec: {clusterIP: 10.0.0.202}`, change.Change, "keeps its value"},
	{"address", `spec: {clusterIP: null}`, change.Change, "keeps its value"},
	{"address", `spec: {clusterIP: None}`, change.Fail, "spec.clusterIP"},
	{"headless", `spec: {clusterIP: null}`, change.Change, "keeps its value"},
	{"headless", `spec: {clusterIP: 10.0.0.202}`, change.Change, "keeps its value"},
	{"headless", `spec: {clusterIP: null, type: LoadBalancer}`, change.Fail, "spec.type"},
	{"headless", `spec: {clusterIP: null, type: ExternalName, externalName: example.com}`, change.Change, ""},
	{"balanced", `spec: {loadBalancerClass: c/d}`, change.Fail, "spec.loadBalancerClass"},
	{"balanced", `spec: {loadBalancerClass: null}`, change.Fail, "spec.loadBalancerClass"},
	{"balanced", `spec: {type: ClusterIP, loadBalancerClass: null, externalTrafficPolicy: null, ports: [{name: a, port: 80}]}`, change.Change, ""},
	{"balanced", `spec: {ipFamilies: [IPv6]}`, change.Fail, "spec.ipFamilies"},
	{"balanced", `spec: {ipFamilies: null, ipFamilyPolicy: null}`, change.Change, "keeps its value"},
	{"balanced", `spec: {ports: [{name: a, port: 80}]}`, change.Change, "keeps its value"},
	{"balanced", `spec: {ports: [{name: a, port: 80, nodePort: 30124}]}`, change.Change, ""},
	{"balanced", `spec: {externalTrafficPolicy: Cluster}`, change.Change, ""},
	{"outside", `spec: {type: ClusterIP, externalName: null, ports: [{port: 80}]}`, change.Change, ""},
	{"outside", `spec: {type: ClusterIP, clusterIP: None, externalName: null, ports: [{port: 80}]}`, change.Change, ""},
	{"claim", `spec: {resources: {requests: {storage: 1Gi}}}`, change.Fail, "spec.resources.requests.storage"},
	{"claim", recreateAnnotations + `spec: {resources: {requests: {storage: 1Gi}}}`, change.Fail, "never recreated"},
	{"claim", `spec: {resources: {requests: {storage: 3Gi}}}`, change.Change, ""},
	{"claim", `spec: {storageClassName: slow}`, change.Fail, "spec.storageClassName"},
	{"claim", `spec: {storageClassName: null}`, change.Change, "keeps its value"},
	{"claim", `spec: {volumeName: w}`, change.Fail, "spec.volumeName"},
	{"claim", `spec: {volumeName: null}`, change.Change, "keeps its value"},
	{"claim", `spec: {accessModes: [ReadWriteMany]}`, change.Fail, "spec.accessModes"},
	{"claim", `spec: {volumeMode: Block}`, change.Fail, "spec.volumeMode"},
	{"claim", `spec: {selector: {matchLabels: {a: b}}}`, change.Fail, "spec.selector"},
	{"claim", `spec: {volumeAttributesClassName: a}`, change.Change, ""},
	{"claim", `metadata: {annotations: {volume.beta.kubernetes.io/storage-class: a}}`, change.Fail, "storage-class"},
	{"volume", `spec: {hostPath: {path: /b}}`, change.Fail, "spec.hostPath.path"},
	{"volume", recreateAnnotations + `spec: {hostPath: {path: /b}}`, change.Fail, "never recreated"},
	{"volume", `spec: {hostPath: null, local: {path: /a}}`, change.Fail, "spec.local"},
	{"volume", `spec: {volumeMode: Block}`, change.Fail, "spec.volumeMode"},
	{"volume", `spec: {nodeAffinity: null}`, change.Fail, "spec.nodeAffinity"},
	{"volume", `spec: {persistentVolumeReclaimPolicy: Delete, capacity: {storage: 2Gi}, storageClassName: a, mountOptions: [ro], accessModes: [ReadWriteMany]}`, change.Change, ""},
	{"csi volume", `spec: {csi: {controllerExpandSecretRef: {name: a, namespace: b}}}`, change.Change, ""},
	{"csi volume", `spec: {csi: {volumeHandle: w}}`, change.Fail, "spec.csi.volumeHandle"},
	{"csi volume", `spec: {nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Exists}]}]}}}`, change.Change, ""},
	{"quota", `spec: {scopes: [NotTerminating]}`, change.Fail, "spec.scopes"},
	{"quota", `spec: {hard: {pods: 2}}`, change.Change, ""},
	{"secret", `type: example.com/a`, change.Fail, "type"},
	{"secret", recreateAnnotations + `type: example.com/a`, change.Recreate, "type"},
	{"secret", `stringData: {a: c}`, change.Change, ""},
	{"secret", `immutable: true`, change.Change, ""},
	{"frozen", `data: {a: c}`, change.Recreate, "data.a"},
	{"frozen", `immutable: null`, change.Recreate, "immutable"},
	{"frozen", `metadata: {labels: {a: b}}`, change.Change, ""},
	{"config", `data: {a: c}, immutable: true`, change.Change, ""},
	{"namespace", `metadata: {labels: {a: c}}`, change.Change, ""},
	{"node", `spec: {providerID: b}`, change.Fail, "spec.providerID"},
	{"node", `spec: {unschedulable: true}`, change.Change, ""},
	{"binding", `roleRef: {name: edit}`, change.Fail, "roleRef"},
	{"binding", recreateAnnotations + `roleRef: {name: edit}`, change.Recreate, "roleRef"},
	{"binding", `subjects: [{kind: User, name: b, apiGroup: rbac.authorization.k8s.io}]`, change.Change, ""},
	{"everywhere", `roleRef: {name: edit}`, change.Fail, "roleRef"},
	{"class", `spec: {controller: d.e/f}`, change.Fail, "spec.controller"},
	{"class", `spec: {parameters: {kind: A, name: a}}`, change.Change, ""},
	{"ingress", `spec: {ingressClassName: b}`, change.Change, ""},
	{"policy", `spec: {podSelector: {matchLabels: {a: c}}}`, change.Change, ""},
	{"policy", `spec: {egress: [{to: [{podSelector: {}}]}]}`, change.Change, ""},
	{"slice", `addressType: IPv6, endpoints: [{addresses: ["fd00::1"]}]`, change.Fail, "addressType"},
	{"slice", `endpoints: [{addresses: [1.2.3.5]}]`, change.Change, ""},
	{"priority", `value: 6`, change.Fail, "value"},
	{"priority", recreateAnnotations + `preemptionPolicy: Never`, change.Recreate, "preemptionPolicy"},
	{"priority", `description: b`, change.Change, ""},
	{"runtime", `handler: b`, change.Fail, "handler"},
	{"runtime", `scheduling: {nodeSelector: {a: b}}`, change.Change, ""},
	{"storage", `provisioner: b`, change.Fail, "provisioner"},
	{"storage", `parameters: {a: c}`, change.Fail, "parameters"},
	{"storage", `parameters: null`, change.Fail, "parameters"},
	{"storage", recreateAnnotations + `reclaimPolicy: Delete`, change.Recreate, "reclaimPolicy"},
	{"storage", `volumeBindingMode: WaitForFirstConsumer`, change.Fail, "volumeBindingMode"},
	{"storage", `allowVolumeExpansion: true, mountOptions: [ro]`, change.Change, ""},
	{"driver", `spec: {attachRequired: false}`, change.Fail, "spec.attachRequired"},
	{"driver", `spec: {volumeLifecycleModes: [Ephemeral]}`, change.Fail, "spec.volumeLifecycleModes"},
	{"driver", `spec: {podInfoOnMount: false, fsGroupPolicy: None, storageCapacity: true, requiresRepublish: true, seLinuxMount: true}`, change.Change, ""},
	{"attributes", `parameters: {a: c}`, change.Fail, "parameters"},
	{"attributes", `driverName: c.d`, change.Fail, "driverName"},
	{"capacity", `storageClassName: b`, change.Fail, "storageClassName"},
	{"capacity", `nodeTopology: {matchLabels: {a: c}}`, change.Fail, "nodeTopology"},
	{"capacity", `capacity: 2Gi`, change.Change, ""},
	{"lease", `spec: {holderIdentity: b}`, change.Change, ""},
	{"budget", `spec: {minAvailable: null, maxUnavailable: 1, selector: {matchLabels: {a: c}}}`, change.Change, ""},
	{"scaler", `spec: {maxReplicas: 5, scaleTargetRef: {name: b}}`, change.Change, ""},
	{"webhook", `webhooks: null`, change.Change, ""},
	{"definition", `spec: {scope: Cluster}`, change.Fail, "spec.scope"},
	{"definition", recreateAnnotations + `spec: {names: {kind: Gadget}}`, change.Fail, "spec.names.kind"},
	{"definition", `spec: {versions: [{name: v2, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]}`, change.Fail, "spec.versions[name=v1]"},
	{"definition", `spec: {versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]}`, change.Change, ""},
	{"definition", `spec: {versions: [{name: v1, served: false, storage: false, schema: {openAPIV3Schema: {type: object}}}, {name: v2, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]}`, change.Change, ""},
	{"definition", `spec: {names: {shortNames: [w], singular: wi, listKind: Widgets}}`, change.Change, ""},
	{"api service", `spec: {group: other.example.com}`, change.Fail, "spec.group"},
	{"api service", `spec: {service: {name: b}}`, change.Change, ""},
}

// TestProtectedKindsAreNeverRecreated: the engine never recreates objects of protected kinds.
func TestProtectedKindsAreNeverRecreated(t *testing.T) {
	for _, gk := range conventions.ProtectedKinds() {
		o := func(region string) *unstructured.Unstructured {
			return &unstructured.Unstructured{Object: map[string]any{"apiVersion": schema.GroupVersion{Group: gk.Group, Version: "v1"}.String(), "kind": gk.Kind,
				"metadata": map[string]any{"name": "a", "annotations": map[string]any{"resources.gardener.cloud/delete-on-invalid-update": "true"}},
				"spec":     map[string]any{"region": region, "storageClassName": region, "scope": region, "hostPath": region, "seedName": region}}}
		}
		assert.NotEqual(t, change.Recreate, predicted(t, o("a"), o("b")).Action, gk)
	}
}

func versions(t *testing.T, base, patch, ns string) (old, new *unstructured.Unstructured) {
	t.Helper()
	read := func(text string) map[string]any {
		var out map[string]any
		raw, err := yaml.YAMLToJSON([]byte(strings.ReplaceAll(text, "NS", ns)))
		require.NoError(t, err, text)
		o := &unstructured.Unstructured{}
		if err := o.UnmarshalJSON(raw); err == nil {
			return o.Object
		}
		require.NoError(t, yaml.Unmarshal(raw, &out))
		return out
	}
	require.NotEmpty(t, baseObjects[base], base)
	old = &unstructured.Unstructured{Object: read(baseObjects[base])}
	merged := merge(read(baseObjects[base]), read("{"+patch+"}"))
	raw, err := (&unstructured.Unstructured{Object: merged}).MarshalJSON()
	require.NoError(t, err)
	new = &unstructured.Unstructured{}
	require.NoError(t, new.UnmarshalJSON(raw))
	return old, new
}

func merge(into, patch map[string]any) map[string]any {
	for k, v := range patch {
		inner, isMap := v.(map[string]any)
		before, wasMap := into[k].(map[string]any)
		switch {
		case v == nil:
			delete(into, k)
		case isMap && wasMap:
			into[k] = merge(before, inner)
		default:
			into[k] = v
		}
	}
	return into
}

// predicted returns the item of a change in a diff.
func predicted(t *testing.T, old, new *unstructured.Unstructured) change.Item {
	t.Helper()
	place := func(o *unstructured.Unstructured) []plan.ClusterBundle {
		return []plan.ClusterBundle{{Cluster: "c", Bundle: render.Bundle{Name: "b", Objects: []render.Object{{Unstructured: o}}}}}
	}
	p := plan.CompareBundles(place(old), place(new))
	require.Len(t, p.Items, 1)
	return p.Items[0]
}

func TestRefusalsArePredicted(t *testing.T) {
	for _, c := range patchCases {
		t.Run(c.base+" "+c.patch, func(t *testing.T) {
			item := predicted(t, truncatedList(versions(t, c.base, c.patch, "ns")), second(versions(t, c.base, c.patch, "ns")))
			assert.Equal(t, c.want, item.Action, item.Reason)
			assert.Contains(t, item.Reason, c.said)
			assert.Equal(t, c.said == "", item.Reason == "", item.Reason)
		})
	}
}

func truncatedList(old, _ *unstructured.Unstructured) *unstructured.Unstructured { return old }
func second(_, new *unstructured.Unstructured) *unstructured.Unstructured        { return new }

// TestPredictionsComeTrue applies the same changes to an API server.
func TestPredictionsComeTrue(t *testing.T) {
	apiserver.SkipIfUnavailable(t)
	engine := conventions.NewEngine(apply.Options{Protected: conventions.ProtectedKinds()})
	api, err := dynamic.NewForConfig(plan.ServerConfig())
	require.NoError(t, err)
	cluster, err := conventions.NewCluster("test", plan.ServerConfig(), apply.ClusterOptions{})
	require.NoError(t, err)
	t.Cleanup(cluster.Close)
	class := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
		"metadata": map[string]any{"name": "fast"}, "provisioner": "a", "allowVolumeExpansion": true}}
	classes := api.Resource(schema.GroupVersionResource{Group: "storage.k8s.io", Version: "v1", Resource: "storageclasses"})
	_, err = classes.Create(context.Background(), class, metav1.CreateOptions{})
	require.NoError(t, err)
	all := slices.Clone(patchCases)
	for _, c := range patchCases {
		// Repeat the case with recreation allowed. This server has no second address family, and no
		// controller removes finalizers of classes.
		if c.want == change.Fail && !strings.HasPrefix(c.patch, "metadata:") && c.base != "attributes" && c.patch != `spec: {ipFamilies: [IPv6]}` {
			c.patch = recreateAnnotations + c.patch
			all = append(all, c)
		}
	}
	for i, c := range all {
		t.Run(c.base+" "+c.patch, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
			defer cancel()
			ns := fmt.Sprintf("p%d", i)
			old, new := versions(t, c.base, c.patch, ns)
			space := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": ns}}}
			inventory := apply.NewConfigMapInventory(cluster, ns, "inventory", nil)
			run := func(o *unstructured.Unstructured) (*apply.Result, error) {
				return engine.Apply(ctx, cluster, apply.Set{Name: ns + "/set", FieldManager: "pergola", Force: true, Objects: []*unstructured.Unstructured{o}}, inventory,
					apply.ApplyOptions{DeleteTimeout: time.Minute, NoPrune: true})
			}
			mapping, err := cluster.Mapping(ctx, space.GroupVersionKind())
			require.NoError(t, err)
			_, err = api.Resource(mapping.Resource).Create(ctx, space, metav1.CreateOptions{})
			require.NoError(t, err)
			_, err = run(old)
			require.NoError(t, err)
			mapping, err = cluster.Mapping(ctx, old.GroupVersionKind())
			require.NoError(t, err)
			resource := dynamic.ResourceInterface(api.Resource(mapping.Resource))
			if mapping.Scope.Name() == "namespace" {
				resource = api.Resource(mapping.Resource).Namespace(ns)
			}
			defer func() {
				zero := int64(0)
				_ = resource.Delete(context.Background(), old.GetName(), metav1.DeleteOptions{GracePeriodSeconds: &zero})
			}()
			if old.GetKind() == "PersistentVolumeClaim" {
				_, err := resource.Patch(ctx, old.GetName(), types.MergePatchType, []byte(`{"status":{"phase":"Bound","capacity":{"storage":"2Gi"}}}`), metav1.PatchOptions{}, "status")
				require.NoError(t, err)
			}

			before, err := resource.Get(ctx, old.GetName(), metav1.GetOptions{})
			require.NoError(t, err)
			result, err := run(new)
			if live, err := resource.Get(ctx, new.GetName(), metav1.GetOptions{}); err == nil && c.said == "keeps its live value" {
				assert.Equal(t, before.Object["spec"], live.Object["spec"], c.said)
			}
			if live, err := resource.Get(ctx, new.GetName(), metav1.GetOptions{}); err == nil && new.GetKind() == "NetworkPolicy" {
				types, _, _ := unstructured.NestedSlice(live.Object, "spec", "policyTypes")
				want := []any{"Ingress"}
				if _, there, _ := unstructured.NestedSlice(live.Object, "spec", "egress"); there {
					want = append(want, "Egress")
				}
				assert.Equal(t, want, types, "rules for egress that come later count, too")
			}
			require.NotNil(t, result, "%v", err)
			got := change.Change
			switch outcome := result.Objects[0]; {
			case outcome.Err != nil:
				got = change.Fail
			case outcome.Action == apply.Recreated:
				got = change.Recreate
			}
			assert.Equal(t, predicted(t, old, new).Action, got, "%v: %v", result.Objects[0].Action, err)
		})
	}
}
