package authorizer

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
)

const (
	namespaceIssuers = "gardener-system-shoot-issuer"
	namespacePublic  = "gardener-system-public"
	leaderElection   = "gardenlet-leader-election"
)

var (
	readVerbs  = []string{verbGet, verbList, verbWatch}
	writeVerbs = []string{verbUpdate, verbPatch}
	allVerbs   = []string{verbGet, verbList, verbWatch, verbCreate, verbUpdate, verbPatch, verbDelete, "deletecollection"}
)

// readRelated is for objects that Shoots and Seeds refer to.
var readRelated = rule{related: readVerbs}

// ofThisSeed selects by a field, or by the label that Gardener sets on objects of a Seed.
func ofThisSeed(fields ...string) func(scope) []selection {
	return func(s scope) []selection {
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
	kindBackupBucket: {reads: true, related: []string{verbUpdate, verbPatch, verbDelete}, always: []string{verbCreate},
		selects: ofThisSeed("spec.seedName"), subresources: []string{"status", "finalizers"}},
	kindBackupEntry: {reads: true, related: []string{verbUpdate, verbPatch, verbDelete}, creates: inOwnNamespaces,
		selects: ofThisSeed("spec.seedName"), subresources: []string{"status", "finalizers"}},
	kindBastion: {reads: true, related: writeVerbs, creates: inOwnNamespaces,
		selects: ofThisSeed("spec.seedName"), subresources: []string{"status"}},
	kindCertificateSigningRequest: {related: readVerbs, always: []string{verbCreate}, special: approval("seedclient")},
	kindEvent:                     {always: []string{verbCreate, verbPatch}},
	kindCloudProfile:              readRelated,
	kindNamespacedCloudProfile:    readRelated,
	kindExposureClass:             readRelated,
	kindProject:                   readRelated,
	kindNamespace:                 readRelated,
	kindSecretBinding:             readRelated,
	kindCredentialsBinding:        readRelated,
	kindControllerDeployment:      readRelated,
	kindControllerRegistration:    {always: readVerbs},
	kindControllerInstallation: {reads: true, related: writeVerbs,
		selects: ofThisSeed("spec.seedRef.name"), subresources: []string{"status"}},
	kindClusterRoleBinding: {related: []string{verbGet, verbUpdate, verbPatch}, creates: whileBootstrapping, special: ownBootstrapBinding},
	kindServiceAccount:     {related: []string{verbGet, verbUpdate, verbPatch}, creates: whileBootstrapping, special: ownAccounts},
	kindConfigMap:          {related: append([]string{verbDelete}, slices.Concat(readVerbs, writeVerbs)...), creates: inOwnNamespaces, special: publicConfigMaps},
	kindSecret:             {related: append([]string{verbDelete}, slices.Concat(readVerbs, writeVerbs)...), creates: secretsMade, special: ownSecrets},
	kindInternalSecret:     {related: append([]string{verbDelete}, slices.Concat(readVerbs, writeVerbs)...), creates: inOwnNamespaces},
	kindShootState:         {related: append([]string{verbDelete}, slices.Concat(readVerbs, writeVerbs)...), creates: inOwnNamespaces},
	kindLease:              {creates: nothing, special: ownLeases},
	kindGardenlet: {reads: true, related: writeVerbs, creates: named, selects: ofThisSeed("metadata.name"), subresources: []string{"status"},
		namespaces: func(scope) []string { return []string{gardencorev1beta1.GardenNamespace} }},
	kindManagedSeed: {reads: true, related: writeVerbs, selects: ofThisSeed(), subresources: []string{"status"}},
	kindSeed: {reads: true, related: []string{verbUpdate, verbPatch, verbDelete}, creates: named,
		selects: ofThisSeed("metadata.name"), subresources: []string{"status"}},
	kindShoot: {reads: true, related: writeVerbs,
		selects: ofThisSeed("spec.seedName", "status.seedName"), subresources: []string{"status", "finalizers"}},
	kindWorkloadIdentity: {related: append([]string{verbPatch}, readVerbs...), special: ownTokens},
}

// seedExtensionRules are the permissions of a seed's extensions. They match its gardenlet's, except
// for objects that give access.
var seedExtensionRules = func() map[kind]rule {
	all := map[kind]rule{}
	for k, r := range seedRules {
		all[k] = r
	}
	all[kindCertificateSigningRequest] = readRelated
	all[kindClusterRoleBinding] = rule{related: []string{verbGet}}
	all[kindServiceAccount] = rule{related: []string{verbGet}}
	all[kindLease] = rule{always: allVerbs, namespaces: func(s scope) []string { return []string{seedNamespace(s.name)} }}
	return all
}()

func nothing(scope, *request) bool { return false }

// named allows an object with the name of the Seed. If the request has no name, admission checks
// it.
func named(s scope, r *request) bool { return r.name == "" || r.name == s.name }

// inOwnNamespaces allows namespaces with a Shoot of this seed. A named object must belong to the
// seed, unless its own content will state the owner.
func inOwnNamespaces(s scope, r *request) bool {
	if !s.graph.belongs(node{kind: kindNamespace, name: r.namespace}, s.owner) {
		return false
	}
	byItself := r.kind == kindBackupEntry || r.kind == kindBastion
	return r.name == "" || byItself || s.mine(r)
}

// secretsMade allows Secrets of Shoots, token keys of Shoots, Secrets of backup buckets, and tokens
// for gardenlets of managed Seeds.
func secretsMade(s scope, r *request) bool {
	switch r.namespace {
	case namespaceIssuers:
		return r.name == "" || s.graph.belongs(issuer(r.name), s.owner)
	case metav1.NamespaceSystem:
		return whileBootstrapping(s, r)
	case gardencorev1beta1.GardenNamespace:
		return r.name == "" || s.mine(r)
	}
	return inOwnNamespaces(s, r)
}

// whileBootstrapping allows objects for the first access of a managed Seed's gardenlet, until it
// has access.
func whileBootstrapping(s scope, r *request) bool {
	if r.name != "" {
		return s.mine(r)
	}
	return s.graph.bootstrapsAny(r.kind, r.namespace, s.owner, s.now)
}

// ownSecrets allows Secrets for the seed and token keys of its Shoots. The gardenlet may also
// delete its own bootstrap token.
func ownSecrets(s scope, r *request) bool {
	if r.subresource != "" {
		return false
	}
	switch r.namespace {
	case seedNamespace(s.name):
		return r.is(readVerbs...)
	case namespaceIssuers:
		return r.name != "" && r.is(verbGet, verbUpdate, verbPatch, verbDelete) && s.graph.belongs(issuer(r.name), s.owner)
	}
	return r.is(verbDelete) && r.node == bootstrapToken(node{kindGardenlet, gardencorev1beta1.GardenNamespace, s.name})
}

// publicConfigMaps allows public ConfigMaps and ConfigMaps for the seed.
func publicConfigMaps(s scope, r *request) bool {
	switch {
	case r.subresource != "":
		return false
	case r.namespace == seedNamespace(s.name):
		return r.is(readVerbs...)
	case r.namespace == metav1.NamespaceSystem && r.name == "cluster-identity":
		return r.is(readVerbs...)
	}
	return r.is(verbGet) && r.namespace == namespacePublic && (r.name == "gardener-info" || r.name == "kube-root-ca.crt")
}

// ownLeases allows the heartbeat, and the leader election if the seed is also the garden.
func ownLeases(s scope, r *request) bool {
	if r.subresource != "" {
		return false
	}
	switch r.namespace {
	case gardencorev1beta1.GardenerSystemSeedLeaseNamespace:
		return r.is(verbCreate) && r.name == "" || r.name == s.name && r.is(verbCreate, verbGet, verbList, verbWatch, verbUpdate, verbPatch)
	case gardencorev1beta1.GardenNamespace:
		return r.is(verbCreate) && r.name == "" || r.name == leaderElection && r.is(verbCreate, verbGet, verbList, verbWatch, verbUpdate, verbPatch)
	}
	return false
}

// ownAccounts allows the accounts of the seed's extensions with their tokens. The gardenlet may
// also delete its own bootstrap account.
func ownAccounts(s scope, r *request) bool {
	return r.namespace == seedNamespace(s.name) && isAccountOrToken(r) ||
		r.is(verbDelete) && r.namespace == gardencorev1beta1.GardenNamespace && r.name == prefixBootstrap+s.name && r.subresource == ""
}

func isAccountOrToken(r *request) bool {
	return r.subresource == "" && r.is(allVerbs...) || r.subresource == "token" && r.verb == verbCreate && r.name != ""
}

// ownTokens allows tokens of WorkloadIdentities that belong to the owner.
func ownTokens(s scope, r *request) bool {
	return r.subresource == "token" && r.verb == verbCreate && s.mine(r)
}

// approval allows the request that approvers send to check whether a client may have its
// certificate approved.
func approval(subresource string) func(scope, *request) bool {
	return func(_ scope, r *request) bool { return r.subresource == subresource && r.verb == verbCreate }
}

// ownBootstrapBinding allows the gardenlet to delete its own bootstrap binding.
func ownBootstrapBinding(s scope, r *request) bool {
	account, is := strings.CutPrefix(r.name, prefixBootstrapper+gardencorev1beta1.GardenNamespace+":")
	return is && r.is(verbDelete) && account == prefixBootstrap+s.name && r.subresource == ""
}
