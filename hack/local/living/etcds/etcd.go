// SPDX-License-Identifier: Apache-2.0

package etcds

import (
	"cmp"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Resource is the API resource of Etcds.
var Resource = schema.GroupVersionResource{Group: "druid.gardener.cloud", Version: "v1alpha1", Resource: "etcds"}

// Finalizer and annotations of Etcds.
const (
	finalizer                   = "druid.gardener.cloud/etcd-druid"
	operationAnnotation         = "gardener.cloud/operation"
	druidOperationAnnotation    = "druid.gardener.cloud/operation"
	reconcileOperation          = "reconcile"
	suspendAnnotation           = "druid.gardener.cloud/suspend-etcd-spec-reconcile"
	unhealthyEvictionAnnotation = "resources.druid.gardener.cloud/allow-unhealthy-pod-eviction"
	failAnnotation              = "local.pergola.dev/fail"
)

// etcd is an Etcd object with the fields that matter here.
type etcd struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec   spec   `json:"spec"`
	Status status `json:"status"`

	// hostOf returns the address of a member; if it is nil, the member has its name in the cluster.
	hostOf func(ordinal int32) string
}

type spec struct {
	Annotations           map[string]string  `json:"annotations"`
	Labels                map[string]string  `json:"labels"`
	Replicas              int32              `json:"replicas"`
	PriorityClassName     string             `json:"priorityClassName"`
	StorageCapacity       *resource.Quantity `json:"storageCapacity"`
	StorageClass          *string            `json:"storageClass"`
	VolumeClaimTemplate   string             `json:"volumeClaimTemplate"`
	Etcd                  server             `json:"etcd"`
	SharedConfig          sharedConfig       `json:"sharedConfig"`
	SchedulingConstraints struct {
		Affinity                  *corev1.Affinity                  `json:"affinity"`
		TopologySpreadConstraints []corev1.TopologySpreadConstraint `json:"topologySpreadConstraints"`
	} `json:"schedulingConstraints"`
}

type server struct {
	ClientPort    int32                        `json:"clientPort"`
	ServerPort    int32                        `json:"serverPort"`
	WrapperPort   int32                        `json:"wrapperPort"`
	ClientService clientService                `json:"clientService"`
	ClientURLTLS  *tlsRefs                     `json:"clientUrlTls"`
	PeerURLTLS    *tlsRefs                     `json:"peerUrlTls"`
	Metrics       string                       `json:"metrics"`
	Quota         *resource.Quantity           `json:"quota"`
	SnapshotCount int64                        `json:"snapshotCount"`
	Resources     *corev1.ResourceRequirements `json:"resources"`
}

type clientService struct {
	Annotations         map[string]string `json:"annotations"`
	Labels              map[string]string `json:"labels"`
	TrafficDistribution *string           `json:"trafficDistribution"`
}

type sharedConfig struct {
	AutoCompactionMode      string `json:"autoCompactionMode"`
	AutoCompactionRetention string `json:"autoCompactionRetention"`
}

// tlsRefs name the Secrets for etcd's clients or for its peers.
type tlsRefs struct {
	CA struct {
		Name    string `json:"name"`
		DataKey string `json:"dataKey"`
	} `json:"tlsCASecretRef"`
	Server corev1.LocalObjectReference `json:"serverTLSSecretRef"`
	Client corev1.LocalObjectReference `json:"clientTLSSecretRef"`
}

func (t *tlsRefs) caKey() string { return cmp.Or(t.CA.DataKey, "ca.crt") }

// parseEtcd decodes an Etcd and sets etcd-druid's defaults.
func parseEtcd(object *unstructured.Unstructured) (*etcd, error) {
	data, err := object.MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("reading Etcd: %w", err)
	}
	e := &etcd{}
	if err := json.Unmarshal(data, e); err != nil {
		return nil, fmt.Errorf("reading Etcd: %w", err)
	}
	s := &e.Spec
	s.VolumeClaimTemplate = cmp.Or(s.VolumeClaimTemplate, e.Name)
	s.Etcd.ClientPort = cmp.Or(s.Etcd.ClientPort, 2379)
	s.Etcd.ServerPort = cmp.Or(s.Etcd.ServerPort, 2380)
	s.Etcd.WrapperPort = cmp.Or(s.Etcd.WrapperPort, 9095)
	s.Etcd.Metrics = cmp.Or(s.Etcd.Metrics, "basic")
	s.Etcd.SnapshotCount = cmp.Or(s.Etcd.SnapshotCount, 10000)
	s.SharedConfig.AutoCompactionMode = cmp.Or(s.SharedConfig.AutoCompactionMode, "periodic")
	s.SharedConfig.AutoCompactionRetention = cmp.Or(s.SharedConfig.AutoCompactionRetention, "30m")
	if s.StorageCapacity == nil {
		s.StorageCapacity = new(resource.MustParse("16Gi"))
	}
	if s.Etcd.Quota == nil {
		s.Etcd.Quota = new(resource.MustParse("8Gi"))
	}
	return e, nil
}

func (e *etcd) key() string           { return e.Namespace + "/" + e.Name }
func (e *etcd) clientService() string { return e.Name + "-client" }
func (e *etcd) peerService() string   { return e.Name + "-peer" }
func (e *etcd) configMap() string     { return e.Name + "-config" }

// Labels of the objects of an Etcd.
const (
	managedBy = "app.kubernetes.io/managed-by"
	partOf    = "app.kubernetes.io/part-of"
	druidName = "etcd-druid"
	// standInName manages all objects but the Pods: etcd-druid's webhook protects objects with its
	// own name, and does not answer where it is played.
	standInName     = "local-etcd-druid"
	managedSelector = managedBy + "=" + standInName
)

// selector selects the Pods of the Etcd.
func (e *etcd) selector() map[string]string {
	return map[string]string{managedBy: druidName, partOf: e.Name}
}

// labels returns the labels of one object of the Etcd.
func (e *etcd) labels(component, name string) map[string]string {
	labels := e.selector()
	labels["app.kubernetes.io/component"], labels["app.kubernetes.io/name"] = component, name
	return labels
}

func (e *etcd) owner() []metav1.OwnerReference {
	return []metav1.OwnerReference{{
		APIVersion: Resource.GroupVersion().String(), Kind: "Etcd", Name: e.Name, UID: e.UID,
		Controller: new(true), BlockOwnerDeletion: new(true),
	}}
}

// hasReconcileRequest reports whether the annotation requests a reconciliation.
func (e *etcd) hasReconcileRequest() bool {
	return e.Annotations[operationAnnotation] == reconcileOperation || e.Annotations[druidOperationAnnotation] == reconcileOperation
}

// isSpecAccepted reports whether the current spec applies: it is new, requested, or already
// accepted.
func (e *etcd) isSpecAccepted() bool {
	if _, suspended := e.Annotations[suspendAnnotation]; suspended {
		return false
	}
	seen := e.Status.ObservedGeneration
	return seen == nil || *seen == e.Generation || e.hasReconcileRequest()
}
