// SPDX-License-Identifier: Apache-2.0

package schemas

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
)

const annotationOperation = "gardener.cloud/operation"

// readOperationAnnotation returns the operation annotation, the field of all findings about
// operations.
func readOperationAnnotation(object map[string]any) fieldValue {
	return fieldValue{value: object}.lookup("metadata", "annotations").entry(annotationOperation)
}

const (
	rotatePhasePrepared  = "Prepared"
	rotatePhaseCompleted = "Completed"
	rotateETCDKey        = "rotate-etcd-encryption-key"
)

// gardenRotation is an operation that starts or completes rotations of credentials.
type gardenRotation struct {
	operation string
	// credentials are the fields of status.credentials.rotation that the operation changes.
	credentials []string
	// isCompletion means that the rotations must be Prepared; otherwise none may be in progress.
	isCompletion bool
	// requiresStableEncryption means that the encryption must not be changing.
	requiresStableEncryption bool
}

// gardenRotations lists the operations on a Garden except reconcile. Source:
// pkg/apis/operator/v1alpha1, and for the conditions of each
// pkg/api/operator/v1alpha1/validation/garden.go.
func gardenRotations() []gardenRotation {
	const ca, serviceAccount, etcd, workload = "certificateAuthorities", "serviceAccountKey", "etcdEncryptionKey", "workloadIdentityKey"
	return []gardenRotation{
		{operation: "rotate-credentials-start", credentials: []string{ca, serviceAccount, etcd, workload}, requiresStableEncryption: true},
		{operation: "rotate-credentials-complete", credentials: []string{ca, serviceAccount, etcd, workload}, isCompletion: true},
		{operation: "rotate-ca-start", credentials: []string{ca}},
		{operation: "rotate-ca-complete", credentials: []string{ca}, isCompletion: true},
		{operation: "rotate-serviceaccount-key-start", credentials: []string{serviceAccount}},
		{operation: "rotate-serviceaccount-key-complete", credentials: []string{serviceAccount}, isCompletion: true},
		{operation: rotateETCDKey, credentials: []string{etcd}, requiresStableEncryption: true},
		{operation: rotateETCDKey + "-start", credentials: []string{etcd}, requiresStableEncryption: true},
		{operation: rotateETCDKey + "-complete", credentials: []string{etcd}, isCompletion: true},
		{operation: "rotate-observability-credentials"},
		{operation: "rotate-workload-identity-key-start", credentials: []string{workload}},
		{operation: "rotate-workload-identity-key-complete", credentials: []string{workload}, isCompletion: true},
	}
}

// checkGardenOperations checks the operation annotation, which holds operations separated by ';'.
func checkGardenOperations(in ruleInput) []finding {
	r, annotation, asked := &findingCollector{}, readOperationAnnotation(in.object), sets.New[string]()
	for operation := range strings.SplitSeq(annotation.text(), ";") {
		if operation = strings.TrimSpace(operation); operation != "" {
			asked.Insert(operation)
		} else if annotation.text() != "" {
			r.add(annotation, TypeNotSupported, "an operation before or after a ';' has no name; remove the ';'")
		}
	}
	known := []string{"reconcile"}
	for _, rotation := range gardenRotations() {
		known = append(known, rotation.operation)
	}
	oneStep := minorOf(fieldValue{value: in.object}.lookup("spec", "virtualCluster", "kubernetes", "version").text()) >= 34
	for _, operation := range sets.List(asked) {
		if !slices.Contains(known, operation) {
			r.add(annotation, TypeNotSupported, "there is no operation %q on a Garden%s; there are %s", operation, suggestionHint(operation, known), quotedList(known))
		}
	}
	if oneStep && asked.HasAny(rotateETCDKey+"-start", rotateETCDKey+"-complete") {
		r.add(annotation, TypeForbidden, "from Kubernetes 1.34 the encryption key is rotated in one step; use %s", rotateETCDKey)
	}
	if asked.HasAll(rotateETCDKey, rotateETCDKey+"-start") {
		r.add(annotation, TypeForbidden, "%s is the whole rotation, and cannot run together with %s-start", rotateETCDKey, rotateETCDKey)
	}
	for _, rotation := range gardenRotations() {
		if asked.Has(rotation.operation) {
			r.checkRotation(in.object, rotation, oneStep)
		}
	}
	return r.findings
}

// checkRotation checks that an operation fits the state of the Garden. A missing status counts as
// an empty one: nothing was ever rotated.
func (r *findingCollector) checkRotation(garden map[string]any, rotation gardenRotation, oneStep bool) {
	annotation, object := readOperationAnnotation(garden), fieldValue{value: garden}
	if object.lookup("metadata", "deletionTimestamp").isSet() {
		r.add(annotation, TypeForbidden, "%s: the Garden is being deleted", rotation.operation)
	}
	for _, name := range rotation.credentials {
		phase := object.lookup("status", "credentials", "rotation", name, "phase").text()
		switch {
		case rotation.isCompletion && phase == "" && (name != "etcdEncryptionKey" || !oneStep || len(rotation.credentials) == 1):
			r.add(annotation, TypeForbidden, "%s: status.credentials.rotation.%s.phase must be %s first, but no rotation has started", rotation.operation, name, rotatePhasePrepared)
		case rotation.isCompletion && phase != rotatePhasePrepared && (name != "etcdEncryptionKey" || !oneStep || len(rotation.credentials) == 1):
			r.add(annotation, TypeForbidden, "%s: status.credentials.rotation.%s.phase must be %s first; it is %q", rotation.operation, name, rotatePhasePrepared, phase)
		case !rotation.isCompletion && phase != "" && phase != rotatePhaseCompleted:
			r.add(annotation, TypeForbidden, "%s: status.credentials.rotation.%s.phase must be %s first; it is %q", rotation.operation, name, rotatePhaseCompleted, phase)
		}
	}
	if rotation.requiresStableEncryption && !specEncryptedResources(garden).Equal(parseGroupResources(object.lookup("status", "credentials", "encryptionAtRest", "resources"))) {
		r.add(annotation, TypeForbidden, "%s: a change of the encrypted resources is not yet rolled out", rotation.operation)
	}
}

