// SPDX-License-Identifier: Apache-2.0

package strict

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	podutil "k8s.io/kubernetes/pkg/api/pod"
	"k8s.io/kubernetes/pkg/apis/apps"
	"k8s.io/kubernetes/pkg/apis/batch"
	"k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/apis/core/pods"

	"github.com/pergola-dev/pergola/internal/suggest"
	"github.com/pergola-dev/pergola/schemas/structure"
)

// podsOf returns the path and template of the pods of an object, or nil if it has none.
func podsOf(o runtime.Object) (*field.Path, *core.PodTemplateSpec) {
	spec := field.NewPath("spec")
	switch o := o.(type) {
	case *core.Pod:
		return nil, &core.PodTemplateSpec{ObjectMeta: o.ObjectMeta, Spec: o.Spec}
	case *core.PodTemplate:
		return field.NewPath("template"), &o.Template
	case *core.ReplicationController:
		return spec.Child("template"), o.Spec.Template
	case *apps.Deployment:
		return spec.Child("template"), &o.Spec.Template
	case *apps.ReplicaSet:
		return spec.Child("template"), &o.Spec.Template
	case *apps.DaemonSet:
		return spec.Child("template"), &o.Spec.Template
	case *apps.StatefulSet:
		return spec.Child("template"), &o.Spec.Template
	case *batch.Job:
		return spec.Child("template"), &o.Spec.Template
	case *batch.CronJob:
		return spec.Child("jobTemplate", "spec", "template"), &o.Spec.JobTemplate.Spec.Template
	}
	return nil, nil
}

// podErrors finds settings of pods that API servers accept, but nodes do not run as written. These
// are warnings of kube-apiserver, and faults that kubelets and container runtimes reject.
func podErrors(o runtime.Object) field.ErrorList {
	at, template := podsOf(o)
	if template == nil {
		return nil
	}
	var errs field.ErrorList
	for _, warning := range podutil.GetWarningsForPodTemplate(context.Background(), at, template, nil) {
		// Deprecated fields still work.
		if !strings.Contains(warning, "deprecated") || strings.Contains(warning, "non-functional") {
			errs = append(errs, errorOf(at, warning))
		}
	}
	errs = append(errs, placementErrors(childPath(at, "spec"), template)...)
	errs = append(errs, fieldErrors(childPath(at, "spec"), &template.Spec)...)
	return append(errs, nodeErrors(childPath(at, "spec"), &template.Spec)...)
}

func childPath(at *field.Path, name string) *field.Path {
	if at == nil {
		return field.NewPath(name)
	}
	return at.Child(name)
}

// errorOf finds the field in a warning of kube-apiserver, which precedes a colon, or else is the
// volumes.
func errorOf(at *field.Path, warning string) *field.Error {
	place, words, _ := strings.Cut(warning, ": ")
	if strings.ContainsAny(place, " \"") {
		place, words = childPath(at, "spec").Child("volumes").String(), warning
	}
	return &field.Error{Type: field.ErrorTypeInvalid, Field: place, Detail: words}
}

// capabilityNames are the capabilities of Linux (include/uapi/linux/capability.h), and ALL, in the
// notation of container runtimes.
var capabilityNames = strings.Fields(`ALL AUDIT_CONTROL AUDIT_READ AUDIT_WRITE BLOCK_SUSPEND BPF CHECKPOINT_RESTORE CHOWN DAC_OVERRIDE DAC_READ_SEARCH
	FOWNER FSETID IPC_LOCK IPC_OWNER KILL LEASE LINUX_IMMUTABLE MAC_ADMIN MAC_OVERRIDE MKNOD NET_ADMIN NET_BIND_SERVICE NET_BROADCAST NET_RAW
	PERFMON SETFCAP SETGID SETPCAP SETUID SYSLOG SYS_ADMIN SYS_BOOT SYS_CHROOT SYS_MODULE SYS_NICE SYS_PACCT SYS_PTRACE SYS_RAWIO SYS_RESOURCE
	SYS_TIME SYS_TTY_CONFIG WAKE_ALARM`)

// nodeErrors finds faults of a pod that a kubelet or a container runtime rejects.
func nodeErrors(at *field.Path, spec *core.PodSpec) field.ErrorList {
	var errs field.ErrorList
	for i, volume := range spec.Volumes {
		if e := volume.EmptyDir; e != nil && e.Medium != core.StorageMediumDefault && e.Medium != core.StorageMediumMemory && !strings.HasPrefix(string(e.Medium), string(core.StorageMediumHugePages)) {
			errs = append(errs, field.NotSupported(at.Child("volumes").Index(i).Child("emptyDir", "medium"), string(e.Medium), []string{"", "Memory", "HugePages", "HugePages-SIZE"}))
		}
	}
	pod := spec.SecurityContext
	pods.VisitContainersWithPath(spec, at, func(c *core.Container, path *field.Path) bool {
		for kind, list := range map[string]core.ResourceList{"requests": c.Resources.Requests, "limits": c.Resources.Limits} {
			for name, amount := range list {
				// kube-apiserver warns of fractions of a byte.
				if wrong := structure.CheckAmount(string(name), amount); wrong != "" && (name == core.ResourceCPU || !strings.HasSuffix(amount.String(), "m")) {
					errs = append(errs, field.Invalid(path.Child("resources", kind).Key(string(name)), amount.String(), wrong))
				}
			}
		}
		own := c.SecurityContext
		nonRoot, user, where := pod != nil && pod.RunAsNonRoot != nil && *pod.RunAsNonRoot, (*int64)(nil), path.Child("securityContext", "runAsUser")
		if pod != nil {
			user, where = pod.RunAsUser, at.Child("securityContext", "runAsUser")
		}
		if own != nil && own.RunAsNonRoot != nil {
			nonRoot = *own.RunAsNonRoot
		}
		if own != nil && own.RunAsUser != nil {
			user, where = own.RunAsUser, path.Child("securityContext", "runAsUser")
		}
		if nonRoot && user != nil && *user == 0 {
			errs = append(errs, field.Invalid(where, int64(0), "is root, and runAsNonRoot forbids it: container "+c.Name+" does not start"))
		}
		if own == nil || own.Capabilities == nil {
			return true
		}
		for name, list := range map[string][]core.Capability{"add": own.Capabilities.Add, "drop": own.Capabilities.Drop} {
			for i, capability := range list {
				errs = append(errs, capabilityErrors(path.Child("securityContext", "capabilities", name).Index(i), string(capability))...)
			}
		}
		return true
	})
	return errs
}

func capabilityErrors(at *field.Path, name string) field.ErrorList {
	upper := strings.ToUpper(name)
	if slices.Contains(capabilityNames, upper) {
		return nil
	}
	hint := "Linux has no such capability"
	if short := strings.TrimPrefix(upper, "CAP_"); slices.Contains(capabilityNames, short) {
		hint = fmt.Sprintf("write %q: container runtimes put CAP_ before it", short)
	} else if better := suggest.Closest(short, capabilityNames); better != "" {
		hint = fmt.Sprintf("did you mean %q?", better)
	}
	return field.ErrorList{field.Invalid(at, name, hint)}
}
