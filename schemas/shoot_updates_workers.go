// SPDX-License-Identifier: Apache-2.0

package schemas

import (
	"fmt"
	"slices"
)

// checkShootPoolUpdate checks fields of a pool that cannot be changed.
func checkShootPoolUpdate(r *findingCollector, s shoot) {
	if !s.old.isSet() || s.isBeingDeleted() || s.hasWorkerlessChanged() {
		return
	}
	for _, worker := range s.workers {
		old := s.oldWorker(worker)
		if !old.isSet() {
			continue
		}
		strategy := worker.lookup("updateStrategy")
		switch {
		case isUpdatedInPlace(old) != isUpdatedInPlace(worker):
			r.add(strategy, TypeInvalid, "machines cannot change between being replaced and being updated in place; add another pool instead")
		case isUpdatedInPlace(worker) && strategy.text() == old.lookup("updateStrategy").text():
			for _, path := range [][]string{{"machine", "type"}, {"machine", "image", "name"}, {"cri", "name"}, {"volume"}} {
				if field, before := worker.lookup(path...), old.lookup(path...); before.isSet() && field.isSet() || path[0] == "volume" {
					r.requireUnchanged(field, before)
				}
			}
		}
		if backup, before := worker.lookup("controlPlane", "backup"), old.lookup("controlPlane", "backup"); before.isSet() {
			if backup.isSet() {
				r.requireUnchanged(backup.lookup("provider"), before.lookup("provider"))
				r.requireUnchanged(backup.lookup("region"), before.lookup("region"))
			} else {
				r.requireUnchanged(backup, before)
			}
		}
	}
	pools := s.spec.lookup("provider", "workers")
	was, is := controlPlanePool(s.old.lookup("spec", "provider", "workers").items()), controlPlanePool(s.workers)
	if was.isSet() != is.isSet() {
		r.add(pools, TypeForbidden, "a Shoot cannot move its control plane between a Seed and its own nodes")
	} else if is.isSet() && was.lookup("name").text() != is.lookup("name").text() {
		r.add(pools, TypeForbidden, "the control plane cannot move to another pool; it runs on %q", was.lookup("name").text())
	}
}

// controlPlanePool returns the pool that runs the control plane of a self-hosted Shoot; not set for
// other Shoots.
func controlPlanePool(workers []fieldValue) fieldValue {
	for _, worker := range workers {
		if worker.lookup("controlPlane").isSet() {
			return worker
		}
	}
	return fieldValue{}
}

// checkShootPendingUpdate rejects changes of pools while their machines are updated in place.
func checkShootPendingUpdate(r *findingCollector, s shoot) {
	if !s.old.isSet() || slices.Contains(readOperations(s.lookup("metadata", "annotations"), keyOperation).names, "force-in-place-update") {
		return
	}
	pending := s.status("inPlaceUpdates", "pendingWorkerUpdates")
	names := slices.Concat(pending.lookup("autoInPlaceUpdate").texts(), pending.lookup("manualInPlaceUpdate").texts())
	for _, worker := range s.workers {
		old := s.oldWorker(worker)
		if !isUpdatedInPlace(worker) || !old.isSet() || !slices.Contains(names, worker.lookup("name").text()) {
			continue
		}
		settings := func(spec, worker fieldValue) [2]any {
			version, kubelet := worker.lookup("kubernetes", "version"), worker.lookup("kubernetes", "kubelet")
			if !version.isSet() {
				version = spec.lookup("kubernetes", "version")
			}
			if !kubelet.isSet() {
				kubelet = spec.lookup("kubernetes", "kubelet")
			}
			return [2]any{version.value, kubelet.value}
		}
		if !isEqual(worker.value, old.value) || !isEqual(settings(s.spec, worker), settings(s.old.lookup("spec"), old)) {
			r.add(worker, TypeForbidden, "cannot be changed while its machines are updated in place; the annotation %s: force-in-place-update allows it", keyOperation)
		}
	}
}

// checkShootNodeLocalDNSUpdate rejects switching the DNS cache of the nodes if it needs new
// machines.
func checkShootNodeLocalDNSUpdate(r *findingCollector, s shoot) {
	field, before := s.spec.lookup("systemComponents", "nodeLocalDNS"), s.old.lookup("spec", "systemComponents", "nodeLocalDNS")
	if !s.old.isSet() || field.lookup("enabled").isTrue() == before.lookup("enabled").isTrue() {
		return
	}
	old := s.old.lookup("spec")
	ipvs := old.lookup("kubernetes", "kubeProxy", "mode").text() == "IPVS"
	for _, worker := range old.lookup("provider", "workers").items() {
		version := old.lookup("kubernetes", "version").text()
		if own := worker.lookup("kubernetes", "version").text(); own != "" {
			version = own
		}
		if enabled := old.lookup("kubernetes", "kubeProxy", "enabled"); isUpdatedInPlace(worker) && (minorOf(version) < 34 || ipvs && (!enabled.isSet() || enabled.isTrue())) {
			r.add(field, TypeForbidden, "cannot be turned on or off while the pool %q is updated in place and has a version below 1.34 or kube-proxy in mode IPVS", worker.lookup("name").text())
			return
		}
	}
}

