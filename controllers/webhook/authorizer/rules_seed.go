// SPDX-License-Identifier: Apache-2.0

package authorizer

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
)

const (
	namespaceIssuers    = "gardener-system-shoot-issuer"
	namespacePublic     = "gardener-system-public"
	leaseLeaderElection = "gardenlet-leader-election"
)

var (
	readVerbs  = []string{verbGet, verbList, verbWatch}
	writeVerbs = []string{verbUpdate, verbPatch}
	allVerbs   = []string{verbGet, verbList, verbWatch, verbCreate, verbUpdate, verbPatch, verbDelete, "deletecollection"}
)

// readRelatedRule is for objects that Shoots and Seeds refer to.
var readRelatedRule = rule{relatedVerbs: readVerbs}

// seedSelections selects by a field, or by the label that Gardener sets on objects of a Seed.
func seedSelections(fields ...string) func(requestScope) []selection {
	return func(s requestScope) []selection {
		var out []selection
		for _, field := range fields {
			out = append(out, selection{fields: map[string]string{field: s.name}})
		}
		return append(out, selection{labels: map[string]string{gardencorev1beta1.NameSeedPrefix + s.name: "true"}})
	}
}

// seedRules are the permissions of a seed's gardenlet. They are upstream's
// (pkg/admissioncontroller/webhook/auth/seed), except that objects of other seeds cannot be read,
// and objects can only be created where the seed has some.
var seedRules = map[kind]rule{
	kindBackupBucket: {allowsReads: true, relatedVerbs: []string{verbUpdate, verbPatch, verbDelete}, unconditionalVerbs: []string{verbCreate},
		selections: seedSelections("spec.seedName"), subresources: []string{"status", "finalizers"}},
	kindBackupEntry: {allowsReads: true, relatedVerbs: []string{verbUpdate, verbPatch, verbDelete}, canCreate: isInShootNamespace,
		selections: seedSelections("spec.seedName"), subresources: []string{"status", "finalizers"}},
	kindBastion: {allowsReads: true, relatedVerbs: writeVerbs, canCreate: isInShootNamespace,
		selections: seedSelections("spec.seedName"), subresources: []string{"status"}},
	kindCertificateSigningRequest: {relatedVerbs: readVerbs, unconditionalVerbs: []string{verbCreate}, isException: approvalCheck("seedclient")},
	kindEvent:                     {unconditionalVerbs: []string{verbCreate, verbPatch}},
	kindCloudProfile:              readRelatedRule,
	kindNamespacedCloudProfile:    readRelatedRule,
	kindExposureClass:             readRelatedRule,
	kindProject:                   readRelatedRule,
	kindNamespace:                 readRelatedRule,
	kindSecretBinding:             readRelatedRule,
	kindCredentialsBinding:        readRelatedRule,
	kindControllerDeployment:      readRelatedRule,
	kindControllerRegistration:    {unconditionalVerbs: readVerbs},
	kindControllerInstallation: {allowsReads: true, relatedVerbs: writeVerbs,
		selections: seedSelections("spec.seedRef.name"), subresources: []string{"status"}},
	kindClusterRoleBinding: {relatedVerbs: []string{verbGet, verbUpdate, verbPatch}, canCreate: canCreateBootstrapObject, isException: isBootstrapBindingDeletion},
	kindServiceAccount:     {relatedVerbs: []string{verbGet, verbUpdate, verbPatch}, canCreate: canCreateBootstrapObject, isException: isSeedAccountRequest},
	kindConfigMap:          {relatedVerbs: append([]string{verbDelete}, slices.Concat(readVerbs, writeVerbs)...), canCreate: isInShootNamespace, isException: isReadableConfigMap},
	kindSecret:             {relatedVerbs: append([]string{verbDelete}, slices.Concat(readVerbs, writeVerbs)...), canCreate: canCreateSecret, isException: isSeedSecretRequest},
	kindInternalSecret:     {relatedVerbs: append([]string{verbDelete}, slices.Concat(readVerbs, writeVerbs)...), canCreate: isInShootNamespace},
	kindShootState:         {relatedVerbs: append([]string{verbDelete}, slices.Concat(readVerbs, writeVerbs)...), canCreate: isInShootNamespace},
	kindLease:              {canCreate: denyCreate, isException: isSeedLeaseRequest},
	kindGardenlet: {allowsReads: true, relatedVerbs: writeVerbs, canCreate: hasSeedName, selections: seedSelections("metadata.name"), subresources: []string{"status"},
		namespaces: func(requestScope) []string { return []string{gardencorev1beta1.GardenNamespace} }},
	kindManagedSeed: {allowsReads: true, relatedVerbs: writeVerbs, selections: seedSelections(), subresources: []string{"status"}},
	kindSeed: {allowsReads: true, relatedVerbs: []string{verbUpdate, verbPatch, verbDelete}, canCreate: hasSeedName,
		selections: seedSelections("metadata.name"), subresources: []string{"status"}},
	kindShoot: {allowsReads: true, relatedVerbs: writeVerbs,
		selections: seedSelections("spec.seedName", "status.seedName"), subresources: []string{"status", "finalizers"}},
	kindWorkloadIdentity: {relatedVerbs: append([]string{verbPatch}, readVerbs...), isException: isOwnTokenRequest},
}

// seedExtensionRules are the permissions of a seed's extensions. They match its gardenlet's, except
// for objects that give access.
var seedExtensionRules = func() map[kind]rule {
	all := map[kind]rule{}
	for k, r := range seedRules {
		all[k] = r
	}
	all[kindCertificateSigningRequest] = readRelatedRule
	all[kindClusterRoleBinding] = rule{relatedVerbs: []string{verbGet}}
	all[kindServiceAccount] = rule{relatedVerbs: []string{verbGet}}
	all[kindLease] = rule{unconditionalVerbs: allVerbs, namespaces: func(s requestScope) []string { return []string{seedNamespace(s.name)} }}
	return all
}()

