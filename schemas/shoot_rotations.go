package schemas

import (
	"slices"
	"strings"
)

// Kinds of credentials with phases, as named in status.credentials.rotation.
const (
	rotatedCA   = "certificateAuthorities"
	rotatedSA   = "serviceAccountKey"
	rotatedETCD = "etcdEncryptionKey"
)

// rotationSteps lists the credentials that operations rotate, by the beginning of their names.
var rotationSteps = []struct {
	prefix      string
	credentials []string
}{
	{"rotate-credentials-", []string{rotatedCA, rotatedSA, rotatedETCD}},
	{"rotate-ca-", []string{rotatedCA}},
	{"rotate-serviceaccount-key-", []string{rotatedSA}},
	{"rotate-etcd-encryption-key", []string{rotatedETCD}},
}

func (s shoot) phase(credentials string) string {
	return s.status("credentials", "rotation", credentials, "phase").text()
}

// operationPossible checks an operation against the state in the status. A rotation starts when the
// last one is complete, and is completed when it is prepared.
func (r *report) operationPossible(s shoot, at tree, op string) {
	if isRollout(op) {
		r.rollout(s, at, op)
		return
	}
	for _, step := range rotationSteps {
		if !strings.HasPrefix(op, step.prefix) {
			continue
		}
		if strings.HasSuffix(op, "-complete") {
			for _, credentials := range step.credentials {
				// Since Kubernetes 1.34 the key is rotated in one step, without a completion.
				whole := credentials == rotatedETCD && len(step.credentials) > 1 && minorOf(s.version) >= 34
				if phase := s.phase(credentials); phase != "Prepared" && !whole {
					r.add(at, TypeForbidden, "%q is not possible before status.credentials.rotation.%s.phase is Prepared; it is %q", op, credentials, phase)
				}
			}
			return
		}
		r.rotationStart(s, at, op, step.credentials)
		return
	}
}

// ready reports whether the Shoot was created or restored, so that keys can be changed.
func (s shoot) ready() bool {
	return ended(s.status("lastOperation"))
}

// ended reports whether an owner was created or restored, according to its last operation. Every
// Reconcile comes later.
func ended(last tree) bool {
	done := last.at("state").text() == "Succeeded"
	return last.at("type").text() == "Reconcile" || done && slices.Contains([]string{"Create", "Restore"}, last.at("type").text())
}

func (r *report) rotationStart(s shoot, at tree, op string, rotated []string) {
	if !s.ready() {
		r.add(at, TypeForbidden, "%q is not possible before the Shoot was created or restored successfully", op)
	}
	for _, credentials := range rotated {
		if phase := s.phase(credentials); phase != "" && phase != "Completed" {
			r.add(at, TypeForbidden, "%q is not possible before the last rotation is complete; status.credentials.rotation.%s.phase is %q", op, credentials, phase)
		}
	}
	if slices.Equal(rotated, []string{rotatedETCD}) {
		return
	}
	for _, strategy := range []string{"autoInPlaceUpdate", "manualInPlaceUpdate"} {
		if pools := s.status("inPlaceUpdates", "pendingWorkerUpdates", strategy).texts(); len(pools) > 0 {
			r.add(at, TypeForbidden, "%q is not possible while pools are updated in place: %s", op, strings.Join(pools, ", "))
		}
	}
}

// rollout checks the pools that an operation replaces, as in rollout-workers=a,b.
func (r *report) rollout(s shoot, at tree, op string) {
	name, list, given := strings.Cut(op, "=")
	if !given {
		list = ""
	}
	afterRotation := strings.HasPrefix(op, opRolloutAfterRotation)
	if afterRotation && s.phase(rotatedCA) != "WaitingForWorkersRollout" && s.phase(rotatedSA) != "WaitingForWorkersRollout" {
		r.add(at, TypeForbidden, "%q is only possible when a rotation waits for it: the phase of certificateAuthorities or serviceAccountKey must be WaitingForWorkersRollout", name)
	}
	pools := strings.Split(list, ",")
	if slices.Contains(pools, "") {
		r.add(at, TypeRequired, "must name pools, as in %s=POOL,POOL", name)
	}
	if !afterRotation && len(pools) == 1 && pools[0] == "*" {
		pools = nil
		for _, worker := range s.workers {
			pools = append(pools, worker.at("name").text())
		}
	}
	for i, pool := range pools {
		if !afterRotation && pool == "*" {
			r.add(at, TypeForbidden, "* stands for all pools; name no other ones with it")
		}
		if slices.Contains(pools[:i], pool) {
			r.add(at, TypeDuplicate, "the pool %q is named twice", pool)
		}
		worker := slices.IndexFunc(s.workers, func(w tree) bool { return w.at("name").text() == pool })
		if worker < 0 {
			r.add(at, TypeInvalid, "there is no pool %q in spec.provider.workers", pool)
		} else if !afterRotation && inPlace(s.workers[worker]) {
			r.add(at, TypeInvalid, "the pool %q is updated in place, so that its machines are not replaced", pool)
		}
	}
}
