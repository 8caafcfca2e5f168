package schemas

import (
	"maps"
	"slices"
	"strings"
)

const (
	keyOperation            = "gardener.cloud/operation"
	keyMaintenanceOperation = "maintenance.gardener.cloud/operation"

	opRolloutAfterRotation = "rotate-rollout-workers"
	opRollout              = "rollout-workers"
)

// sleepless lists the operations that are impossible in a hibernated cluster.
var sleepless = [...]string{
	"rotate-credentials-start", "rotate-credentials-start-without-workers-rollout", "rotate-credentials-complete",
	"rotate-etcd-encryption-key", "rotate-etcd-encryption-key-start", "rotate-etcd-encryption-key-complete",
	"rotate-serviceaccount-key-start", "rotate-serviceaccount-key-start-without-workers-rollout", "rotate-serviceaccount-key-complete",
}

// parallel lists further operations that may be requested together; alone lists the others.
var (
	parallel = [...]string{
		"reconcile", "rotate-ca-start", "rotate-ca-start-without-workers-rollout", "rotate-ca-complete",
		"rotate-observability-credentials", "rotate-ssh-keypair", opRolloutAfterRotation, opRollout,
	}
	alone = [...]string{"maintain", "retry", "force-in-place-update"}
)

// contradictions maps operations to the operations that cannot be requested together with them.
var contradictions = map[string][]string{
	"rotate-credentials-start": {"rotate-ca-start-without-workers-rollout", "rotate-serviceaccount-key-start-without-workers-rollout",
		"rotate-credentials-start-without-workers-rollout"},
	"rotate-credentials-start-without-workers-rollout": {"rotate-ca-start", "rotate-serviceaccount-key-start"},
	"rotate-ca-start":                 {"rotate-ca-start-without-workers-rollout"},
	"rotate-serviceaccount-key-start": {"rotate-serviceaccount-key-start-without-workers-rollout"},
	"rotate-etcd-encryption-key":      {"rotate-etcd-encryption-key-start"},
}

// included maps operations to operations that they contain, and that cannot wait in the other
// annotation.
var included = map[string][]string{
	"rotate-credentials-start":                         partsOfStart,
	"rotate-credentials-start-without-workers-rollout": partsOfStart,
	"rotate-credentials-complete":                      {"rotate-ca-complete", "rotate-serviceaccount-key-complete", "rotate-etcd-encryption-key-complete"},
}

var partsOfStart = []string{"rotate-ca-start", "rotate-ca-start-without-workers-rollout", "rotate-serviceaccount-key-start",
	"rotate-serviceaccount-key-start-without-workers-rollout", "rotate-etcd-encryption-key", "rotate-etcd-encryption-key-start"}

// operations are the operations of an annotation.
type operations struct {
	at   tree
	list []string
}

func readOperations(annotations tree, key string) operations {
	o := operations{at: annotations.key(key)}
	for _, op := range strings.Split(o.at.text(), ";") {
		if op = strings.TrimSpace(op); op != "" {
			o.list = append(o.list, op)
		}
	}
	return o
}

func isRollout(op string) bool {
	return strings.HasPrefix(op, opRolloutAfterRotation) || strings.HasPrefix(op, opRollout)
}

// shootOperations checks the requested operations: whether they exist, go together, and are
// possible in the state of the status.
func shootOperations(r *report, s shoot) {
	annotations := s.at("metadata", "annotations")
	now, later := readOperations(annotations, keyOperation), readOperations(annotations, keyMaintenanceOperation)
	if len(now.list)+len(later.list) == 0 || !r.known(now) || !r.known(later) {
		return
	}
	for _, op := range now.list {
		if slices.Contains(later.list, op) {
			r.add(annotations, TypeForbidden, "%q is in both %s and %s; leave it in one", op, keyOperation, keyMaintenanceOperation)
		}
	}
	for _, of := range []operations{now, later} {
		for _, op := range of.list {
			r.operationAllowed(s, of, op, now.at)
		}
	}
	r.includedTwice(now, later, now.at)
	r.includedTwice(later, now, now.at)
	for _, of := range []operations{now, later} {
		if of.at.path == later.at.path && s.at("metadata", "deletionTimestamp").set() {
			continue
		}
		for _, op := range of.list {
			r.operationPossible(s, of.at, op)
		}
	}
}

// known reports whether all operations exist and may be requested together.
func (r *report) known(of operations) bool {
	together := slices.Concat(sleepless[:], parallel[:])
	for _, op := range of.list {
		switch {
		case isRollout(op), slices.Contains(together, op):
		case slices.Contains(alone[:], op):
			if len(of.list) > 1 {
				r.add(of.at, TypeForbidden, "%q cannot be given together with other operations", op)
				return false
			}
		default:
			r.oneOf(tree{path: of.at.path, value: op}, slices.Sorted(slices.Values(slices.Concat(together, alone[:])))...)
			return false
		}
	}
	return true
}

func (r *report) operationAllowed(s shoot, of operations, op string, now tree) {
	if (op == "rotate-etcd-encryption-key-start" || op == "rotate-etcd-encryption-key-complete") && minorOf(s.version) >= 34 {
		r.add(now, TypeForbidden, "%q is not possible since Kubernetes 1.34; use rotate-etcd-encryption-key, which does the whole rotation", op)
	}
	for _, other := range contradictions[op] {
		if slices.Contains(of.list, other) {
			r.add(of.at, TypeForbidden, "%q and %q contradict each other; leave one out", op, other)
		}
	}
	if s.hibernated() && (isRollout(op) || slices.Contains(sleepless[:], op)) {
		r.add(of.at, TypeForbidden, "%q is not possible while the cluster is hibernated or wakes up", op)
	}
	rotatesKey := slices.Contains([]string{"rotate-credentials-start", "rotate-etcd-encryption-key", "rotate-etcd-encryption-key-start"}, op)
	if rotatesKey && !sameSet(s.encrypted(), s.status("credentials", "encryptionAtRest", "resources").texts()) {
		r.add(of.at, TypeForbidden, "%q is not possible while a change of encryptionConfig is rolled out", op)
	}
}

func (r *report) includedTwice(of, other operations, now tree) {
	for _, op := range of.list {
		for _, part := range included[op] {
			if slices.Contains(other.list, part) {
				r.add(now, TypeForbidden, "%q does %q as well; they cannot be given in %s and %s", op, part, keyOperation, keyMaintenanceOperation)
			}
		}
	}
}

// status returns a part of the status: of the new object, or of the old one if the new one has no
// status.
func (s shoot) status(names ...string) tree {
	if status := s.at("status"); status.set() {
		return status.at(names...)
	}
	return s.old.at("status").at(names...)
}

func (s shoot) hibernated() bool {
	return s.spec.at("hibernation", "enabled").is() || s.status("hibernated").is()
}

func (s shoot) encrypted() []string {
	return s.spec.at("kubernetes", "kubeAPIServer", "encryptionConfig", "resources").texts()
}

// sameSet compares lists without order and repetition; "configmaps." equals "configmaps".
func sameSet(a, b []string) bool {
	set := func(list []string) []string {
		members := map[string]bool{}
		for _, item := range list {
			members[strings.TrimSuffix(item, ".")] = true
		}
		return slices.Sorted(maps.Keys(members))
	}
	return slices.Equal(set(a), set(b))
}
