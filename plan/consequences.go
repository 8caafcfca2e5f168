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

// Explain adds the consequences of an item and the worker pools whose nodes it affects. old and new
// are the object before and after, if they exist and are known.
func Explain(item *change.Item, old, new *unstructured.Unstructured) {
	item.Consequences, item.Pools = Consequences(*item, old, new), Pools(*item, old, new)
}

// Consequences returns the effects of an item beyond its object. old and new are the object before
// and after, if they exist and are known.
func Consequences(item change.Item, old, new *unstructured.Unstructured) []string {
	switch item.Action {
	case change.Delete:
		return deletion(item.Object, old)
	case change.Hold:
		// a deletion, or the first step of a recreation, is held
		return deletion(item.Object, old)
	case change.Recreate:
		return append([]string{recreates}, deletion(item.Object, old)...)
	case change.Create:
		if item.Object.Kind == "PodDisruptionBudget" && known(item.Object) {
			if text := forbidsEvictions(new); text != "" {
				return []string{text}
			}
		}
	case change.Change, change.Adopt:
		return slices.Concat(rollout(item, old, new), effectsOf(item, old, new), nodes(item, old, new))
	}
	return nil
}

// recreates describes a recreation in reports.
const recreates = "is deleted and created again"

// Effects on the pods of a workload.
const (
	rolls      = "rolls its pods"
	rollsLater = "its pods change when they are deleted"
	rollsEtcd  = "may roll the etcd members"
	stops      = "stops all its pods"
	// starts is the inverse of stops: without pods before, nothing restarts.
	starts = "starts its pods"
	// replaces is rolls with a downtime.
	replaces = "stops all its pods, then starts new ones"
	// rollsBelow is rolls with a partition that excludes all pods.
	rollsBelow = "its pods change when its partition goes down"
	// rollsPaused is rolls of a paused workload.
	rollsPaused = "its pods change when it is no longer paused"
)

// deletions are the kinds whose deletion removes more than the object.
var deletions = map[string]string{
	"Namespace":                "deletes everything in the namespace",
	"CustomResourceDefinition": "deletes every object of the kind",
	"PersistentVolumeClaim":    "loses stored data",
	"PersistentVolume":         "loses stored data",
	"Etcd":                     "loses stored data",
	"BackupBucket":             "loses backups",
	"BackupEntry":              "loses backups",
	"Shoot":                    "deletes the cluster with everything in it",
	"Seed":                     "takes the seed out of the landscape",
	"Project":                  "deletes the namespace of the project with everything in it",
	"Garden":                   "deletes the virtual garden with everything in it",
	"Worker":                   "deletes the machines of the cluster",
	"Infrastructure":           "deletes the network of the cluster",
	"ManagedResource":          "deletes the objects that it carries",
	"DNSRecord":                "takes the DNS name away",
	"ShootState":               "loses what the cluster is restored from",
	"APIService":               "its API is no longer served",
}

// known reports whether a kind belongs to a group for which this package has rules.
func known(r change.Ref) bool {
	return r.APIVersion == "" || r.IsGardener() || !strings.Contains(r.Group(), ".") || strings.HasSuffix(r.Group(), ".k8s.io")
}

func deletion(ref change.Ref, old *unstructured.Unstructured) []string {
	if text := deletions[ref.Kind]; text != "" && known(ref) {
		return []string{text}
	}
	if ref.Kind == "StatefulSet" && nested(old, "spec", "persistentVolumeClaimRetentionPolicy", "whenDeleted") == "Delete" {
		return []string{"loses stored data"}
	}
	if ref.Kind == "Service" && nested(old, "spec", "type") == "LoadBalancer" {
		return []string{"gives the load balancer address back"}
	}
	return nil
}

// nodes describes the effects of an item on worker pools.
func nodes(item change.Item, old, new *unstructured.Unstructured) []string {
	var out []string
	for _, c := range Pools(item, old, new) {
		out = append(out, poolText(c))
	}
	return out
}

// poolText describes a pool change, such as "the nodes of pool a (up to 5) are replaced: machine
// image x 1 → x 2".
func poolText(c change.PoolChange) string {
	return fmt.Sprintf("the nodes of pool %s (up to %d) %s: %s", c.Pool, c.Nodes, become(c.How), strings.Join(c.Why, ", "))
}

