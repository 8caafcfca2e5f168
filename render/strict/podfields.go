// SPDX-License-Identifier: Apache-2.0

package strict

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/apis/core/pods"

	"github.com/pergola-dev/pergola/schemas/fieldpath"
	"github.com/pergola-dev/pergola/schemas/structure"
)

// This file finds fields of pods that API servers and kubelets accept, but that do not work as
// written.

// fieldErrors finds fields of pods and their containers that do not work as written.
func fieldErrors(at *field.Path, spec *core.PodSpec) field.ErrorList {
	errs := slices.Concat(volumeErrors(at.Child("volumes"), spec.Volumes), tolerationErrors(at.Child("tolerations"), spec.Tolerations))
	pods.VisitContainersWithPath(spec, at, func(c *core.Container, path *field.Path) bool {
		errs = append(errs, variableErrors(path, c)...)
		errs = append(errs, hookErrors(path.Child("lifecycle", "preStop"), c, spec.TerminationGracePeriodSeconds)...)
		return true
	})
	return errs
}

// volumeErrors finds file modes in decimal digits, and sizes of a few bytes.
func volumeErrors(at *field.Path, volumes []core.Volume) field.ErrorList {
	var errs field.ErrorList
	for i, volume := range volumes {
		at := at.Index(i)
		errs = append(errs, modeErrors(at, volume.VolumeSource)...)
		if e := volume.EmptyDir; e != nil && e.SizeLimit != nil {
			if wrong := byteQuantityFault(*e.SizeLimit); wrong != "" {
				errs = append(errs, field.Invalid(at.Child("emptyDir", "sizeLimit"), e.SizeLimit.String(), wrong))
			}
		}
	}
	return errs
}

// byteQuantityFault describes the fault of a quantity of bytes that is too small; the result is ""
// if there is none.
func byteQuantityFault(amount resource.Quantity) string {
	if amount.Sign() <= 0 || amount.CmpInt64(1<<10) >= 0 {
		return ""
	}
	return structure.CheckAmount("storage", amount)
}

// decimalModes are likely octal file modes written in decimal; API servers reject values above 511.
var decimalModes = []int32{400, 440, 444, 500}

func modeErrors(at *field.Path, source core.VolumeSource) field.ErrorList {
	var errs field.ErrorList
	mode := func(at *field.Path, name string, mode *int32) {
		if mode != nil && slices.Contains(decimalModes, *mode) {
			errs = append(errs, field.Invalid(at.Child(name), *mode, fmt.Sprintf("%d is %#o in octal digits; write 0%d", *mode, *mode, *mode)))
		}
	}
	keys := func(at *field.Path, items []core.KeyToPath) {
		for i, item := range items {
			mode(at.Child("items").Index(i), "mode", item.Mode)
		}
	}
	fields := func(at *field.Path, items []core.DownwardAPIVolumeFile) {
		for i, item := range items {
			mode(at.Child("items").Index(i), "mode", item.Mode)
		}
	}
	if s := source.ConfigMap; s != nil {
		mode(at.Child("configMap"), "defaultMode", s.DefaultMode)
		keys(at.Child("configMap"), s.Items)
	}
	if s := source.Secret; s != nil {
		mode(at.Child("secret"), "defaultMode", s.DefaultMode)
		keys(at.Child("secret"), s.Items)
	}
	if s := source.DownwardAPI; s != nil {
		mode(at.Child("downwardAPI"), "defaultMode", s.DefaultMode)
		fields(at.Child("downwardAPI"), s.Items)
	}
	if source.Projected == nil {
		return errs
	}
	mode(at.Child("projected"), "defaultMode", source.Projected.DefaultMode)
	for i, s := range source.Projected.Sources {
		at := at.Child("projected", "sources").Index(i)
		switch {
		case s.ConfigMap != nil:
			keys(at.Child("configMap"), s.ConfigMap.Items)
		case s.Secret != nil:
			keys(at.Child("secret"), s.Secret.Items)
		case s.DownwardAPI != nil:
			fields(at.Child("downwardAPI"), s.DownwardAPI.Items)
		}
	}
	return errs
}

