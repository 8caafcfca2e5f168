package schemas

import (
	"fmt"
	"slices"
)

// shootPoolUpdate checks fields of a pool that cannot be changed.
func shootPoolUpdate(r *report, s shoot) {
	if !s.old.set() || s.ends() || s.becomesWorkerless() {
		return
	}
	for _, worker := range s.workers {
		old := s.oldWorker(worker)
		if !old.set() {
			continue
		}
		strategy := worker.at("updateStrategy")
		switch {
		case inPlace(old) != inPlace(worker):
			r.add(strategy, TypeInvalid, "machines cannot change between being replaced and being updated in place; add another pool instead")
		case inPlace(worker) && strategy.text() == old.at("updateStrategy").text():
			for _, path := range [][]string{{"machine", "type"}, {"machine", "image", "name"}, {"cri", "name"}, {"volume"}} {
				if field, before := worker.at(path...), old.at(path...); before.set() && field.set() || path[0] == "volume" {
					r.same(field, before)
				}
			}
		}
		if backup, before := worker.at("controlPlane", "backup"), old.at("controlPlane", "backup"); before.set() {
			if backup.set() {
				r.same(backup.at("provider"), before.at("provider"))
				r.same(backup.at("region"), before.at("region"))
			} else {
				r.same(backup, before)
			}
		}
	}
	pools := s.spec.at("provider", "workers")
	was, is := controlPlanePool(s.old.at("spec", "provider", "workers").items()), controlPlanePool(s.workers)
	if was.set() != is.set() {
		r.add(pools, TypeForbidden, "a Shoot cannot move its control plane between a Seed and its own nodes")
	} else if is.set() && was.at("name").text() != is.at("name").text() {
		r.add(pools, TypeForbidden, "the control plane cannot move to another pool; it runs on %q", was.at("name").text())
	}
}

// controlPlanePool returns the pool that runs the control plane of a self-hosted Shoot; not set for
// other Shoots.
func controlPlanePool(workers []tree) tree {
	for _, worker := range workers {
		if worker.at("controlPlane").set() {
			return worker
		}
	}
	return tree{}
}

// shootPendingUpdate rejects changes of pools while their machines are updated in place.
func shootPendingUpdate(r *report, s shoot) {
	if !s.old.set() || slices.Contains(readOperations(s.at("metadata", "annotations"), keyOperation).list, "force-in-place-update") {
		return
	}
	pending := s.status("inPlaceUpdates", "pendingWorkerUpdates")
	names := slices.Concat(pending.at("autoInPlaceUpdate").texts(), pending.at("manualInPlaceUpdate").texts())
	for _, worker := range s.workers {
		old := s.oldWorker(worker)
		if !inPlace(worker) || !old.set() || !slices.Contains(names, worker.at("name").text()) {
			continue
		}
		settings := func(spec, worker tree) [2]any {
			version, kubelet := worker.at("kubernetes", "version"), worker.at("kubernetes", "kubelet")
			if !version.set() {
				version = spec.at("kubernetes", "version")
			}
			if !kubelet.set() {
				kubelet = spec.at("kubernetes", "kubelet")
			}
			return [2]any{version.value, kubelet.value}
		}
		if !equal(worker.value, old.value) || !equal(settings(s.spec, worker), settings(s.old.at("spec"), old)) {
			r.add(worker, TypeForbidden, "cannot be changed while its machines are updated in place; the annotation %s: force-in-place-update allows it", keyOperation)
		}
	}
}

// shootNodeLocalDNSUpdate rejects switching the DNS cache of the nodes if it needs new machines.
func shootNodeLocalDNSUpdate(r *report, s shoot) {
	field, before := s.spec.at("systemComponents", "nodeLocalDNS"), s.old.at("spec", "systemComponents", "nodeLocalDNS")
	if !s.old.set() || field.at("enabled").is() == before.at("enabled").is() {
		return
	}
	old := s.old.at("spec")
	ipvs := old.at("kubernetes", "kubeProxy", "mode").text() == "IPVS"
	for _, worker := range old.at("provider", "workers").items() {
		version := old.at("kubernetes", "version").text()
		if own := worker.at("kubernetes", "version").text(); own != "" {
			version = own
		}
		if enabled := old.at("kubernetes", "kubeProxy", "enabled"); inPlace(worker) && (minorOf(version) < 34 || ipvs && (!enabled.set() || enabled.is())) {
			r.add(field, TypeForbidden, "cannot be turned on or off while the pool %q is updated in place and has a version below 1.34 or kube-proxy in mode IPVS", worker.at("name").text())
			return
		}
	}
}

