// SPDX-License-Identifier: Apache-2.0

package etcds

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func (e *etcd) meta(name, component string) metav1.ObjectMeta {
	labels := e.labels(component, name)
	labels[managedBy] = standInName
	return metav1.ObjectMeta{Name: name, Namespace: e.Namespace, Labels: labels, OwnerReferences: e.owner()}
}

// clientServiceObject returns the Service of the ready members. It omits etcd-druid's third port,
// for backups: no process listens on it.
func (e *etcd) clientServiceObject() *corev1.Service {
	s := e.Spec.Etcd
	service := &corev1.Service{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: e.meta(e.clientService(), "etcd-client-service"),
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeClusterIP, Selector: e.selector(), SessionAffinity: corev1.ServiceAffinityNone,
			TrafficDistribution: s.ClientService.TrafficDistribution,
			Ports:               []corev1.ServicePort{port("client", s.ClientPort), port("server", s.ServerPort)},
		},
	}
	service.Annotations = s.ClientService.Annotations
	maps.Copy(service.Labels, s.ClientService.Labels)
	return service
}

// peerServiceObject returns the headless Service that gives members their names, even before they
// are ready: peers need them.
func (e *etcd) peerServiceObject() *corev1.Service {
	return &corev1.Service{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: e.meta(e.peerService(), "etcd-peer-service"),
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeClusterIP, ClusterIP: corev1.ClusterIPNone, Selector: e.selector(),
			SessionAffinity: corev1.ServiceAffinityNone, PublishNotReadyAddresses: true,
			Ports: []corev1.ServicePort{port("peer", e.Spec.Etcd.ServerPort)},
		},
	}
}

func port(name string, number int32) corev1.ServicePort {
	return corev1.ServicePort{Name: name, Protocol: corev1.ProtocolTCP, Port: number, TargetPort: intstr.FromInt32(number)}
}

// disruptionBudget returns the PodDisruptionBudget that preserves a quorum.
func (e *etcd) disruptionBudget() *policyv1.PodDisruptionBudget {
	least := intstr.FromInt32(0)
	if e.Spec.Replicas > 1 {
		least = intstr.FromInt32(e.Spec.Replicas/2 + 1)
	}
	budget := &policyv1.PodDisruptionBudget{
		TypeMeta:   metav1.TypeMeta{APIVersion: "policy/v1", Kind: "PodDisruptionBudget"},
		ObjectMeta: e.meta(e.Name, "etcd-pdb"),
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: &least, Selector: &metav1.LabelSelector{MatchLabels: e.selector()},
		},
	}
	if _, allowed := e.Annotations[unhealthyEvictionAnnotation]; allowed {
		budget.Spec.UnhealthyPodEvictionPolicy = new(policyv1.AlwaysAllow)
	}
	return budget
}

func (e *etcd) configMapObject(files map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: e.meta(e.configMap(), "etcd-config"), Data: files,
	}
}