// knownTaints are the taints that Kubernetes and Gardener set on nodes
// (https://kubernetes.io/docs/reference/labels-annotations-taints/).
var knownTaints = []string{
	"node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master", "node.cloudprovider.kubernetes.io/shutdown",
	"node.cloudprovider.kubernetes.io/uninitialized", "node.gardener.cloud/critical-components-not-ready", "node.kubernetes.io/disk-pressure",
	"node.kubernetes.io/memory-pressure", "node.kubernetes.io/network-unavailable", "node.kubernetes.io/not-ready", "node.kubernetes.io/out-of-service",
	"node.kubernetes.io/pid-pressure", "node.kubernetes.io/unreachable", "node.kubernetes.io/unschedulable",
}

func tolerationErrors(at *field.Path, tolerations []core.Toleration) field.ErrorList {
	var errs field.ErrorList
	for i, toleration := range tolerations {
		if meant := misspeltWord(toleration.Key, knownTaints, 2); meant != "" {
			errs = append(errs, field.Invalid(at.Index(i).Child("key"), toleration.Key, fmt.Sprintf("no node has this taint; did you mean %q?", meant)))
		}
	}
	return errs
}

// checkTaints finds misspelt taints of a Node.
func checkTaints(object map[string]any) []structure.Finding {
	var out []structure.Finding
	list, _ := valueAt(object, fieldpath.Path{"spec", "taints"}).([]any)
	for i, taint := range list {
		key, _ := valueAt(taint, fieldpath.Path{"key"}).(string)
		if meant := misspeltWord(key, knownTaints, 2); meant != "" {
			out = append(out, structure.Finding{Path: fieldpath.Path{"spec", "taints", i, "key"}, Type: "NotSupported", Message: fmt.Sprintf("no pod tolerates the taint %q; did you mean %q?", key, meant)})
		}
	}
	return out
}

// variableNamePattern excludes shell commands, which may also be in $( ).
var variableNamePattern = regexp.MustCompile(`^[A-Z][A-Z0-9_]+$`)

// expandedVariables returns the variables that a kubelet expands in a text: $(NAME), but not
// $$(NAME).
func expandedVariables(text string) []string {
	var out []string
	for i := 0; i+1 < len(text); i++ {
		if text[i] != '$' {
			continue
		}
		if i++; text[i] != '(' {
			continue
		}
		if end := strings.IndexByte(text[i:], ')'); end > 0 && variableNamePattern.MatchString(text[i+1:i+end]) {
			out = append(out, text[i+1:i+end])
		}
	}
	return out
}

// variableErrors finds $(NAME) that is not expanded: a kubelet expands only variables that are
// defined before
// (https://kubernetes.io/docs/tasks/inject-data-application/define-interdependent-environment-variables/).
// With envFrom, any variable may exist.
func variableErrors(at *field.Path, c *core.Container) field.ErrorList {
	if len(c.EnvFrom) > 0 {
		return nil
	}
	var errs field.ErrorList
	var defined []string
	for _, variable := range c.Env {
		defined = append(defined, variable.Name)
	}
	check := func(at *field.Path, text string, before []string, self string) {
		for _, name := range expandedVariables(text) {
			// variables of Services
			if slices.Contains(before, name) || strings.Contains(name, "_SERVICE_") || strings.Contains(name, "_PORT") {
				continue
			}
			if slices.Contains(defined, name) {
				detail := fmt.Sprintf("$(%s) is not expanded, since the variable is defined below; define it before", name)
				if name == self {
					detail = fmt.Sprintf("$(%s) is not expanded: a variable has no value before it is defined", name)
				}
				errs = append(errs, field.Invalid(at, text, detail))
			} else if meant := misspeltWord(name, slices.DeleteFunc(slices.Clone(defined), func(d string) bool { return d == self }), 1+len(name)/10); meant != "" {
				errs = append(errs, field.Invalid(at, text, fmt.Sprintf("$(%s) is not expanded: no variable has this name; did you mean $(%s)?", name, meant)))
			}
		}
	}
	for i, variable := range c.Env {
		check(at.Child("env").Index(i).Child("value"), variable.Value, defined[:i], variable.Name)
	}
	for i, text := range c.Command {
		check(at.Child("command").Index(i), text, defined, "")
	}
	for i, text := range c.Args {
		check(at.Child("args").Index(i), text, defined, "")
	}
	return errs
}

// sleepCommandPattern matches commands that begin with sleep.
var sleepCommandPattern = regexp.MustCompile(`^\s*(?:/usr)?(?:/bin/)?sleep +([0-9]{1,9})(s|m)?\s*(?:$|;|&&)`)

