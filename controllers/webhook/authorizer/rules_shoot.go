// SPDX-License-Identifier: Apache-2.0

package authorizer

import (
	"slices"
	"strings"
)

// shootSelections selects by a field with the name of a Shoot and, for objects in several
// namespaces, by a field with its namespace.
func shootSelections(name, namespace string) func(requestScope) []selection {
	return func(s requestScope) []selection {
		fields := map[string]string{name: s.name}
		if namespace != "" {
			fields[namespace] = s.namespace
		}
		return []selection{{fields: fields}}
	}
}

func shootNamespace(s requestScope) []string { return []string{s.namespace} }

// shootRules are the permissions of a self-hosted Shoot's gardenlet (upstream:
// pkg/admissioncontroller/webhook/auth/shoot).
var shootRules = map[kind]rule{
	kindBackupBucket: {allowsReads: true, relatedVerbs: []string{verbUpdate, verbPatch, verbDelete}, unconditionalVerbs: []string{verbCreate},
		selections: shootSelections("spec.shootRef.name", "spec.shootRef.namespace"), subresources: []string{"status", "finalizers"}},
	kindBackupEntry: {allowsReads: true, relatedVerbs: []string{verbUpdate, verbPatch, verbDelete}, unconditionalVerbs: []string{verbCreate}, namespaces: shootNamespace,
		selections: shootSelections("spec.shootRef.name", "spec.shootRef.namespace"), subresources: []string{"status"}},
	kindBastion: {allowsReads: true, relatedVerbs: writeVerbs, namespaces: shootNamespace,
		selections: shootSelections("spec.shootRef.name", ""), subresources: []string{"status"}},
	kindCertificateSigningRequest: {relatedVerbs: readVerbs, unconditionalVerbs: []string{verbCreate}, isException: approvalCheck("shootclient")},
	kindEvent:                     {unconditionalVerbs: []string{verbCreate, verbPatch}},
	kindCloudProfile:              readRelatedRule,
	kindNamespacedCloudProfile:    readRelatedRule,
	kindConfigMap:                 {relatedVerbs: readVerbs, isException: isPublicConfigMapRead},
	kindControllerDeployment:      readRelatedRule,
	kindControllerRegistration:    {unconditionalVerbs: readVerbs},
	kindControllerInstallation: {allowsReads: true, relatedVerbs: writeVerbs,
		selections: shootSelections("spec.shootRef.name", "spec.shootRef.namespace"), subresources: []string{"status"}},
	kindCredentialsBinding: readRelatedRule,
	kindGardenlet: {allowsReads: true, relatedVerbs: writeVerbs, namespaces: shootNamespace, subresources: []string{"status"},
		canCreate: func(s requestScope, r *request) bool { return r.name == "" || r.name == prefixSelfHosted+s.name },
		selections: func(s requestScope) []selection {
			return []selection{{fields: map[string]string{"metadata.name": prefixSelfHosted + s.name}}}
		}},
	kindLease: {canCreate: denyCreate, isException: isShootLeaseRequest},
	kindManagedSeed: {allowsReads: true, relatedVerbs: writeVerbs, namespaces: shootNamespace,
		selections: shootSelections("spec.shoot.name", ""), subresources: []string{"status"}},
	kindNamespace:     readRelatedRule,
	kindProject:       readRelatedRule,
	kindSecretBinding: readRelatedRule,
	kindSeed:          {allowsReads: true, relatedVerbs: []string{verbDelete}, selections: shootSelections("metadata.name", "")},
	kindSecret: {relatedVerbs: append([]string{verbDelete}, slices.Concat(readVerbs, writeVerbs)...),
		canCreate: func(s requestScope, r *request) bool { return canCreateShootSecret(s, r) }},
	kindServiceAccount: {relatedVerbs: []string{verbGet, verbUpdate, verbPatch}, canCreate: canCreateAccount, isException: isShootAccountRequest},
	kindShoot: {relatedVerbs: slices.Concat(readVerbs, writeVerbs),
		subresources: []string{"status"}},
	kindShootState:       {relatedVerbs: append([]string{verbPatch}, readVerbs...), unconditionalVerbs: []string{verbCreate}, namespaces: shootNamespace},
	kindWorkloadIdentity: {relatedVerbs: append([]string{verbPatch}, readVerbs...), isException: isOwnTokenRequest},
}

