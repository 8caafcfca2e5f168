// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/internal/jsonvalue"
)

// AddConsequences adds the consequences of an item and the worker pools whose nodes it affects. old
// and new are the object before and after, if they exist and are known.
func AddConsequences(item *change.Item, old, new *unstructured.Unstructured) {
	item.Consequences, item.Pools = Consequences(*item, old, new), PoolChanges(*item, old, new)
}

// Consequences returns the effects of an item beyond its object. old and new are the object before
// and after, if they exist and are known.
func Consequences(item change.Item, old, new *unstructured.Unstructured) []string {
	switch item.Action {
	case change.Delete:
		return deletionConsequences(item.Object, old)
	case change.Hold:
		// a deletion, or the first step of a recreation, is held
		return deletionConsequences(item.Object, old)
	case change.Recreate:
		return append([]string{recreateText}, deletionConsequences(item.Object, old)...)
	case change.Create:
		if item.Object.Kind == "PodDisruptionBudget" && isKnownGroup(item.Object) {
			if text := evictionText(new); text != "" {
				return []string{text}
			}
		}
	case change.Change, change.Adopt:
		return slices.Concat(rolloutConsequences(item, old, new), effectsOf(item, old, new), nodeConsequences(item, old, new))
	}
	return nil
}

// recreateText describes a recreation in reports.
const recreateText = "is deleted and created again"

// Effects on the pods of a workload.
const (
	rollText      = "rolls its pods"
	rollLaterText = "its pods change when they are deleted"
	rollEtcdText  = "may roll the etcd members"
	stopText      = "stops all its pods"
	// startText is the inverse of stops: without pods before, nothing restarts.
	startText = "starts its pods"
	// replaceText is rolls with a downtime.
	replaceText = "stops all its pods, then starts new ones"
	// rollBelowPartitionText is rolls with a partition that excludes all pods.
	rollBelowPartitionText = "its pods change when its partition is lowered"
	// rollPausedText is rolls of a paused workload.
	rollPausedText = "its pods change when it is no longer paused"
)

// deletionEffects are the kinds whose deletion removes more than the object.
var deletionEffects = map[string]string{
	"Namespace":                "deletes everything in the namespace",
	"CustomResourceDefinition": "deletes every object of the kind",
	"PersistentVolumeClaim":    "loses stored data",
	"PersistentVolume":         "loses stored data",
	"Etcd":                     "loses stored data",
	"BackupBucket":             "loses backups",
	"BackupEntry":              "loses backups",
	"Shoot":                    "deletes the cluster with everything in it",
	"Seed":                     "removes the seed from the landscape",
	"Project":                  "deletes the namespace of the project with everything in it",
	"Garden":                   "deletes the virtual garden with everything in it",
	"Worker":                   "deletes the machines of the cluster",
	"Infrastructure":           "deletes the network of the cluster",
	"ManagedResource":          "deletes the objects that it carries",
	"DNSRecord":                "removes the DNS name",
	"ShootState":               "loses the state that the cluster is restored from",
	"APIService":               "its API is no longer served",
}

// isKnownGroup reports whether a kind belongs to a group for which this package has rules.
func isKnownGroup(r change.Ref) bool {
	return r.APIVersion == "" || r.IsGardener() || !strings.Contains(r.Group(), ".") || strings.HasSuffix(r.Group(), ".k8s.io")
}

func deletionConsequences(ref change.Ref, old *unstructured.Unstructured) []string {
	if text := deletionEffects[ref.Kind]; text != "" && isKnownGroup(ref) {
		return []string{text}
	}
	if ref.Kind == "StatefulSet" && nestedString(old, "spec", "persistentVolumeClaimRetentionPolicy", "whenDeleted") == "Delete" {
		return []string{"loses stored data"}
	}
	if ref.Kind == "Service" && nestedString(old, "spec", "type") == "LoadBalancer" {
		return []string{"releases the load balancer address"}
	}
	return nil
}

// nodeConsequences describes the effects of an item on worker pools.
func nodeConsequences(item change.Item, old, new *unstructured.Unstructured) []string {
	var out []string
	for _, c := range PoolChanges(item, old, new) {
		out = append(out, poolText(c))
	}
	return out
}

// poolText describes a pool change, such as "the nodes of pool a (up to 5) are replaced: machine
// image x 1 → x 2".
func poolText(c change.PoolChange) string {
	return fmt.Sprintf("the nodes of pool %s (up to %d) %s: %s", c.Pool, c.MaxNodes, nodeVerbPhrase(c.Effect), strings.Join(c.Causes, ", "))
}