// hookErrors finds hooks that use all of the container's grace period.
func hookErrors(at *field.Path, c *core.Container, grace *int64) field.ErrorList {
	if c.Lifecycle == nil || c.Lifecycle.PreStop == nil || c.Lifecycle.PreStop.Exec == nil || grace == nil || *grace == 0 {
		return nil
	}
	command := c.Lifecycle.PreStop.Exec.Command
	text := strings.Join(command, " ")
	if len(command) == 3 && slices.Contains([]string{"sh", "bash", "/bin/sh", "/bin/bash"}, command[0]) && command[1] == "-c" {
		text = command[2]
	}
	parts := sleepCommandPattern.FindStringSubmatch(text)
	if parts == nil {
		return nil
	}
	seconds, err := strconv.ParseInt(parts[1], 10, 64)
	if parts[2] == "m" {
		seconds *= 60
	}
	if err != nil || seconds < *grace {
		return nil
	}
	return field.ErrorList{field.Invalid(at.Child("exec", "command"), text, fmt.Sprintf("the pod has %d seconds (terminationGracePeriodSeconds) to stop: the container is killed before the sleep ends", *grace))}
}

// podSpec returns the path and content of an object's pod spec.
func podSpec(kind string, object map[string]any) (fieldpath.Path, any) {
	path := fieldpath.Path{"spec", "template", "spec"}
	switch kind {
	case "Pod":
		path = fieldpath.Path{"spec"}
	case "PodTemplate":
		path = fieldpath.Path{"template", "spec"}
	case "CronJob":
		path = fieldpath.Path{"spec", "jobTemplate", "spec", "template", "spec"}
	}
	return path, valueAt(object, path)
}

// hostNetworkDNSPolicy finds pods with hostNetwork and ClusterFirst: they use the DNS servers of
// the node.
func hostNetworkDNSPolicy(kind string, object map[string]any) []structure.Finding {
	at, spec := podSpec(kind, object)
	if valueAt(spec, fieldpath.Path{"hostNetwork"}) != true || valueAt(spec, fieldpath.Path{"dnsPolicy"}) != "ClusterFirst" {
		return nil
	}
	return []structure.Finding{{Path: at.Append("dnsPolicy"), Type: "Invalid", Message: "with hostNetwork ClusterFirst is the same as Default; write ClusterFirstWithHostNet or Default"}}
}

// checkByteAmounts finds too small quantities of bytes in lists of resources.
func checkByteAmounts(at fieldpath.Path, value any) []structure.Finding {
	var out []structure.Finding
	list, _ := value.(map[string]any)
	for name, amount := range list {
		size, err := resource.ParseQuantity(fmt.Sprint(amount))
		of := strings.TrimPrefix(strings.TrimPrefix(name, "requests."), "limits.")
		if err != nil || !slices.Contains([]string{"memory", "storage", "ephemeral-storage"}, of) && !strings.HasSuffix(of, "/requests.storage") {
			continue
		}
		if wrong := byteQuantityFault(size); wrong != "" {
			out = append(out, structure.Finding{Path: at.Append(fieldpath.Key(name)), Type: "Invalid", Message: fmt.Sprintf("%v %s", amount, wrong)})
		}
	}
	return out
}

// checkAmounts checks the lists of resources of objects that limit them.
func checkAmounts(kind string, object map[string]any) []structure.Finding {
	var out []structure.Finding
	in := func(at fieldpath.Path, value any, names ...string) {
		for _, name := range names {
			out = append(out, checkByteAmounts(at.Append(name), valueAt(value, fieldpath.Path{name}))...)
		}
	}
	items := func(at fieldpath.Path, names ...string) {
		list, _ := valueAt(object, at).([]any)
		for i, item := range list {
			in(at.Append(i), item, names...)
		}
	}
	switch kind {
	case "VerticalPodAutoscaler":
		items(fieldpath.Path{"spec", "resourcePolicy", "containerPolicies"}, "minAllowed", "maxAllowed")
	case "LimitRange":
		items(fieldpath.Path{"spec", "limits"}, "default", "defaultRequest", "max", "min")
	case "ResourceQuota":
		in(fieldpath.Path{"spec"}, object["spec"], "hard")
	case "PersistentVolume":
		in(fieldpath.Path{"spec"}, object["spec"], "capacity")
	}
	return out
}