// defaultEncryptionProvider is the provider if none is set.
const defaultEncryptionProvider = "aescbc"

// gardenEncryptionReader returns the encryption configuration of one of the two API servers.
type gardenEncryptionReader func(garden map[string]any) fieldValue

func kubernetesEncryption(garden map[string]any) fieldValue {
	return fieldValue{value: garden}.lookup("spec", "virtualCluster", "kubernetes", "kubeAPIServer", "encryptionConfig")
}

func gardenerEncryption(garden map[string]any) fieldValue {
	return gardenComponent(garden, "gardenerAPIServer").lookup("encryptionConfig")
}

func specEncryptedResources(garden map[string]any) sets.Set[schema.GroupResource] {
	return parseGroupResources(kubernetesEncryption(garden).lookup("resources")).Union(parseGroupResources(gardenerEncryption(garden).lookup("resources")))
}

// parseGroupResources parses a list of resources, so that "secrets" and "secrets." are equal.
func parseGroupResources(list fieldValue) sets.Set[schema.GroupResource] {
	resources := sets.New[schema.GroupResource]()
	for _, text := range list.texts() {
		resources.Insert(schema.ParseGroupResource(text))
	}
	return resources
}

// provider returns the encryption provider as the defaulting webhook completes it.
func (e gardenEncryptionReader) provider(garden map[string]any) string {
	for _, encryption := range []gardenEncryptionReader{e, kubernetesEncryption} {
		if provider := encryption(garden).lookup("provider", "type").text(); provider != "" {
			return provider
		}
	}
	return defaultEncryptionProvider
}

// checkGardenEncryptionUpdate rejects a change of the encryption during another one.
func checkGardenEncryptionUpdate(in ruleInput) []finding {
	r := &findingCollector{}
	if in.old == nil {
		return nil
	}
	for _, encryption := range []gardenEncryptionReader{kubernetesEncryption, gardenerEncryption} {
		resources, provider := encryption(in.object).lookup("resources"), encryption(in.object).lookup("provider", "type")
		before := parseGroupResources(encryption(in.old).lookup("resources"))
		listed, provided := !before.Equal(parseGroupResources(resources)), encryption.provider(in.old) != encryption.provider(in.object)
		gardener := resources.path == gardenerEncryption(nil).lookup("resources").path
		for _, problem := range encryptionObstacles(in, before, encryption.provider(in.old), gardener) {
			if listed {
				r.add(resources, TypeForbidden, "cannot be changed now: %s", problem)
			}
			if provided {
				r.add(provider, TypeForbidden, "cannot be changed now: %s", problem)
			}
		}
		if provided && !isCreated(in) {
			r.add(provider, TypeForbidden, "cannot be changed before the Garden was created or restored successfully; see status.lastOperation")
		}
		if listed && provided {
			r.add(provider, TypeForbidden, "cannot be changed together with resources; change one of them, and the other one when the first change is rolled out")
		}
	}
	return r.findings
}

// isCreated reports whether a Garden was created or restored successfully. Files in Git have no
// status and count as created. In an API server, lastOperation shows it, and none means not yet.
func isCreated(in ruleInput) bool {
	status := fieldValue{value: in.object}.lookup("status")
	if !status.isSet() {
		status = fieldValue{value: in.old}.lookup("status")
	}
	if !status.isSet() && !(fieldValue{value: in.old}).lookup("metadata", "uid").isSet() {
		return true
	}
	return hasCreationEnded(status.lookup("lastOperation"))
}

// encryptionObstacles returns the reasons in the status why the encryption cannot be changed.
func encryptionObstacles(in ruleInput, before sets.Set[schema.GroupResource], provider string, gardener bool) (problems []string) {
	credentials := fieldValue{value: in.object}.lookup("status", "credentials")
	if !credentials.isSet() {
		credentials = fieldValue{value: in.old}.lookup("status", "credentials")
	}
	if phase := credentials.lookup("rotation", "etcdEncryptionKey", "phase").text(); phase != "" && phase != rotatePhaseCompleted {
		problems = append(problems, "the encryption key is being rotated (status.credentials.rotation.etcdEncryptionKey.phase is "+phase+")")
	}
	atRest := credentials.lookup("encryptionAtRest")
	if !atRest.isSet() {
		return problems
	}
	rolledOut := sets.New[schema.GroupResource]()
	for resource := range parseGroupResources(atRest.lookup("resources")) {
		if strings.HasSuffix(resource.Group, ".gardener.cloud") == gardener {
			rolledOut.Insert(resource)
		}
	}
	if !rolledOut.Equal(before) || atRest.lookup("provider", "type").text() != provider {
		problems = append(problems, "the change before it is not yet rolled out (status.credentials.encryptionAtRest)")
	}
	return problems
}