// shootEncryptionUpdate checks changes of the encryption, which are rolled out in several steps.
func shootEncryptionUpdate(r *report, s shoot) {
	if !s.old.set() {
		return
	}
	path := []string{"kubernetes", "kubeAPIServer", "encryptionConfig"}
	now, before := s.spec.at(path...), s.old.at("spec").at(path...)
	resources, provider := now.at("resources"), now.at("provider", "type")
	old, was := before.at("resources").texts(), orDefault(before.at("provider", "type").text(), shootEncryption)
	listed, provided := !sameSet(resources.texts(), old), orDefault(provider.text(), shootEncryption) != was
	if !listed && !provided {
		return
	}
	for _, problem := range s.encryptionUnderWay(old, was) {
		if listed {
			r.add(resources, TypeForbidden, "cannot be changed %s", problem)
		}
		if provided {
			r.add(provider, TypeForbidden, "cannot be changed %s", problem)
		}
	}
	if provided && s.hasStatus() && !s.ready() {
		r.add(provider, TypeForbidden, "cannot be changed before the Shoot was created or restored successfully; see status.lastOperation")
	}
	if provided && listed {
		r.add(provider, TypeForbidden, "cannot be changed together with resources; change one of them, and the other one when the first change is rolled out")
	}
}

// encryptionUnderWay returns the reasons why the encryption cannot be changed from the given one.
func (s shoot) encryptionUnderWay(resources []string, provider string) (problems []string) {
	if phase := s.phase(rotatedETCD); phase != "" && phase != "Completed" {
		problems = append(problems, fmt.Sprintf("during the rotation of the key; status.credentials.rotation.etcdEncryptionKey.phase is %q", phase))
	}
	atRest := s.status("credentials", "encryptionAtRest")
	differs := atRest.set() && orDefault(atRest.at("provider", "type").text(), shootEncryption) != provider
	if s.hasStatus() && (differs || !sameSet(resources, atRest.at("resources").texts())) {
		problems = append(problems, "while the last change is rolled out; status.credentials.encryptionAtRest still differs")
	}
	if s.spec.at("hibernation", "enabled").is() {
		problems = append(problems, "while the cluster is hibernated")
	}
	return problems
}

const shootEncryption = "aescbc"

// hasStatus reports whether one of the objects has a status; files in Git usually have none.
func (s shoot) hasStatus() bool { return s.at("status").set() || s.old.at("status").set() }

// shootHibernationUpdate rejects hibernation during a rotation.
func shootHibernationUpdate(r *report, s shoot) {
	field := s.spec.at("hibernation", "enabled")
	if !s.old.set() || !field.is() || s.old.at("spec", "hibernation", "enabled").is() {
		return
	}
	for _, credentials := range []string{rotatedETCD, rotatedSA} {
		if phase := s.phase(credentials); slices.Contains([]string{"Preparing", "PreparingWithoutWorkersRollout", "Completing"}, phase) {
			r.add(field, TypeForbidden, "the cluster cannot be hibernated during a rotation; status.credentials.rotation.%s.phase is %q", credentials, phase)
		}
	}
	old := s.old.at("spec", "kubernetes", "kubeAPIServer", "encryptionConfig", "resources").texts()
	if s.hasStatus() && !sameSet(old, s.old.at("status", "credentials", "encryptionAtRest", "resources").texts()) {
		r.add(field, TypeForbidden, "the cluster cannot be hibernated while a change of encryptionConfig is rolled out")
	}
	for _, constraint := range s.status("constraints").items() {
		if constraint.at("type").text() == "HibernationPossible" && constraint.at("status").text() != "True" {
			r.add(field, TypeForbidden, "the cluster cannot be hibernated now: %s", constraint.at("message").text())
		}
	}
}

const keyForceDeletion = "confirmation.gardener.cloud/force-deletion"

// shootForceDeletion checks whether the deletion of a Shoot may be forced.
func shootForceDeletion(r *report, s shoot) {
	if !s.old.set() {
		return
	}
	field := s.at("metadata", "annotations").key(keyForceDeletion)
	wanted, before := isTrue(field.text()), isTrue(s.old.at("metadata", "annotations").key(keyForceDeletion).text())
	switch {
	case before && !wanted:
		r.add(field, TypeForbidden, "cannot be taken back")
	case wanted && !before:
		if !s.ends() {
			r.add(field, TypeForbidden, "can be set only when the Shoot is being deleted")
			return
		}
		allowed := []string{"ERR_INFRA_UNAUTHENTICATED", "ERR_INFRA_UNAUTHORIZED", "ERR_INFRA_DEPENDENCIES", "ERR_CLEANUP_CLUSTER_RESOURCES", "ERR_CONFIGURATION_PROBLEM"}
		for _, failure := range s.status("lastErrors").items() {
			if slices.ContainsFunc(failure.at("codes").texts(), func(code string) bool { return slices.Contains(allowed, code) }) {
				return
			}
		}
		r.add(field, TypeForbidden, "can be set only when the deletion failed with one of the codes %s", quotedList(allowed))
	}
}

// isTrue reports whether the value of an annotation is true for Go's strconv.ParseBool.
func isTrue(text string) bool {
	return slices.Contains([]string{"1", "t", "T", "TRUE", "true", "True"}, text)
}
