// SPDX-License-Identifier: Apache-2.0

package strict

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pergola-dev/pergola/schemas/fieldpath"
	"github.com/pergola-dev/pergola/schemas/structure"
)

// Hints finds parts of an object that work but are probably unintended: they are warnings, unlike
// all other findings of the package.
func Hints(o *unstructured.Unstructured) []structure.Finding {
	switch kind := o.GetKind(); kind {
	case "PrometheusRule":
		return misspeltRecordings(o.Object)
	case "CronJob":
		return slices.Concat(checkStartingDeadline(o.Object), hostNetworkDNSPolicy(kind, o.Object), unmountedVolumes(kind, o.Object))
	default:
		return append(hostNetworkDNSPolicy(kind, o.Object), unmountedVolumes(kind, o.Object)...)
	}
}

// unmountedVolumes finds volumes that no container mounts: the mount is missing or has another
// name.
func unmountedVolumes(kind string, object map[string]any) []structure.Finding {
	at, spec := podSpec(kind, object)
	volumes, _ := valueAt(spec, fieldpath.Path{"volumes"}).([]any)
	if len(volumes) == 0 || !slices.Contains([]string{"CronJob", "DaemonSet", "Deployment", "Job", "Pod", "ReplicaSet", "StatefulSet"}, kind) {
		return nil
	}
	mounted := map[any]bool{}
	for _, list := range []string{"containers", "initContainers", "ephemeralContainers"} {
		containers, _ := valueAt(spec, fieldpath.Path{list}).([]any)
		for _, container := range containers {
			for _, field := range []string{"volumeMounts", "volumeDevices"} {
				mounts, _ := valueAt(container, fieldpath.Path{field}).([]any)
				for _, mount := range mounts {
					mounted[valueAt(mount, fieldpath.Path{"name"})] = true
				}
			}
		}
	}
	var out []structure.Finding
	for i, volume := range volumes {
		if name := valueAt(volume, fieldpath.Path{"name"}); !mounted[name] {
			out = append(out, structure.Finding{Path: at.Append("volumes", i), Type: "Invalid", Message: fmt.Sprintf("no container mounts the volume %v: add it to volumeMounts, or remove it", name)})
		}
	}
	return out
}

// controllerInterval is the interval in seconds of the CronJob controller
// (https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/#starting-deadline).
const controllerInterval = 10

// checkStartingDeadline finds a CronJob whose deadline may expire before its controller runs.
func checkStartingDeadline(object map[string]any) []structure.Finding {
	at := fieldpath.Path{"spec", "startingDeadlineSeconds"}
	if seconds, given := numberAt(object, at); given && seconds >= 0 && seconds < controllerInterval {
		return []structure.Finding{{Path: at, Type: "Invalid", Message: fmt.Sprintf("%v seconds may be over before the controller starts a job: it reads schedules every %d seconds", seconds, controllerInterval)}}
	}
	return nil
}