// checkShootEncryptionUpdate checks changes of the encryption, which are rolled out in several
// steps.
func checkShootEncryptionUpdate(r *findingCollector, s shoot) {
	if !s.old.isSet() {
		return
	}
	path := []string{"kubernetes", "kubeAPIServer", "encryptionConfig"}
	now, before := s.spec.lookup(path...), s.old.lookup("spec").lookup(path...)
	resources, provider := now.lookup("resources"), now.lookup("provider", "type")
	old, was := before.lookup("resources").texts(), orDefault(before.lookup("provider", "type").text(), defaultShootEncryptionProvider)
	listed, provided := !isSameSet(resources.texts(), old), orDefault(provider.text(), defaultShootEncryptionProvider) != was
	if !listed && !provided {
		return
	}
	for _, problem := range s.encryptionObstacles(old, was) {
		if listed {
			r.add(resources, TypeForbidden, "cannot be changed %s", problem)
		}
		if provided {
			r.add(provider, TypeForbidden, "cannot be changed %s", problem)
		}
	}
	if provided && s.hasStatus() && !s.isReady() {
		r.add(provider, TypeForbidden, "cannot be changed before the Shoot was created or restored successfully; see status.lastOperation")
	}
	if provided && listed {
		r.add(provider, TypeForbidden, "cannot be changed together with resources; change one of them, and the other one when the first change is rolled out")
	}
}

// encryptionObstacles returns the reasons why the encryption cannot be changed from the given one.
func (s shoot) encryptionObstacles(resources []string, provider string) (problems []string) {
	if phase := s.rotationPhase(rotationFieldETCD); phase != "" && phase != "Completed" {
		problems = append(problems, fmt.Sprintf("during the rotation of the key; status.credentials.rotation.etcdEncryptionKey.phase is %q", phase))
	}
	atRest := s.status("credentials", "encryptionAtRest")
	differs := atRest.isSet() && orDefault(atRest.lookup("provider", "type").text(), defaultShootEncryptionProvider) != provider
	if s.hasStatus() && (differs || !isSameSet(resources, atRest.lookup("resources").texts())) {
		problems = append(problems, "while the last change is rolled out; status.credentials.encryptionAtRest still differs")
	}
	if s.spec.lookup("hibernation", "enabled").isTrue() {
		problems = append(problems, "while the cluster is hibernated")
	}
	return problems
}

const defaultShootEncryptionProvider = "aescbc"

// hasStatus reports whether one of the objects has a status; files in Git usually have none.
func (s shoot) hasStatus() bool { return s.lookup("status").isSet() || s.old.lookup("status").isSet() }

// checkShootHibernationUpdate rejects hibernation during a rotation.
func checkShootHibernationUpdate(r *findingCollector, s shoot) {
	field := s.spec.lookup("hibernation", "enabled")
	if !s.old.isSet() || !field.isTrue() || s.old.lookup("spec", "hibernation", "enabled").isTrue() {
		return
	}
	for _, credentials := range []string{rotationFieldETCD, rotationFieldServiceAccount} {
		if phase := s.rotationPhase(credentials); slices.Contains([]string{"Preparing", "PreparingWithoutWorkersRollout", "Completing"}, phase) {
			r.add(field, TypeForbidden, "the cluster cannot be hibernated during a rotation; status.credentials.rotation.%s.phase is %q", credentials, phase)
		}
	}
	old := s.old.lookup("spec", "kubernetes", "kubeAPIServer", "encryptionConfig", "resources").texts()
	if s.hasStatus() && !isSameSet(old, s.old.lookup("status", "credentials", "encryptionAtRest", "resources").texts()) {
		r.add(field, TypeForbidden, "the cluster cannot be hibernated while a change of encryptionConfig is rolled out")
	}
	for _, constraint := range s.status("constraints").items() {
		if constraint.lookup("type").text() == "HibernationPossible" && constraint.lookup("status").text() != "True" {
			r.add(field, TypeForbidden, "the cluster cannot be hibernated now: %s", constraint.lookup("message").text())
		}
	}
}

const keyForceDeletion = "confirmation.gardener.cloud/force-deletion"

// checkShootForceDeletion checks whether the deletion of a Shoot may be forced.
func checkShootForceDeletion(r *findingCollector, s shoot) {
	if !s.old.isSet() {
		return
	}
	field := s.lookup("metadata", "annotations").entry(keyForceDeletion)
	wanted, before := isTrueAnnotation(field.text()), isTrueAnnotation(s.old.lookup("metadata", "annotations").entry(keyForceDeletion).text())
	switch {
	case before && !wanted:
		r.add(field, TypeForbidden, "cannot be undone")
	case wanted && !before:
		if !s.isBeingDeleted() {
			r.add(field, TypeForbidden, "can be set only when the Shoot is being deleted")
			return
		}
		allowed := []string{"ERR_INFRA_UNAUTHENTICATED", "ERR_INFRA_UNAUTHORIZED", "ERR_INFRA_DEPENDENCIES", "ERR_CLEANUP_CLUSTER_RESOURCES", "ERR_CONFIGURATION_PROBLEM"}
		for _, failure := range s.status("lastErrors").items() {
			if slices.ContainsFunc(failure.lookup("codes").texts(), func(code string) bool { return slices.Contains(allowed, code) }) {
				return
			}
		}
		r.add(field, TypeForbidden, "can be set only when the deletion failed with one of the codes %s", quotedList(allowed))
	}
}

// isTrueAnnotation reports whether the value of an annotation is true for Go's strconv.ParseBool.
func isTrueAnnotation(text string) bool {
	return slices.Contains([]string{"1", "t", "T", "TRUE", "true", "True"}, text)
}