func rollout(item change.Item, old, new *unstructured.Unstructured) []string {
	var out []string
	say := func(text string) {
		if text != "" && !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	if what := scaling(item); what != "" {
		return []string{what} // all its pods stop or start, so other changes do not matter
	}
	for _, f := range item.Fields {
		switch item.Object.Kind {
		case "Deployment", "StatefulSet", "DaemonSet":
			workload(f, new, say)
		case "ReplicaSet", "ReplicationController":
			if within(f.Path, "spec.template") {
				say(rollsLater)
			}
		case "Etcd":
			if within(f.Path, "spec.etcd", "spec.backup", "spec.replicas") {
				say(rollsEtcd)
			}
		case "Service":
			if f.Path == "spec.type" && nested(old, "spec", "type") == "LoadBalancer" {
				say("gives the load balancer address back")
			}
		case "Shoot":
			say(shoot(f))
		}
	}
	return out
}

// shoot describes the effect of a Shoot field on its control plane.
func shoot(f change.Field) string {
	switch {
	case f.Path == "spec.kubernetes.version":
		o, n := fmt.Sprint(f.Old), fmt.Sprint(f.New)
		if minor(o) == minor(n) && !isDowngrade(o, n) {
			return fmt.Sprintf("updates Kubernetes %s → %s", o, n)
		}
		if isDowngrade(o, n) {
			return fmt.Sprintf("takes Kubernetes back %s → %s", o, n)
		}
		return fmt.Sprintf("upgrades Kubernetes %s → %s", o, n)
	case f.Path == "spec.seedName" && f.Old != nil && f.New != nil:
		return fmt.Sprintf("moves the control plane from seed %v to seed %v", f.Old, f.New)
	case f.Path == "spec.hibernation.enabled", f.Path == "spec.hibernation":
		switch was, is := hibernates(f.Old), hibernates(f.New); {
		case is && !was:
			return "hibernates the cluster: its nodes and its control plane stop"
		case was && !is:
			return "wakes the cluster up: its control plane and its nodes start"
		}
	}
	return ""
}

// hibernates reports whether a value of spec.hibernation, or of its field enabled, hibernates a
// Shoot.
func hibernates(v any) bool {
	return v == true || nestedValue(map[string]any{"h": v}, "h", "enabled") == true
}

// scaling describes a workload without pods before or after the change; empty otherwise, and if
// that is unknown.
func scaling(item change.Item) string {
	if !slices.Contains([]string{"Deployment", "StatefulSet", "ReplicaSet", "ReplicationController", "Etcd"}, item.Object.Kind) {
		return ""
	}
	for _, f := range item.Fields {
		if f.Path != "spec.replicas" {
			continue
		}
		was, known := jsonvalue.Number(orElse(f.Old, int64(1)))
		is, too := jsonvalue.Number(orElse(f.New, int64(1)))
		switch {
		case !known || !too:
		case is.Sign() == 0:
			return stops
		case was.Sign() == 0:
			return starts
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

func workload(f change.Field, new *unstructured.Unstructured, say func(string)) {
	switch {
	case !within(f.Path, "spec.template"):
	case nested(new, "spec", "updateStrategy", "type") == "OnDelete":
		say(rollsLater)
	case nestedValue(contentOf(new), "spec", "paused") == true:
		say(rollsPaused)
	case nested(new, "spec", "strategy", "type") == "Recreate":
		say(replaces)
	default:
		say(rollsFrom(new))
	}
}

// partition of a StatefulSet is the number of pods that keep the old template.
const partition = "spec.updateStrategy.rollingUpdate.partition"

// rollsFrom describes which pods roll; a partition of a StatefulSet excludes some.
func rollsFrom(new *unstructured.Unstructured) string {
	o := contentOf(new)
	from, ok := whole(nestedValue(o, strings.Split(partition, ".")...))
	if new == nil || new.GetKind() != "StatefulSet" || !ok || from <= 0 {
		return rolls
	}
	if replicas, known := whole(nestedValue(o, "spec", "replicas")); known && from >= replicas {
		return rollsBelow
	}
	start, _ := whole(nestedValue(o, "spec", "ordinals", "start"))
	return fmt.Sprintf("%s from number %d on", rolls, start+from)
}

// whole returns an integer value; false for other values.
func whole(v any) (int64, bool) {
	n, ok := jsonvalue.Number(v)
	if !ok || !n.IsInt() {
		return 0, false
	}
	i, _ := n.Int64()
	return i, true
}

// within reports whether a path is one of the prefixes or below one.
func within(path string, prefixes ...string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool {
		rest, ok := strings.CutPrefix(path, p)
		return ok && (rest == "" || rest[0] == '.' || rest[0] == '[' || rest[0] == ' ')
	})
}

func nested(o *unstructured.Unstructured, fields ...string) string {
	if o == nil {
		return ""
	}
	s, _, _ := unstructured.NestedString(o.Object, fields...)
	return s
}
