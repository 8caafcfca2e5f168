package schemas

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
)

const annotationOperation = "gardener.cloud/operation"

// operationOf returns the operation annotation, the field of all findings about operations.
func operationOf(object map[string]any) tree {
	return tree{value: object}.at("metadata", "annotations").key(annotationOperation)
}

const (
	rotatePhasePrepared  = "Prepared"
	rotatePhaseCompleted = "Completed"
	rotateETCDKey        = "rotate-etcd-encryption-key"
)

// gardenRotation is an operation that starts or completes rotations of credentials.
type gardenRotation struct {
	operation string
	// The fields of status.credentials.rotation that the operation changes.
	of []string
	// completes: the rotations must be Prepared; otherwise none may be in progress.
	completes bool
	// encrypts: the encryption must not be changing.
	encrypts bool
}

// gardenRotations lists the operations on a Garden except reconcile. Source:
// pkg/apis/operator/v1alpha1, and for the conditions of each
// pkg/api/operator/v1alpha1/validation/garden.go.
func gardenRotations() []gardenRotation {
	const ca, serviceAccount, etcd, workload = "certificateAuthorities", "serviceAccountKey", "etcdEncryptionKey", "workloadIdentityKey"
	return []gardenRotation{
		{operation: "rotate-credentials-start", of: []string{ca, serviceAccount, etcd, workload}, encrypts: true},
		{operation: "rotate-credentials-complete", of: []string{ca, serviceAccount, etcd, workload}, completes: true},
		{operation: "rotate-ca-start", of: []string{ca}},
		{operation: "rotate-ca-complete", of: []string{ca}, completes: true},
		{operation: "rotate-serviceaccount-key-start", of: []string{serviceAccount}},
		{operation: "rotate-serviceaccount-key-complete", of: []string{serviceAccount}, completes: true},
		{operation: rotateETCDKey, of: []string{etcd}, encrypts: true},
		{operation: rotateETCDKey + "-start", of: []string{etcd}, encrypts: true},
		{operation: rotateETCDKey + "-complete", of: []string{etcd}, completes: true},
		{operation: "rotate-observability-credentials"},
		{operation: "rotate-workload-identity-key-start", of: []string{workload}},
		{operation: "rotate-workload-identity-key-complete", of: []string{workload}, completes: true},
	}
}

// gardenOperations checks the operation annotation, which holds operations separated by ';'.
func gardenOperations(in ruleInput) []finding {
	r, annotation, asked := &report{}, operationOf(in.object), sets.New[string]()
	for operation := range strings.SplitSeq(annotation.text(), ";") {
		if operation = strings.TrimSpace(operation); operation != "" {
			asked.Insert(operation)
		} else if annotation.text() != "" {
			r.add(annotation, TypeNotSupported, "an operation without a name before or after a ';': take the ';' off")
		}
	}
	known := []string{"reconcile"}
	for _, rotation := range gardenRotations() {
		known = append(known, rotation.operation)
	}
	oneStep := minorOf(tree{value: in.object}.at("spec", "virtualCluster", "kubernetes", "version").text()) >= 34
	for _, operation := range sets.List(asked) {
		if !slices.Contains(known, operation) {
			r.add(annotation, TypeNotSupported, "there is no operation %q on a Garden%s; there are %s", operation, meant(operation, known), quotedList(known))
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
			r.rotation(in.object, rotation, oneStep)
		}
	}
	return r.findings
}

// rotation checks that an operation fits the state of the Garden. A missing status counts as an
// empty one: nothing was ever rotated.
func (r *report) rotation(garden map[string]any, rotation gardenRotation, oneStep bool) {
	annotation, object := operationOf(garden), tree{value: garden}
	if object.at("metadata", "deletionTimestamp").set() {
		r.add(annotation, TypeForbidden, "%s: the Garden is being deleted", rotation.operation)
	}
	for _, name := range rotation.of {
		phase := object.at("status", "credentials", "rotation", name, "phase").text()
		switch {
		case rotation.completes && phase == "" && (name != "etcdEncryptionKey" || !oneStep || len(rotation.of) == 1):
			r.add(annotation, TypeForbidden, "%s: status.credentials.rotation.%s.phase has to be %s before; none was started yet", rotation.operation, name, rotatePhasePrepared)
		case rotation.completes && phase != rotatePhasePrepared && (name != "etcdEncryptionKey" || !oneStep || len(rotation.of) == 1):
			r.add(annotation, TypeForbidden, "%s: status.credentials.rotation.%s.phase has to be %s before; it is %q", rotation.operation, name, rotatePhasePrepared, phase)
		case !rotation.completes && phase != "" && phase != rotatePhaseCompleted:
			r.add(annotation, TypeForbidden, "%s: status.credentials.rotation.%s.phase has to be %s before; it is %q", rotation.operation, name, rotatePhaseCompleted, phase)
		}
	}
	if rotation.encrypts && !encryptedInSpec(garden).Equal(resourcesOf(object.at("status", "credentials", "encryptionAtRest", "resources"))) {
		r.add(annotation, TypeForbidden, "%s: a change of the encrypted resources is not yet rolled out", rotation.operation)
	}
}

