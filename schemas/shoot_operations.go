// SPDX-License-Identifier: Apache-2.0

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

// hibernationBlockedOperations lists the operations that are impossible in a hibernated cluster.
var hibernationBlockedOperations = [...]string{
	"rotate-credentials-start", "rotate-credentials-start-without-workers-rollout", "rotate-credentials-complete",
	"rotate-etcd-encryption-key", "rotate-etcd-encryption-key-start", "rotate-etcd-encryption-key-complete",
	"rotate-serviceaccount-key-start", "rotate-serviceaccount-key-start-without-workers-rollout", "rotate-serviceaccount-key-complete",
}

// parallel lists further operations that may be requested together; alone lists the others.
var (
	combinableOperations = [...]string{
		"reconcile", "rotate-ca-start", "rotate-ca-start-without-workers-rollout", "rotate-ca-complete",
		"rotate-observability-credentials", "rotate-ssh-keypair", opRolloutAfterRotation, opRollout,
	}
	exclusiveOperations = [...]string{"maintain", "retry", "force-in-place-update"}
)

// conflictingOperations maps operations to the operations that cannot be requested together with
// them.
var conflictingOperations = map[string][]string{
	"rotate-credentials-start": {"rotate-ca-start-without-workers-rollout", "rotate-serviceaccount-key-start-without-workers-rollout",
		"rotate-credentials-start-without-workers-rollout"},
	"rotate-credentials-start-without-workers-rollout": {"rotate-ca-start", "rotate-serviceaccount-key-start"},
	"rotate-ca-start":                 {"rotate-ca-start-without-workers-rollout"},
	"rotate-serviceaccount-key-start": {"rotate-serviceaccount-key-start-without-workers-rollout"},
	"rotate-etcd-encryption-key":      {"rotate-etcd-encryption-key-start"},
}

// includedOperations maps operations to operations that they contain, and that cannot wait in the
// other annotation.
var includedOperations = map[string][]string{
	"rotate-credentials-start":                         startRotationOperations,
	"rotate-credentials-start-without-workers-rollout": startRotationOperations,
	"rotate-credentials-complete":                      {"rotate-ca-complete", "rotate-serviceaccount-key-complete", "rotate-etcd-encryption-key-complete"},
}

var startRotationOperations = []string{"rotate-ca-start", "rotate-ca-start-without-workers-rollout", "rotate-serviceaccount-key-start",
	"rotate-serviceaccount-key-start-without-workers-rollout", "rotate-etcd-encryption-key", "rotate-etcd-encryption-key-start"}

// annotatedOperations are the operations of an annotation.
type annotatedOperations struct {
	annotation fieldValue
	names      []string
}

func readOperations(annotations fieldValue, key string) annotatedOperations {
	o := annotatedOperations{annotation: annotations.entry(key)}
	for _, op := range strings.Split(o.annotation.text(), ";") {
		if op = strings.TrimSpace(op); op != "" {
			o.names = append(o.names, op)
		}
	}
	return o
}

func isRollout(op string) bool {
	return strings.HasPrefix(op, opRolloutAfterRotation) || strings.HasPrefix(op, opRollout)
}

// checkShootOperations checks the requested operations: whether they exist, go together, and are
// possible in the state of the status.
func checkShootOperations(r *findingCollector, s shoot) {
	annotations := s.lookup("metadata", "annotations")
	now, later := readOperations(annotations, keyOperation), readOperations(annotations, keyMaintenanceOperation)
	if len(now.names)+len(later.names) == 0 || !r.checkKnownOperations(now) || !r.checkKnownOperations(later) {
		return
	}
	for _, op := range now.names {
		if slices.Contains(later.names, op) {
			r.add(annotations, TypeForbidden, "%q is in both %s and %s; leave it in one", op, keyOperation, keyMaintenanceOperation)
		}
	}
	for _, of := range []annotatedOperations{now, later} {
		for _, op := range of.names {
			r.checkOperationAllowed(s, of, op, now.annotation)
		}
	}
	r.checkIncludedOperations(now, later, now.annotation)
	r.checkIncludedOperations(later, now, now.annotation)
	for _, of := range []annotatedOperations{now, later} {
		if of.annotation.path == later.annotation.path && s.lookup("metadata", "deletionTimestamp").isSet() {
			continue
		}
		for _, op := range of.names {
			r.checkOperationState(s, of.annotation, op)
		}
	}
}

