// SPDX-License-Identifier: Apache-2.0

package schemas

import (
	"slices"
	"strings"
)

// Kinds of credentials with phases, as named in status.credentials.rotation.
const (
	rotationFieldCA             = "certificateAuthorities"
	rotationFieldServiceAccount = "serviceAccountKey"
	rotationFieldETCD           = "etcdEncryptionKey"
)

// rotationSteps lists the credentials that operations rotate, by the beginning of their names.
var rotationSteps = []struct {
	prefix      string
	credentials []string
}{
	{"rotate-credentials-", []string{rotationFieldCA, rotationFieldServiceAccount, rotationFieldETCD}},
	{"rotate-ca-", []string{rotationFieldCA}},
	{"rotate-serviceaccount-key-", []string{rotationFieldServiceAccount}},
	{"rotate-etcd-encryption-key", []string{rotationFieldETCD}},
}

func (s shoot) rotationPhase(credentials string) string {
	return s.status("credentials", "rotation", credentials, "phase").text()
}

// checkOperationState checks an operation against the state in the status. A rotation starts when
// the last one is complete, and is completed when it is prepared.
func (r *findingCollector) checkOperationState(s shoot, at fieldValue, op string) {
	if isRollout(op) {
		r.checkRollout(s, at, op)
		return
	}
	for _, step := range rotationSteps {
		if !strings.HasPrefix(op, step.prefix) {
			continue
		}
		if strings.HasSuffix(op, "-complete") {
			for _, credentials := range step.credentials {
				// Since Kubernetes 1.34 the key is rotated in one step, without a completion.
				whole := credentials == rotationFieldETCD && len(step.credentials) > 1 && minorOf(s.version) >= 34
				if phase := s.rotationPhase(credentials); phase != "Prepared" && !whole {
					r.add(at, TypeForbidden, "%q is not possible before status.credentials.rotation.%s.phase is Prepared; it is %q", op, credentials, phase)
				}
			}
			return
		}
		r.checkRotationStart(s, at, op, step.credentials)
		return
	}
}

// isReady reports whether the Shoot was created or restored, so that keys can be changed.
func (s shoot) isReady() bool {
	return hasCreationEnded(s.status("lastOperation"))
}

// hasCreationEnded reports whether an owner was created or restored, according to its last
// operation. Every Reconcile comes later.
func hasCreationEnded(last fieldValue) bool {
	done := last.lookup("state").text() == "Succeeded"
	return last.lookup("type").text() == "Reconcile" || done && slices.Contains([]string{"Create", "Restore"}, last.lookup("type").text())
}

func (r *findingCollector) checkRotationStart(s shoot, at fieldValue, op string, rotated []string) {
	if !s.isReady() {
		r.add(at, TypeForbidden, "%q is not possible before the Shoot was created or restored successfully", op)
	}
	for _, credentials := range rotated {
		if phase := s.rotationPhase(credentials); phase != "" && phase != "Completed" {
			r.add(at, TypeForbidden, "%q is not possible before the last rotation is complete; status.credentials.rotation.%s.phase is %q", op, credentials, phase)
		}
	}
	if slices.Equal(rotated, []string{rotationFieldETCD}) {
		return
	}
	for _, strategy := range []string{"autoInPlaceUpdate", "manualInPlaceUpdate"} {
		if pools := s.status("inPlaceUpdates", "pendingWorkerUpdates", strategy).texts(); len(pools) > 0 {
			r.add(at, TypeForbidden, "%q is not possible while pools are updated in place: %s", op, strings.Join(pools, ", "))
		}
	}
}

// checkRollout checks the pools that an operation replaces, as in rollout-workers=a,b.
func (r *findingCollector) checkRollout(s shoot, at fieldValue, op string) {
	name, list, given := strings.Cut(op, "=")
	if !given {
		list = ""
	}
	afterRotation := strings.HasPrefix(op, opRolloutAfterRotation)
	if afterRotation && s.rotationPhase(rotationFieldCA) != "WaitingForWorkersRollout" && s.rotationPhase(rotationFieldServiceAccount) != "WaitingForWorkersRollout" {
		r.add(at, TypeForbidden, "%q is only possible when a rotation waits for it: the phase of certificateAuthorities or serviceAccountKey must be WaitingForWorkersRollout", name)
	}
	pools := strings.Split(list, ",")
	if slices.Contains(pools, "") {
		r.add(at, TypeRequired, "must name pools, as in %s=POOL,POOL", name)
	}
	if !afterRotation && len(pools) == 1 && pools[0] == "*" {
		pools = nil
		for _, worker := range s.workers {
			pools = append(pools, worker.lookup("name").text())
		}
	}
	for i, pool := range pools {
		if !afterRotation && pool == "*" {
			r.add(at, TypeForbidden, "* stands for all pools; do not name other pools with it")
		}
		if slices.Contains(pools[:i], pool) {
			r.add(at, TypeDuplicate, "the pool %q is named twice", pool)
		}
		worker := slices.IndexFunc(s.workers, func(w fieldValue) bool { return w.lookup("name").text() == pool })
		if worker < 0 {
			r.add(at, TypeInvalid, "there is no pool %q in spec.provider.workers", pool)
		} else if !afterRotation && isUpdatedInPlace(s.workers[worker]) {
			r.add(at, TypeInvalid, "the pool %q is updated in place, so its machines are not replaced", pool)
		}
	}
}