func rolloutConsequences(item change.Item, old, new *unstructured.Unstructured) []string {
	var out []string
	say := func(text string) {
		if text != "" && !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	if what := scalingConsequence(item); what != "" {
		return []string{what} // all its pods stop or start, so other changes do not matter
	}
	for _, f := range item.Fields {
		switch item.Object.Kind {
		case "Deployment", "StatefulSet", "DaemonSet":
			addWorkloadConsequence(f, new, say)
		case "ReplicaSet", "ReplicationController":
			if isWithin(f.Path, "spec.template") {
				say(rollLaterText)
			}
		case "Etcd":
			if isWithin(f.Path, "spec.etcd", "spec.backup", "spec.replicas") {
				say(rollEtcdText)
			}
		case "Service":
			if f.Path == "spec.type" && nestedString(old, "spec", "type") == "LoadBalancer" {
				say("releases the load balancer address")
			}
		case "Shoot":
			say(shootConsequence(f))
		}
	}
	return out
}

// shootConsequence describes the effect of a Shoot field on its control plane.
func shootConsequence(f change.Field) string {
	switch {
	case f.Path == "spec.kubernetes.version":
		o, n := fmt.Sprint(f.Old), fmt.Sprint(f.New)
		if minorVersionOf(o) == minorVersionOf(n) && !isDowngrade(o, n) {
			return fmt.Sprintf("updates Kubernetes %s → %s", o, n)
		}
		if isDowngrade(o, n) {
			return fmt.Sprintf("downgrades Kubernetes %s → %s", o, n)
		}
		return fmt.Sprintf("upgrades Kubernetes %s → %s", o, n)
	case f.Path == "spec.seedName" && f.Old != nil && f.New != nil:
		return fmt.Sprintf("moves the control plane from seed %v to seed %v", f.Old, f.New)
	case f.Path == "spec.hibernation.enabled", f.Path == "spec.hibernation":
		switch was, is := isHibernation(f.Old), isHibernation(f.New); {
		case is && !was:
			return "hibernates the cluster: its nodes and its control plane stop"
		case was && !is:
			return "wakes the cluster up: its control plane and its nodes start"
		}
	}
	return ""
}

// isHibernation reports whether a value of spec.hibernation, or of its field enabled, hibernates a
// Shoot.
func isHibernation(v any) bool {
	return v == true || nestedValue(map[string]any{"h": v}, "h", "enabled") == true
}

// scalingConsequence describes a workload without pods before or after the change; empty otherwise,
// and if that is unknown.
func scalingConsequence(item change.Item) string {
	if !slices.Contains([]string{"Deployment", "StatefulSet", "ReplicaSet", "ReplicationController", "Etcd"}, item.Object.Kind) {
		return ""
	}
	for _, f := range item.Fields {
		if f.Path != "spec.replicas" {
			continue
		}
		was, known := jsonvalue.Number(valueOr(f.Old, int64(1)))
		is, too := jsonvalue.Number(valueOr(f.New, int64(1)))
		switch {
		case !known || !too:
		case is.Sign() == 0:
			return stopText
		case was.Sign() == 0:
			return startText
		}
	}
	return ""
}

// isDowngrade reports whether a version is lower than the one before.
func isDowngrade(before, after string) bool {
	o, err := semver.NewVersion(before)
	n, err2 := semver.NewVersion(after)
	return err == nil && err2 == nil && n.LessThan(o)
}

func addWorkloadConsequence(f change.Field, new *unstructured.Unstructured, say func(string)) {
	switch {
	case !isWithin(f.Path, "spec.template"):
	case nestedString(new, "spec", "updateStrategy", "type") == "OnDelete":
		say(rollLaterText)
	case nestedValue(contentOf(new), "spec", "paused") == true:
		say(rollPausedText)
	case nestedString(new, "spec", "strategy", "type") == "Recreate":
		say(replaceText)
	default:
		say(rollPartitionText(new))
	}
}

// partitionPath of a StatefulSet is the number of pods that keep the old template.
const partitionPath = "spec.updateStrategy.rollingUpdate.partition"

// rollPartitionText describes which pods roll; a partition of a StatefulSet excludes some.
func rollPartitionText(new *unstructured.Unstructured) string {
	o := contentOf(new)
	from, ok := wholeNumber(nestedValue(o, strings.Split(partitionPath, ".")...))
	if new == nil || new.GetKind() != "StatefulSet" || !ok || from <= 0 {
		return rollText
	}
	if replicas, known := wholeNumber(nestedValue(o, "spec", "replicas")); known && from >= replicas {
		return rollBelowPartitionText
	}
	start, _ := wholeNumber(nestedValue(o, "spec", "ordinals", "start"))
	return fmt.Sprintf("%s from number %d on", rollText, start+from)
}

// wholeNumber returns an integer value, or false for other values.
func wholeNumber(v any) (int64, bool) {
	n, ok := jsonvalue.Number(v)
	if !ok || !n.IsInt() {
		return 0, false
	}
	i, _ := n.Int64()
	return i, true
}

// isWithin reports whether a path is one of the prefixes or below one.
func isWithin(path string, prefixes ...string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool {
		rest, ok := strings.CutPrefix(path, p)
		return ok && (rest == "" || rest[0] == '.' || rest[0] == '[' || rest[0] == ' ')
	})
}

func nestedString(o *unstructured.Unstructured, fields ...string) string {
	if o == nil {
		return ""
	}
	s, _, _ := unstructured.NestedString(o.Object, fields...)
	return s
}
