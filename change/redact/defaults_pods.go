package redact

import (
	"reflect"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
)

// podFills are the defaults of pods and their templates. Declaring a default explicitly restarts no
// pod.
var podFills = map[reflect.Type]fill{
	of[v1.PodSpec](): func(l location, o values) values {
		out := values{"dnsPolicy": "ClusterFirst", "restartPolicy": "Always", "securityContext": values{}, "terminationGracePeriodSeconds": int64(30),
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
	of[v1.Container]():             container,
	of[v1.EphemeralContainer]():    container,
	of[v1.ContainerPort]():         constant(values{"protocol": "TCP"}),
	of[v1.Probe]():                 constant(values{"timeoutSeconds": int64(1), "periodSeconds": int64(10), "successThreshold": int64(1), "failureThreshold": int64(3)}),
	of[v1.HTTPGetAction]():         constant(values{"path": "/", "scheme": "HTTP"}),
	of[v1.GRPCAction]():            constant(values{"service": ""}),
	of[v1.ResourceFieldSelector](): constant(values{"divisor": "0"}),
	of[v1.ObjectFieldSelector]():   constant(values{"apiVersion": "v1"}),

	of[v1.Volume](): func(_ location, o values) values {
		for k, v := range o {
			if k != "name" && v != nil {
				return nil
			}
		}
		return values{"emptyDir": values{}}
	},
	of[v1.SecretVolumeSource]():            mode,
	of[v1.ConfigMapVolumeSource]():         mode,
	of[v1.DownwardAPIVolumeSource]():       mode,
	of[v1.ProjectedVolumeSource]():         mode,
	of[v1.ServiceAccountTokenProjection](): constant(values{"expirationSeconds": int64(3600)}),
	of[v1.HostPathVolumeSource]():          constant(values{"type": ""}),
	of[v1.ISCSIVolumeSource]():             constant(values{"iscsiInterface": "default"}),
	of[v1.ISCSIPersistentVolumeSource]():   constant(values{"iscsiInterface": "default"}),
	of[v1.RBDVolumeSource]():               constant(rbd),
	of[v1.RBDPersistentVolumeSource]():     constant(rbd),
	of[v1.AzureDiskVolumeSource]():         constant(values{"cachingMode": "ReadWrite", "fsType": "ext4", "readOnly": false, "kind": "Shared"}),
	of[v1.ScaleIOVolumeSource]():           constant(values{"storageMode": "ThinProvisioned", "fsType": "xfs"}),
	of[v1.ScaleIOPersistentVolumeSource](): constant(values{"storageMode": "ThinProvisioned", "fsType": "xfs"}),
	of[v1.ImageVolumeSource](): func(_ location, o values) values {
		image, _ := o["reference"].(string)
		return values{"pullPolicy": pullPolicy(image)}
	},
	of[v1.PersistentVolumeClaimSpec](): constant(values{"volumeMode": "Filesystem"}),
	of[v1.PersistentVolumeSpec]():      constant(values{"volumeMode": "Filesystem", "persistentVolumeReclaimPolicy": "Retain"}),
}

var (
	mode = constant(values{"defaultMode": int64(0o644)})
	rbd  = values{"pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring"}
)

func container(_ location, o values) values {
	image, _ := o["image"].(string)
	return values{"imagePullPolicy": pullPolicy(image), "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File"}
}

// pullPolicy returns the default pull policy of an image.
func pullPolicy(image string) string {
	name := image[strings.LastIndex(image, "/")+1:]
	if _, tag, tagged := strings.Cut(name, ":"); strings.Contains(name, "@") || tagged && tag != "latest" {
		return "IfNotPresent"
	}
	return "Always"
}

// workloadFills are the defaults of workload kinds.
var workloadFills = map[reflect.Type]fill{
	of[appsv1.DeploymentSpec](): constant(values{"strategy": values{"type": "RollingUpdate"}, "revisionHistoryLimit": int64(10),
		"progressDeadlineSeconds": int64(600)}),
	of[appsv1.DeploymentStrategy]():      rolling,
	of[appsv1.RollingUpdateDeployment](): constant(values{"maxSurge": "25%", "maxUnavailable": "25%"}),

	of[appsv1.DaemonSetSpec]():           constant(values{"updateStrategy": values{"type": "RollingUpdate"}, "revisionHistoryLimit": int64(10)}),
	of[appsv1.DaemonSetUpdateStrategy](): rolling,
	of[appsv1.RollingUpdateDaemonSet]():  constant(values{"maxSurge": int64(0), "maxUnavailable": int64(1)}),

	of[appsv1.StatefulSetSpec](): constant(values{"podManagementPolicy": "OrderedReady", "updateStrategy": values{"type": "RollingUpdate"},
		"persistentVolumeClaimRetentionPolicy": values{}, "revisionHistoryLimit": int64(10)}),
	of[appsv1.StatefulSetUpdateStrategy]():                       rolling,
	of[appsv1.RollingUpdateStatefulSetStrategy]():                constant(values{"partition": int64(0), "maxUnavailable": int64(1)}),
	of[appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy](): constant(values{"whenDeleted": "Retain", "whenScaled": "Retain"}),
	// This applies to templates of a StatefulSet; a standalone claim declares its kind.
	of[v1.PersistentVolumeClaim](): constant(values{"apiVersion": "v1", "kind": "PersistentVolumeClaim", "status": values{"phase": "Pending"}}),

	of[batchv1.JobSpec](): func(_ location, o values) values {
		out := values{"parallelism": int64(1), "backoffLimit": int64(6), "completionMode": "NonIndexed", "suspend": false, "manualSelector": false,
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
	of[batchv1.CronJobSpec](): constant(values{"concurrencyPolicy": "Allow", "suspend": false, "successfulJobsHistoryLimit": int64(3),
		"failedJobsHistoryLimit": int64(1)}),
	of[batchv1.PodFailurePolicyOnPodConditionsPattern](): constant(values{"status": "True"}),
}

// rolling is the strategy of a workload that declares none, or only its type.
func rolling(_ location, o values) values {
	if t := o["type"]; t != nil && t != "" && t != "RollingUpdate" {
		return nil
	}
	return values{"type": "RollingUpdate", "rollingUpdate": values{}}
}