func denyCreate(requestScope, *request) bool { return false }

// hasSeedName allows an object with the name of the Seed. If the request has no name, admission
// checks it.
func hasSeedName(s requestScope, r *request) bool { return r.name == "" || r.name == s.name }

// isInShootNamespace allows namespaces with a Shoot of this seed. A named object must belong to the
// seed, unless its own content will state the owner.
func isInShootNamespace(s requestScope, r *request) bool {
	if !s.graph.isOwnedBy(objectKey{kind: kindNamespace, name: r.namespace}, s.ownerKey) {
		return false
	}
	byItself := r.kind == kindBackupEntry || r.kind == kindBastion
	return r.name == "" || byItself || s.isOwnObject(r)
}

// canCreateSecret allows Secrets of Shoots, token keys of Shoots, Secrets of backup buckets, and
// tokens for gardenlets of managed Seeds.
func canCreateSecret(s requestScope, r *request) bool {
	switch r.namespace {
	case namespaceIssuers:
		return r.name == "" || s.graph.isOwnedBy(issuerKey(r.name), s.ownerKey)
	case metav1.NamespaceSystem:
		return canCreateBootstrapObject(s, r)
	case gardencorev1beta1.GardenNamespace:
		return r.name == "" || s.isOwnObject(r)
	}
	return isInShootNamespace(s, r)
}

// canCreateBootstrapObject allows objects for the first access of a managed Seed's gardenlet, until
// it has access.
func canCreateBootstrapObject(s requestScope, r *request) bool {
	if r.name != "" {
		return s.isOwnObject(r)
	}
	return s.graph.canBootstrapAny(r.kind, r.namespace, s.ownerKey, s.now)
}

// isSeedSecretRequest allows Secrets for the seed and token keys of its Shoots. The gardenlet may
// also delete its own bootstrap token.
func isSeedSecretRequest(s requestScope, r *request) bool {
	if r.subresource != "" {
		return false
	}
	switch r.namespace {
	case seedNamespace(s.name):
		return r.hasVerb(readVerbs...)
	case namespaceIssuers:
		return r.name != "" && r.hasVerb(verbGet, verbUpdate, verbPatch, verbDelete) && s.graph.isOwnedBy(issuerKey(r.name), s.ownerKey)
	}
	return r.hasVerb(verbDelete) && r.objectKey == bootstrapTokenKey(objectKey{kindGardenlet, gardencorev1beta1.GardenNamespace, s.name})
}

// isReadableConfigMap allows public ConfigMaps and ConfigMaps for the seed.
func isReadableConfigMap(s requestScope, r *request) bool {
	switch {
	case r.subresource != "":
		return false
	case r.namespace == seedNamespace(s.name):
		return r.hasVerb(readVerbs...)
	case r.namespace == metav1.NamespaceSystem && r.name == "cluster-identity":
		return r.hasVerb(readVerbs...)
	}
	return r.hasVerb(verbGet) && r.namespace == namespacePublic && (r.name == "gardener-info" || r.name == "kube-root-ca.crt")
}

// isSeedLeaseRequest allows the heartbeat, and the leader election if the seed is also the garden.
func isSeedLeaseRequest(s requestScope, r *request) bool {
	if r.subresource != "" {
		return false
	}
	switch r.namespace {
	case gardencorev1beta1.GardenerSystemSeedLeaseNamespace:
		return r.hasVerb(verbCreate) && r.name == "" || r.name == s.name && r.hasVerb(verbCreate, verbGet, verbList, verbWatch, verbUpdate, verbPatch)
	case gardencorev1beta1.GardenNamespace:
		return r.hasVerb(verbCreate) && r.name == "" || r.name == leaseLeaderElection && r.hasVerb(verbCreate, verbGet, verbList, verbWatch, verbUpdate, verbPatch)
	}
	return false
}

// isSeedAccountRequest allows the accounts of the seed's extensions with their tokens. The
// gardenlet may also delete its own bootstrap account.
func isSeedAccountRequest(s requestScope, r *request) bool {
	return r.namespace == seedNamespace(s.name) && isAccountOrToken(r) ||
		r.hasVerb(verbDelete) && r.namespace == gardencorev1beta1.GardenNamespace && r.name == prefixBootstrap+s.name && r.subresource == ""
}

func isAccountOrToken(r *request) bool {
	return r.subresource == "" && r.hasVerb(allVerbs...) || r.subresource == "token" && r.verb == verbCreate && r.name != ""
}

// isOwnTokenRequest allows tokens of WorkloadIdentities that belong to the owner.
func isOwnTokenRequest(s requestScope, r *request) bool {
	return r.subresource == "token" && r.verb == verbCreate && s.isOwnObject(r)
}

// approvalCheck allows the request that approvers send to check whether a client may have its
// certificate approved.
func approvalCheck(subresource string) func(requestScope, *request) bool {
	return func(_ requestScope, r *request) bool { return r.subresource == subresource && r.verb == verbCreate }
}

// isBootstrapBindingDeletion allows the gardenlet to delete its own bootstrap binding.
func isBootstrapBindingDeletion(s requestScope, r *request) bool {
	account, is := strings.CutPrefix(r.name, prefixBootstrapper+gardencorev1beta1.GardenNamespace+":")
	return is && r.hasVerb(verbDelete) && account == prefixBootstrap+s.name && r.subresource == ""
}
