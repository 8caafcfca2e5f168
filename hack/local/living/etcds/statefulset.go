// SPDX-License-Identifier: Apache-2.0

package etcds

import (
	"fmt"
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Image is the image of members. The table of native images maps it to this machine's etcd.
const Image = "gcr.io/etcd-development/etcd:v3.6.8"

// checksumAnnotation is etcd-druid's annotation of Pods with the checksum of their configuration.
const checksumAnnotation = "checksum/etcd-configmap"

// statefulSet returns the StatefulSet of the members. It copies the claim templates of an existing
// one, which are immutable.
func (e *etcd) statefulSet(shape shape, checksum string, live *appsv1.StatefulSet) *appsv1.StatefulSet {
	set := &appsv1.StatefulSet{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "StatefulSet"},
		ObjectMeta: e.meta(e.Name, "etcd-sts"),
		Spec: appsv1.StatefulSetSpec{
			Replicas: &shape.Pods, ServiceName: e.peerService(), PodManagementPolicy: appsv1.ParallelPodManagement,
			UpdateStrategy:       appsv1.StatefulSetUpdateStrategy{Type: appsv1.RollingUpdateStatefulSetStrategyType},
			Selector:             &metav1.LabelSelector{MatchLabels: e.selector()},
			VolumeClaimTemplates: []corev1.PersistentVolumeClaim{e.claim()},
			Template:             e.pod(checksum),
		},
	}
	set.Annotations = shape.annotations()
	if live != nil {
		set.Spec.VolumeClaimTemplates = live.Spec.VolumeClaimTemplates
	}
	return set
}

func (e *etcd) claim() corev1.PersistentVolumeClaim {
	return corev1.PersistentVolumeClaim{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"},
		ObjectMeta: metav1.ObjectMeta{Name: e.Spec.VolumeClaimTemplate},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			StorageClassName: e.Spec.StorageClass,
			Resources:        corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: *e.Spec.StorageCapacity}},
		},
	}
}

func (e *etcd) pod(checksum string) corev1.PodTemplateSpec {
	labels, annotations := maps.Clone(e.Spec.Labels), map[string]string{checksumAnnotation: checksum}
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, e.labels("etcd-sts", e.Name))
	maps.Copy(annotations, e.Spec.Annotations)
	volumes, mounts := e.volumes()
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: annotations},
		Spec: corev1.PodSpec{
			AutomountServiceAccountToken: new(false),
			HostAliases:                  []corev1.HostAlias{{IP: "127.0.0.1", Hostnames: []string{e.Name + "-local"}}},
			PriorityClassName:            e.Spec.PriorityClassName,
			Affinity:                     e.Spec.SchedulingConstraints.Affinity,
			TopologySpreadConstraints:    e.Spec.SchedulingConstraints.TopologySpreadConstraints,
			Containers:                   []corev1.Container{e.container(mounts)},
			Volumes:                      volumes,
		},
	}
}

func (e *etcd) container(mounts []corev1.VolumeMount) corev1.Container {
	resources := corev1.ResourceRequirements{Requests: corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("50m"), corev1.ResourceMemory: resource.MustParse("128Mi"),
	}}
	if e.Spec.Etcd.Resources != nil {
		resources = *e.Spec.Etcd.Resources
	}
	return corev1.Container{
		Name: "etcd", Image: Image, ImagePullPolicy: corev1.PullIfNotPresent,
		Command: []string{"/usr/local/bin/etcd", fmt.Sprintf("--config-file=%s/$(POD_NAME).yaml", configFolder)},
		Env: []corev1.EnvVar{{Name: "POD_NAME", ValueFrom: &corev1.EnvVarSource{
			FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.name"},
		}}},
		Ports: []corev1.ContainerPort{
			{Name: "server", Protocol: corev1.ProtocolTCP, ContainerPort: e.Spec.Etcd.ServerPort},
			{Name: "client", Protocol: corev1.ProtocolTCP, ContainerPort: e.Spec.Etcd.ClientPort},
			{Name: "metrics", Protocol: corev1.ProtocolTCP, ContainerPort: e.Spec.Etcd.WrapperPort},
		},
		Resources: resources, VolumeMounts: mounts,
		SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: new(false)},
		// Members that start together are alive only once they have a quorum, so starting may take
		// long.
		StartupProbe:   e.probe("/readyz", 1, 300),
		ReadinessProbe: e.probe("/readyz", 5, 5),
		LivenessProbe:  e.probe("/livez", 10, 6),
	}
}

// probe returns a probe of the port that etcd serves without a client certificate.
func (e *etcd) probe(path string, period, failures int32) *corev1.Probe {
	return &corev1.Probe{
		ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{
			Path: path, Port: intstr.FromInt32(e.Spec.Etcd.WrapperPort), Scheme: corev1.URISchemeHTTP,
		}},
		PeriodSeconds: period, FailureThreshold: failures, TimeoutSeconds: 5, SuccessThreshold: 1,
	}
}

// volumes returns the configuration, the claim and the Secrets as volumes, and their mounts.
func (e *etcd) volumes() ([]corev1.Volume, []corev1.VolumeMount) {
	volumes := []corev1.Volume{{Name: "etcd-config-file", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
		LocalObjectReference: corev1.LocalObjectReference{Name: e.configMap()}, DefaultMode: new(int32(0o640)),
	}}}}
	mounts := []corev1.VolumeMount{
		{Name: e.Spec.VolumeClaimTemplate, MountPath: dataFolder},
		{Name: "etcd-config-file", MountPath: configFolder},
	}
	add := func(name, path, secret string) {
		if secret == "" {
			return
		}
		mounts = append(mounts, corev1.VolumeMount{Name: name, MountPath: tlsFolder + path})
		volumes = append(volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
			Secret: &corev1.SecretVolumeSource{SecretName: secret, DefaultMode: new(int32(0o640))},
		}})
	}
	if refs := e.Spec.Etcd.ClientURLTLS; refs != nil {
		add("etcd-ca", "/ca", refs.CA.Name)
		add("etcd-server-tls", "/server", refs.Server.Name)
		add("etcd-client-tls", "/client", refs.Client.Name)
	}
	if refs := e.Spec.Etcd.PeerURLTLS; refs != nil {
		add("etcd-peer-ca", "/peer/ca", refs.CA.Name)
		add("etcd-peer-server-tls", "/peer/server", refs.Server.Name)
	}
	return volumes, mounts
}
