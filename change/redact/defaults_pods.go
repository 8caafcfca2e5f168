// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"reflect"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
)

// podDefaults are the defaults of pods and their templates. Declaring a default explicitly restarts
// no pod.
var podDefaults = map[reflect.Type]defaultFunc{
	typeFor[v1.PodSpec](): func(l valueLocation, o jsonObject) jsonObject {
		out := jsonObject{"dnsPolicy": "ClusterFirst", "restartPolicy": "Always", "securityContext": jsonObject{}, "terminationGracePeriodSeconds": int64(30),
			"schedulerName": "default-scheduler"}
		// The field has two names.
		if name := o["serviceAccountName"]; name != nil {
			out["serviceAccount"] = name
		} else if name := o["serviceAccount"]; name != nil {
			out["serviceAccountName"] = name
		}
		if l.kind == "Pod" {
			out["enableServiceLinks"] = true
		}
		return out
	},
	typeFor[v1.Container]():             containerDefaults,
	typeFor[v1.EphemeralContainer]():    containerDefaults,
	typeFor[v1.ContainerPort]():         constantDefaults(jsonObject{"protocol": "TCP"}),
	typeFor[v1.Probe]():                 constantDefaults(jsonObject{"timeoutSeconds": int64(1), "periodSeconds": int64(10), "successThreshold": int64(1), "failureThreshold": int64(3)}),
	typeFor[v1.HTTPGetAction]():         constantDefaults(jsonObject{"path": "/", "scheme": "HTTP"}),
	typeFor[v1.GRPCAction]():            constantDefaults(jsonObject{"service": ""}),
	typeFor[v1.ResourceFieldSelector](): constantDefaults(jsonObject{"divisor": "0"}),
	typeFor[v1.ObjectFieldSelector]():   constantDefaults(jsonObject{"apiVersion": "v1"}),

	typeFor[v1.Volume](): func(_ valueLocation, o jsonObject) jsonObject {
		for k, v := range o {
			if k != "name" && v != nil {
				return nil
			}
		}
		return jsonObject{"emptyDir": jsonObject{}}
	},
	typeFor[v1.SecretVolumeSource]():            volumeModeDefaults,
	typeFor[v1.ConfigMapVolumeSource]():         volumeModeDefaults,
	typeFor[v1.DownwardAPIVolumeSource]():       volumeModeDefaults,
	typeFor[v1.ProjectedVolumeSource]():         volumeModeDefaults,
	typeFor[v1.ServiceAccountTokenProjection](): constantDefaults(jsonObject{"expirationSeconds": int64(3600)}),
	typeFor[v1.HostPathVolumeSource]():          constantDefaults(jsonObject{"type": ""}),
	typeFor[v1.ISCSIVolumeSource]():             constantDefaults(jsonObject{"iscsiInterface": "default"}),
	typeFor[v1.ISCSIPersistentVolumeSource]():   constantDefaults(jsonObject{"iscsiInterface": "default"}),
	typeFor[v1.RBDVolumeSource]():               constantDefaults(rbdDefaults),
	typeFor[v1.RBDPersistentVolumeSource]():     constantDefaults(rbdDefaults),
	typeFor[v1.AzureDiskVolumeSource]():         constantDefaults(jsonObject{"cachingMode": "ReadWrite", "fsType": "ext4", "readOnly": false, "kind": "Shared"}),
	typeFor[v1.ScaleIOVolumeSource]():           constantDefaults(jsonObject{"storageMode": "ThinProvisioned", "fsType": "xfs"}),
	typeFor[v1.ScaleIOPersistentVolumeSource](): constantDefaults(jsonObject{"storageMode": "ThinProvisioned", "fsType": "xfs"}),
	typeFor[v1.ImageVolumeSource](): func(_ valueLocation, o jsonObject) jsonObject {
		image, _ := o["reference"].(string)
		return jsonObject{"pullPolicy": defaultPullPolicy(image)}
	},
	typeFor[v1.PersistentVolumeClaimSpec](): constantDefaults(jsonObject{"volumeMode": "Filesystem"}),
	typeFor[v1.PersistentVolumeSpec]():      constantDefaults(jsonObject{"volumeMode": "Filesystem", "persistentVolumeReclaimPolicy": "Retain"}),
}