// defaultEncryption is the provider if none is set.
const defaultEncryption = "aescbc"

// gardenEncryption returns the encryption configuration of one of the two API servers.
type gardenEncryption func(garden map[string]any) tree

func kubernetesEncryption(garden map[string]any) tree {
	return tree{value: garden}.at("spec", "virtualCluster", "kubernetes", "kubeAPIServer", "encryptionConfig")
}

func gardenerEncryption(garden map[string]any) tree {
	return gardenComponent(garden, "gardenerAPIServer").at("encryptionConfig")
}

func encryptedInSpec(garden map[string]any) sets.Set[schema.GroupResource] {
	return resourcesOf(kubernetesEncryption(garden).at("resources")).Union(resourcesOf(gardenerEncryption(garden).at("resources")))
}

// resourcesOf parses a list of resources, so that "secrets" and "secrets." are equal.
func resourcesOf(list tree) sets.Set[schema.GroupResource] {
	resources := sets.New[schema.GroupResource]()
	for _, text := range list.texts() {
		resources.Insert(schema.ParseGroupResource(text))
	}
	return resources
}

// provider returns the encryption provider as the defaulting webhook completes it.
func (e gardenEncryption) provider(garden map[string]any) string {
	for _, encryption := range []gardenEncryption{e, kubernetesEncryption} {
		if provider := encryption(garden).at("provider", "type").text(); provider != "" {
			return provider
		}
	}
	return defaultEncryption
}

// gardenEncryptionUpdate rejects a change of the encryption during another one.
func gardenEncryptionUpdate(in ruleInput) []finding {
	r := &report{}
	if in.old == nil {
		return nil
	}
	for _, encryption := range []gardenEncryption{kubernetesEncryption, gardenerEncryption} {
		resources, provider := encryption(in.object).at("resources"), encryption(in.object).at("provider", "type")
		before := resourcesOf(encryption(in.old).at("resources"))
		listed, provided := !before.Equal(resourcesOf(resources)), encryption.provider(in.old) != encryption.provider(in.object)
		gardener := resources.path == gardenerEncryption(nil).at("resources").path
		for _, problem := range encryptionUnderWay(in, before, encryption.provider(in.old), gardener) {
			if listed {
				r.add(resources, TypeForbidden, "cannot be changed now: %s", problem)
			}
			if provided {
				r.add(provider, TypeForbidden, "cannot be changed now: %s", problem)
			}
		}
		if provided && !created(in) {
			r.add(provider, TypeForbidden, "cannot be changed before the Garden was created or restored successfully; see status.lastOperation")
		}
		if listed && provided {
			r.add(provider, TypeForbidden, "cannot be changed together with resources; change one of them, and the other one when the first change is rolled out")
		}
	}
	return r.findings
}

// created reports whether a Garden was created or restored successfully. Files in Git have no
// status and count as created. In an API server, lastOperation shows it, and none means not yet.
func created(in ruleInput) bool {
	status := tree{value: in.object}.at("status")
	if !status.set() {
		status = tree{value: in.old}.at("status")
	}
	if !status.set() && !(tree{value: in.old}).at("metadata", "uid").set() {
		return true
	}
	return ended(status.at("lastOperation"))
}

// encryptionUnderWay returns the reasons in the status why the encryption cannot be changed.
func encryptionUnderWay(in ruleInput, before sets.Set[schema.GroupResource], provider string, gardener bool) (problems []string) {
	credentials := tree{value: in.object}.at("status", "credentials")
	if !credentials.set() {
		credentials = tree{value: in.old}.at("status", "credentials")
	}
	if phase := credentials.at("rotation", "etcdEncryptionKey", "phase").text(); phase != "" && phase != rotatePhaseCompleted {
		problems = append(problems, "the encryption key is being rotated (status.credentials.rotation.etcdEncryptionKey.phase is "+phase+")")
	}
	atRest := credentials.at("encryptionAtRest")
	if !atRest.set() {
		return problems
	}
	rolledOut := sets.New[schema.GroupResource]()
	for resource := range resourcesOf(atRest.at("resources")) {
		if strings.HasSuffix(resource.Group, ".gardener.cloud") == gardener {
			rolledOut.Insert(resource)
		}
	}
	if !rolledOut.Equal(before) || atRest.at("provider", "type").text() != provider {
		problems = append(problems, "the change before it is not yet rolled out (status.credentials.encryptionAtRest)")
	}
	return problems
}
