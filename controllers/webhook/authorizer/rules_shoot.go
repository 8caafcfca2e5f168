package authorizer

import (
	"slices"
	"strings"
)

// ofThisShoot selects by a field with the name of a Shoot and, for objects in several namespaces,
// by a field with its namespace.
func ofThisShoot(name, namespace string) func(scope) []selection {
	return func(s scope) []selection {
		fields := map[string]string{name: s.name}
		if namespace != "" {
			fields[namespace] = s.namespace
		}
		return []selection{{fields: fields}}
	}
}

func inOwnNamespace(s scope) []string { return []string{s.namespace} }

// shootRules are the permissions of a self-hosted Shoot's gardenlet (upstream:
// pkg/admissioncontroller/webhook/auth/shoot).
var shootRules = map[kind]rule{
	kindBackupBucket: {reads: true, related: []string{verbUpdate, verbPatch, verbDelete}, always: []string{verbCreate},
		selects: ofThisShoot("spec.shootRef.name", "spec.shootRef.namespace"), subresources: []string{"status", "finalizers"}},
	kindBackupEntry: {reads: true, related: []string{verbUpdate, verbPatch, verbDelete}, always: []string{verbCreate}, namespaces: inOwnNamespace,
		selects: ofThisShoot("spec.shootRef.name", "spec.shootRef.namespace"), subresources: []string{"status"}},
	kindBastion: {reads: true, related: writeVerbs, namespaces: inOwnNamespace,
		selects: ofThisShoot("spec.shootRef.name", ""), subresources: []string{"status"}},
	kindCertificateSigningRequest: {related: readVerbs, always: []string{verbCreate}, special: approval("shootclient")},
	kindEvent:                     {always: []string{verbCreate, verbPatch}},
	kindCloudProfile:              readRelated,
	kindNamespacedCloudProfile:    readRelated,
	kindConfigMap:                 {related: readVerbs, special: publicForShoot},
	kindControllerDeployment:      readRelated,
	kindControllerRegistration:    {always: readVerbs},
	kindControllerInstallation: {reads: true, related: writeVerbs,
		selects: ofThisShoot("spec.shootRef.name", "spec.shootRef.namespace"), subresources: []string{"status"}},
	kindCredentialsBinding: readRelated,
	kindGardenlet: {reads: true, related: writeVerbs, namespaces: inOwnNamespace, subresources: []string{"status"},
		creates: func(s scope, r *request) bool { return r.name == "" || r.name == prefixSelfHosted+s.name },
		selects: func(s scope) []selection {
			return []selection{{fields: map[string]string{"metadata.name": prefixSelfHosted + s.name}}}
		}},
	kindLease: {creates: nothing, special: leasesOfShoot},
	kindManagedSeed: {reads: true, related: writeVerbs, namespaces: inOwnNamespace,
		selects: ofThisShoot("spec.shoot.name", ""), subresources: []string{"status"}},
	kindNamespace:     readRelated,
	kindProject:       readRelated,
	kindSecretBinding: readRelated,
	kindSeed:          {reads: true, related: []string{verbDelete}, selects: ofThisShoot("metadata.name", "")},
	kindSecret: {related: append([]string{verbDelete}, slices.Concat(readVerbs, writeVerbs)...),
		creates: func(s scope, r *request) bool { return secretsOfShoot(s, r) }},
	kindServiceAccount: {related: []string{verbGet, verbUpdate, verbPatch}, creates: accountsMade, special: accountsOfShoot},
	kindShoot: {related: slices.Concat(readVerbs, writeVerbs),
		subresources: []string{"status"}},
	kindShootState:       {related: append([]string{verbPatch}, readVerbs...), always: []string{verbCreate}, namespaces: inOwnNamespace},
	kindWorkloadIdentity: {related: append([]string{verbPatch}, readVerbs...), special: ownTokens},
}

// shootExtensionRules are the permissions of a self-hosted Shoot's extensions.
var shootExtensionRules = func() map[kind]rule {
	all := map[kind]rule{}
	for k, r := range shootRules {
		all[k] = r
	}
	all[kindCertificateSigningRequest] = readRelated
	all[kindServiceAccount] = rule{related: []string{verbGet}}
	return all
}()

// gardenadmRules are gardenadm's permissions while it connects a self-hosted Shoot to the garden.
var gardenadmRules = map[kind]rule{
	kindBackupBucket:           {always: []string{verbCreate}},
	kindBackupEntry:            {always: []string{verbCreate}},
	kindCloudProfile:           {always: []string{verbGet}},
	kindConfigMap:              {always: []string{verbCreate}, namespaces: inOwnNamespace},
	kindControllerDeployment:   {always: []string{verbGet}},
	kindControllerRegistration: {always: []string{verbGet}},
	kindCredentialsBinding:     {always: []string{verbCreate}, namespaces: inOwnNamespace},
	kindProject:                {always: []string{verbCreate}},
	kindSecret:                 {always: []string{verbCreate}, namespaces: inOwnNamespace},
	kindSecretBinding:          {always: []string{verbCreate}, namespaces: inOwnNamespace},
	kindShoot:                  {always: []string{verbCreate, "mark-self-hosted"}, namespaces: inOwnNamespace, special: ownStatus},
	kindWorkloadIdentity:       {always: []string{verbCreate}, namespaces: inOwnNamespace},
}

func ownStatus(s scope, r *request) bool {
	return r.node == node(s.owner) && r.verb == verbPatch && r.subresource == "status"
}

func publicForShoot(_ scope, r *request) bool {
	return r.is(verbGet) && r.subresource == "" && r.namespace == namespacePublic && (r.name == "gardener-info" || r.name == "kube-root-ca.crt")
}

// secretsOfShoot allows Secrets of the Shoot, and tokens for the gardenlet of its Seed.
func secretsOfShoot(s scope, r *request) bool {
	if r.name != "" {
		return s.mine(r)
	}
	return r.namespace == s.namespace || whileBootstrapping(s, r)
}

// accountsOfShoot allows accounts of the Shoot's extensions. Other Shoots share the namespace.
func accountsOfShoot(s scope, r *request) bool {
	return r.namespace == s.namespace && strings.HasPrefix(r.name, prefixOfShoot+s.name+"--") && isAccountOrToken(r)
}

// accountsMade allows accounts without a name, which admission checks, and bootstrap accounts.
func accountsMade(s scope, r *request) bool {
	return r.name == "" && r.subresource == "" && r.namespace == s.namespace || whileBootstrapping(s, r)
}

// leasesOfShoot checks the names of Leases. Other Shoots of the Project share the namespace.
func leasesOfShoot(s scope, r *request) bool {
	if r.namespace != s.namespace || r.subresource != "" {
		return false
	}
	if r.name == "" {
		return r.is(verbCreate, verbList, verbWatch)
	}
	return (r.name == prefixSelfHosted+s.name || strings.HasPrefix(r.name, s.name+"--")) && r.is(allVerbs...)
}
