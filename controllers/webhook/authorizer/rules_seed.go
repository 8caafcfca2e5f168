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

// readRelated is for what Shoots and Seeds refer to.
var readRelated = rule{related: readVerbs}

// ofThisSeed selects by a field, or by the label that Gardener keeps on what concerns a Seed.
func ofThisSeed(fields ...string) func(scope) []selection {
	return func(s scope) []selection {
		var out []selection
		for _, field := range fields {
			out = append(out, selection{fields: map[string]string{field: s.name}})
		}
		return append(out, selection{labels: map[string]string{gardencorev1beta1.NameSeedPrefix + s.name: "true"}})
	}
}

// seedRules are what the gardenlet of a seed may do. They are upstream's
// (pkg/admissioncontroller/webhook/auth/seed), but objects of other seeds are not read, and objects
// are made only where the seed has something.
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

// seedExtensionRules are what extensions of a seed may do: as its gardenlet, but nothing that gives
// access.
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

// named: an object of the name of the Seed is made; where the request does not say how it is
// called, admission sees to that.
func named(s scope, r *request) bool { return r.name == "" || r.name == s.name }

// inOwnNamespaces: a namespace in which a Shoot of this seed is. A name that is given must be that
// of something that belongs to the seed, unless the object says so itself.
func inOwnNamespaces(s scope, r *request) bool {
	if !s.graph.belongs(node{kind: kindNamespace, name: r.namespace}, s.owner) {
		return false
	}
	byItself := r.kind == kindBackupEntry || r.kind == kindBastion
	return r.name == "" || byItself || s.mine(r)
}

// secretsMade: those of Shoots, keys of their tokens, those of backup buckets, and tokens for
// gardenlets of managed Seeds.
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

// whileBootstrapping: what gives the gardenlet of a managed Seed its first access, as long as that
// has none.
func whileBootstrapping(s scope, r *request) bool {
	if r.name != "" {
		return s.mine(r)
	}
	return s.graph.bootstrapsAny(r.kind, r.namespace, s.owner, s.now)
}

// ownSecrets: what is there for the seed, the keys of its Shoots' tokens, and the token by which
// its gardenlet came, to be removed.
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

// publicConfigMaps: what all may know, and what is there for the seed.
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

// ownLeases: the heartbeat; and the leadership, where the seed is the garden, too.
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

// ownAccounts: those of its extensions, with their tokens; and that by which its gardenlet came, to
// be removed.
func ownAccounts(s scope, r *request) bool {
	return r.namespace == seedNamespace(s.name) && isAccountOrToken(r) ||
		r.is(verbDelete) && r.namespace == gardencorev1beta1.GardenNamespace && r.name == prefixBootstrap+s.name && r.subresource == ""
}

func isAccountOrToken(r *request) bool {
	return r.subresource == "" && r.is(allVerbs...) || r.subresource == "token" && r.verb == verbCreate && r.name != ""
}

// ownTokens: for what a WorkloadIdentity gives access to.
func ownTokens(s scope, r *request) bool {
	return r.subresource == "token" && r.verb == verbCreate && s.mine(r)
}

// approval: whoever approves requests for certificates asks whether who made one may have it
// approved.
func approval(subresource string) func(scope, *request) bool {
	return func(_ scope, r *request) bool { return r.subresource == subresource && r.verb == verbCreate }
}

// ownBootstrapBinding: that by which its gardenlet came, to be removed.
func ownBootstrapBinding(s scope, r *request) bool {
	account, is := strings.CutPrefix(r.name, prefixBootstrapper+gardencorev1beta1.GardenNamespace+":")
	return is && r.is(verbDelete) && account == prefixBootstrap+s.name && r.subresource == ""
}