// shootExtensionRules are the permissions of a self-hosted Shoot's extensions.
var shootExtensionRules = func() map[kind]rule {
	all := map[kind]rule{}
	for k, r := range shootRules {
		all[k] = r
	}
	all[kindCertificateSigningRequest] = readRelatedRule
	all[kindServiceAccount] = rule{relatedVerbs: []string{verbGet}}
	return all
}()

// gardenadmRules are gardenadm's permissions while it connects a self-hosted Shoot to the garden.
var gardenadmRules = map[kind]rule{
	kindBackupBucket:           {unconditionalVerbs: []string{verbCreate}},
	kindBackupEntry:            {unconditionalVerbs: []string{verbCreate}},
	kindCloudProfile:           {unconditionalVerbs: []string{verbGet}},
	kindConfigMap:              {unconditionalVerbs: []string{verbCreate}, namespaces: shootNamespace},
	kindControllerDeployment:   {unconditionalVerbs: []string{verbGet}},
	kindControllerRegistration: {unconditionalVerbs: []string{verbGet}},
	kindCredentialsBinding:     {unconditionalVerbs: []string{verbCreate}, namespaces: shootNamespace},
	kindProject:                {unconditionalVerbs: []string{verbCreate}},
	kindSecret:                 {unconditionalVerbs: []string{verbCreate}, namespaces: shootNamespace},
	kindSecretBinding:          {unconditionalVerbs: []string{verbCreate}, namespaces: shootNamespace},
	kindShoot:                  {unconditionalVerbs: []string{verbCreate, "mark-self-hosted"}, namespaces: shootNamespace, isException: isOwnStatusPatch},
	kindWorkloadIdentity:       {unconditionalVerbs: []string{verbCreate}, namespaces: shootNamespace},
}

func isOwnStatusPatch(s requestScope, r *request) bool {
	return r.objectKey == objectKey(s.ownerKey) && r.verb == verbPatch && r.subresource == "status"
}

func isPublicConfigMapRead(_ requestScope, r *request) bool {
	return r.hasVerb(verbGet) && r.subresource == "" && r.namespace == namespacePublic && (r.name == "gardener-info" || r.name == "kube-root-ca.crt")
}

// canCreateShootSecret allows Secrets of the Shoot, and tokens for the gardenlet of its Seed.
func canCreateShootSecret(s requestScope, r *request) bool {
	if r.name != "" {
		return s.isOwnObject(r)
	}
	return r.namespace == s.namespace || canCreateBootstrapObject(s, r)
}

// isShootAccountRequest allows accounts of the Shoot's extensions. Other Shoots share the
// namespace.
func isShootAccountRequest(s requestScope, r *request) bool {
	return r.namespace == s.namespace && strings.HasPrefix(r.name, prefixShootExtension+s.name+"--") && isAccountOrToken(r)
}

// canCreateAccount allows accounts without a name, which admission checks, and bootstrap accounts.
func canCreateAccount(s requestScope, r *request) bool {
	return r.name == "" && r.subresource == "" && r.namespace == s.namespace || canCreateBootstrapObject(s, r)
}

// isShootLeaseRequest checks the names of Leases. Other Shoots of the Project share the namespace.
func isShootLeaseRequest(s requestScope, r *request) bool {
	if r.namespace != s.namespace || r.subresource != "" {
		return false
	}
	if r.name == "" {
		return r.hasVerb(verbCreate, verbList, verbWatch)
	}
	return (r.name == prefixSelfHosted+s.name || strings.HasPrefix(r.name, s.name+"--")) && r.hasVerb(allVerbs...)
}