var (
	volumeModeDefaults = constantDefaults(jsonObject{"defaultMode": int64(0o644)})
	rbdDefaults        = jsonObject{"pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring"}
)

func containerDefaults(_ valueLocation, o jsonObject) jsonObject {
	image, _ := o["image"].(string)
	return jsonObject{"imagePullPolicy": defaultPullPolicy(image), "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File"}
}

// defaultPullPolicy returns the default pull policy of an image.
func defaultPullPolicy(image string) string {
	name := image[strings.LastIndex(image, "/")+1:]
	if _, tag, tagged := strings.Cut(name, ":"); strings.Contains(name, "@") || tagged && tag != "latest" {
		return "IfNotPresent"
	}
	return "Always"
}

// workloadDefaults are the defaults of workload kinds.
var workloadDefaults = map[reflect.Type]defaultFunc{
	typeFor[appsv1.DeploymentSpec](): constantDefaults(jsonObject{"strategy": jsonObject{"type": "RollingUpdate"}, "revisionHistoryLimit": int64(10),
		"progressDeadlineSeconds": int64(600)}),
	typeFor[appsv1.DeploymentStrategy]():      rollingStrategyDefaults,
	typeFor[appsv1.RollingUpdateDeployment](): constantDefaults(jsonObject{"maxSurge": "25%", "maxUnavailable": "25%"}),

	typeFor[appsv1.DaemonSetSpec]():           constantDefaults(jsonObject{"updateStrategy": jsonObject{"type": "RollingUpdate"}, "revisionHistoryLimit": int64(10)}),
	typeFor[appsv1.DaemonSetUpdateStrategy](): rollingStrategyDefaults,
	typeFor[appsv1.RollingUpdateDaemonSet]():  constantDefaults(jsonObject{"maxSurge": int64(0), "maxUnavailable": int64(1)}),

	typeFor[appsv1.StatefulSetSpec](): constantDefaults(jsonObject{"podManagementPolicy": "OrderedReady", "updateStrategy": jsonObject{"type": "RollingUpdate"},
		"persistentVolumeClaimRetentionPolicy": jsonObject{}, "revisionHistoryLimit": int64(10)}),
	typeFor[appsv1.StatefulSetUpdateStrategy]():                       rollingStrategyDefaults,
	typeFor[appsv1.RollingUpdateStatefulSetStrategy]():                constantDefaults(jsonObject{"partition": int64(0), "maxUnavailable": int64(1)}),
	typeFor[appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy](): constantDefaults(jsonObject{"whenDeleted": "Retain", "whenScaled": "Retain"}),
	// This applies to templates of a StatefulSet; a standalone claim declares its kind.
	typeFor[v1.PersistentVolumeClaim](): constantDefaults(jsonObject{"apiVersion": "v1", "kind": "PersistentVolumeClaim", "status": jsonObject{"phase": "Pending"}}),

	typeFor[batchv1.JobSpec](): func(_ valueLocation, o jsonObject) jsonObject {
		out := jsonObject{"parallelism": int64(1), "backoffLimit": int64(6), "completionMode": "NonIndexed", "suspend": false, "manualSelector": false,
			"podReplacementPolicy": "TerminatingOrFailed"}
		if o["parallelism"] == nil {
			out["completions"] = int64(1)
		}
		if o["backoffLimitPerIndex"] != nil {
			out["backoffLimit"] = int64(1<<31 - 1)
		}
		if o["podFailurePolicy"] != nil {
			out["podReplacementPolicy"] = "Failed"
		}
		return out
	},
	typeFor[batchv1.CronJobSpec](): constantDefaults(jsonObject{"concurrencyPolicy": "Allow", "suspend": false, "successfulJobsHistoryLimit": int64(3),
		"failedJobsHistoryLimit": int64(1)}),
	typeFor[batchv1.PodFailurePolicyOnPodConditionsPattern](): constantDefaults(jsonObject{"status": "True"}),
}

// rollingStrategyDefaults is the strategy of a workload that declares none, or only its type.
func rollingStrategyDefaults(_ valueLocation, o jsonObject) jsonObject {
	if t := o["type"]; t != nil && t != "" && t != "RollingUpdate" {
		return nil
	}
	return jsonObject{"type": "RollingUpdate", "rollingUpdate": jsonObject{}}
}