// checkKnownOperations reports whether all operations exist and may be requested together.
func (r *findingCollector) checkKnownOperations(of annotatedOperations) bool {
	together := slices.Concat(hibernationBlockedOperations[:], combinableOperations[:])
	for _, op := range of.names {
		switch {
		case isRollout(op), slices.Contains(together, op):
		case slices.Contains(exclusiveOperations[:], op):
			if len(of.names) > 1 {
				r.add(of.annotation, TypeForbidden, "%q cannot be combined with other operations", op)
				return false
			}
		default:
			r.requireOneOf(fieldValue{path: of.annotation.path, value: op}, slices.Sorted(slices.Values(slices.Concat(together, exclusiveOperations[:])))...)
			return false
		}
	}
	return true
}

func (r *findingCollector) checkOperationAllowed(s shoot, of annotatedOperations, op string, now fieldValue) {
	if (op == "rotate-etcd-encryption-key-start" || op == "rotate-etcd-encryption-key-complete") && minorOf(s.version) >= 34 {
		r.add(now, TypeForbidden, "%q is not possible since Kubernetes 1.34; use rotate-etcd-encryption-key, which does the whole rotation", op)
	}
	for _, other := range conflictingOperations[op] {
		if slices.Contains(of.names, other) {
			r.add(of.annotation, TypeForbidden, "%q and %q contradict each other; leave one out", op, other)
		}
	}
	if s.isHibernated() && (isRollout(op) || slices.Contains(hibernationBlockedOperations[:], op)) {
		r.add(of.annotation, TypeForbidden, "%q is not possible while the cluster is hibernated or wakes up", op)
	}
	rotatesKey := slices.Contains([]string{"rotate-credentials-start", "rotate-etcd-encryption-key", "rotate-etcd-encryption-key-start"}, op)
	if rotatesKey && !isSameSet(s.encryptedResources(), s.status("credentials", "encryptionAtRest", "resources").texts()) {
		r.add(of.annotation, TypeForbidden, "%q is not possible while a change of encryptionConfig is rolled out", op)
	}
}

func (r *findingCollector) checkIncludedOperations(of, other annotatedOperations, now fieldValue) {
	for _, op := range of.names {
		for _, part := range includedOperations[op] {
			if slices.Contains(other.names, part) {
				r.add(now, TypeForbidden, "%q does %q as well; they cannot be given in %s and %s", op, part, keyOperation, keyMaintenanceOperation)
			}
		}
	}
}

// status returns a part of the status: of the new object, or of the old one if the new one has no
// status.
func (s shoot) status(names ...string) fieldValue {
	if status := s.lookup("status"); status.isSet() {
		return status.lookup(names...)
	}
	return s.old.lookup("status").lookup(names...)
}

func (s shoot) isHibernated() bool {
	return s.spec.lookup("hibernation", "enabled").isTrue() || s.status("hibernated").isTrue()
}

func (s shoot) encryptedResources() []string {
	return s.spec.lookup("kubernetes", "kubeAPIServer", "encryptionConfig", "resources").texts()
}

// isSameSet compares lists without order and repetition; "configmaps." equals "configmaps".
func isSameSet(a, b []string) bool {
	set := func(list []string) []string {
		members := map[string]bool{}
		for _, item := range list {
			members[strings.TrimSuffix(item, ".")] = true
		}
		return slices.Sorted(maps.Keys(members))
	}
	return slices.Equal(set(a), set(b))
}
