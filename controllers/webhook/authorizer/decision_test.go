// SPDX-License-Identifier: Apache-2.0

package authorizer

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var update = flag.Bool("update", false, "write testdata anew")

// objectNames names three objects of a kind: an object of Seed a (or the self-hosted Shoot), an
// object of another owner, and an absent one.
type objectNames struct{ own, others, absent string }

var objectNamesForSeed = map[kind]objectNames{
	kindProject:                   {"one", "three", "none"},
	kindNamespace:                 {"garden-one", "garden-three", "none"},
	kindCloudProfile:              {"first", "fourth", "none"},
	kindNamespacedCloudProfile:    {"garden-one/own", "garden-one/other", "garden-one/none"},
	kindExposureClass:             {"public", "other", "none"},
	kindEvent:                     {"garden-one/e", "garden-three/e", "default/e"},
	kindLease:                     {"gardener-system-seed-lease/a", "gardener-system-seed-lease/b", "kube-system/none"},
	kindSecret:                    {"garden-one/cloud", "garden-shared/cloud", "garden-one/none"},
	kindInternalSecret:            {"garden-one/s.ca-client", "garden-three/s.ca-client", "garden-one/none"},
	kindConfigMap:                 {"garden-one/audit", "garden-three/audit", "garden-one/none"},
	kindWorkloadIdentity:          {"garden-one/dns-identity", "garden-three/identity", "garden-one/none"},
	kindServiceAccount:            {"seed-a/extension-y", "seed-b/extension-y", "garden-one/none"},
	kindClusterRoleBinding:        {"gardener.cloud:system:seed-bootstrapper:garden:gardenlet-bootstrap-a", "gardener.cloud:system:seed-bootstrapper:garden:gardenlet-bootstrap-b", "cluster-admin"},
	kindCertificateSigningRequest: {"seed-csr-a", "seed-csr-b", "none"},
	kindSecretBinding:             {"garden-two/own", "garden-two/bound", "garden-two/none"},
	kindCredentialsBinding:        {"garden-one/bound", "garden-three/bound", "garden-one/none"},
	kindShootState:                {"garden-one/s", "garden-two/s", "garden-one/none"},
	kindControllerRegistration:    {"extension", "extension", "none"},
	kindControllerDeployment:      {"deployment", "other", "none"},
	kindControllerInstallation:    {"extension-a", "extension-b", "none"},
	kindBackupBucket:              {"uid-a", "uid-c", "none"},
	kindBackupEntry:               {"garden-one/entry-s", "garden-two/entry-s", "garden-one/none"},
	kindBastion:                   {"garden-one/bastion", "garden-two/bastion", "garden-one/none"},
	kindGardenlet:                 {"garden/a", "garden/b", "garden/none"},
	kindSeed:                      {"a", "b", "none"},
	kindManagedSeed:               {"garden/m", "garden/b", "garden/none"},
	kindShoot:                     {"garden-one/s", "garden-two/s", "garden-one/none"},
}

var objectNamesForShoot = map[kind]objectNames{
	kindProject:                   {"one", "two", "none"},
	kindNamespace:                 {"garden-one", "garden-two", "none"},
	kindCloudProfile:              {"third", "first", "none"},
	kindNamespacedCloudProfile:    {"garden-one/self", "garden-one/own", "garden-one/none"},
	kindExposureClass:             {"none", "public", "none"},
	kindEvent:                     {"garden-one/e", "garden-two/e", "default/e"},
	kindLease:                     {"garden-one/self--x", "garden-one/s--x", "kube-system/none"},
	kindSecret:                    {"garden-one/self-backup", "garden-one/cloud", "garden-one/none"},
	kindInternalSecret:            {"garden-one/self-cloud", "garden-one/s.ca-client", "garden-one/none"},
	kindConfigMap:                 {"garden-one/self.ca-cluster", "garden-one/audit", "garden-one/none"},
	kindWorkloadIdentity:          {"garden-one/none", "garden-one/dns-identity", "garden-one/none"},
	kindServiceAccount:            {"garden-one/extension-shoot--self--x", "garden-one/extension-shoot--s--x", "garden-one/none"},
	kindClusterRoleBinding:        {"none", "gardener.cloud:system:seed-bootstrapper:garden:gardenlet-bootstrap-b", "cluster-admin"},
	kindCertificateSigningRequest: {"shoot-csr-self", "seed-csr-b", "none"},
	kindSecretBinding:             {"garden-one/none", "garden-two/bound", "garden-two/none"},
	kindCredentialsBinding:        {"garden-one/self", "garden-one/bound", "garden-one/none"},
	kindShootState:                {"garden-one/self", "garden-one/s", "garden-one/none"},
	kindControllerRegistration:    {"extension", "extension", "none"},
	kindControllerDeployment:      {"deployment", "other", "none"},
	kindControllerInstallation:    {"extension-self", "extension-b", "none"},
	kindBackupBucket:              {"uid-self", "uid-a", "none"},
	kindBackupEntry:               {"garden-one/entry-self", "garden-one/entry-s", "garden-one/none"},
	kindBastion:                   {"garden-one/self", "garden-one/bastion", "garden-one/none"},
	kindGardenlet:                 {"garden-one/self-hosted-shoot-self", "garden/b", "garden-one/none"},
	kindSeed:                      {"self", "b", "none"},
	kindManagedSeed:               {"garden-one/self", "garden/m", "garden-one/none"},
	kindShoot:                     {"garden-one/self", "garden-one/s", "garden-one/none"},
}

// moreObjects contains further objects for the tables: of other owners, and one of each kind.
const moreObjects = `
- {apiVersion: core.gardener.cloud/v1beta1, kind: Project, metadata: {name: three}, spec: {namespace: garden-three}}
- {apiVersion: core.gardener.cloud/v1beta1, kind: Seed, metadata: {name: c}, spec: {}}
- {apiVersion: core.gardener.cloud/v1beta1, kind: BackupBucket, metadata: {name: uid-c}, spec: {seedName: c}}
- {apiVersion: core.gardener.cloud/v1beta1, kind: Shoot, metadata: {name: s, namespace: garden-three}, spec: {seedName: c, cloudProfileName: fourth, exposureClassName: other, credentialsBindingName: bound, dns: {providers: [{credentialsRef: {apiVersion: security.gardener.cloud/v1alpha1, kind: WorkloadIdentity, name: identity}}]}, kubernetes: {kubeAPIServer: {auditConfig: {auditPolicy: {configMapRef: {name: audit}}}}}}}
- {apiVersion: core.gardener.cloud/v1beta1, kind: NamespacedCloudProfile, metadata: {name: other, namespace: garden-one}, spec: {parent: {kind: CloudProfile, name: fourth}}}
- {apiVersion: core.gardener.cloud/v1beta1, kind: SecretBinding, metadata: {name: own, namespace: garden-two}, secretRef: {name: own}}
- {apiVersion: core.gardener.cloud/v1beta1, kind: Shoot, metadata: {name: t, namespace: garden-two}, spec: {seedName: a, secretBindingName: own}}
- {apiVersion: core.gardener.cloud/v1beta1, kind: Shoot, metadata: {name: b, namespace: garden}, spec: {seedName: c}}
- {apiVersion: seedmanagement.gardener.cloud/v1alpha1, kind: ManagedSeed, metadata: {name: b, namespace: garden}, spec: {shoot: {name: b}, gardenlet: {bootstrap: ServiceAccount}}}
- {apiVersion: seedmanagement.gardener.cloud/v1alpha1, kind: ManagedSeed, metadata: {name: self, namespace: garden-one}, spec: {shoot: {name: self}, gardenlet: {bootstrap: None}}}
- {apiVersion: core.gardener.cloud/v1beta1, kind: Seed, metadata: {name: self}, spec: {}}
`

func splitName(place string) (namespace, name string) {
	if namespace, name, ok := strings.Cut(place, "/"); ok {
		return namespace, name
	}
	return "", place
}

// permissionTable lists the permissions of a user for each kind: for own objects, others', absent
// ones, and without a name.
func permissionTable(t *testing.T, h *Handler, who authorizationv1.SubjectAccessReviewSpec, places map[kind]objectNames) string {
	var b strings.Builder
	for k := kind(1); k < kindCount; k++ {
		if k == kindIssuer {
			continue
		}
		at, ok := places[k]
		require.True(t, ok, k.String())
		resource, group, _ := strings.Cut(k.String(), ".")
		fmt.Fprintf(&b, "%s\n", k)
		for _, sub := range []string{"", "status", "finalizers", "token", "seedclient", "shootclient"} {
			for _, row := range []struct{ title, place string }{{"own", at.own}, {"others'", at.others}, {"absent", at.absent}, {"unnamed", strings.Split(at.own, "/")[0] + "/"}} {
				namespace, name := splitName(row.place)
				if k.isClusterScoped() {
					namespace = ""
				}
				var may []string
				for _, verb := range slices.Concat(allVerbs, []string{"*", "impersonate", "bind"}) {
					result, reason := h.decideFor(who, authorizationv1.ResourceAttributes{Group: group, Resource: resource, Subresource: sub, Verb: verb, Namespace: namespace, Name: name})
					assert.NotEqual(t, denied, result)
					if result == allowed {
						may = append(may, verb)
					} else {
						assert.NotEmpty(t, reason, "%s %s", verb, row.place)
					}
				}
				if len(may) > 0 {
					title := row.title
					if sub != "" {
						title += " " + sub
					}
					fmt.Fprintf(&b, "  %-18s %s\n", title, strings.Join(may, " "))
				}
			}
		}
	}
	return b.String()
}

// TestPermissionTables compares every verb on every kind with the recorded answers. `go test
// ./controllers/webhook/authorizer -update` writes them.
func TestPermissionTables(t *testing.T) {
	h := newGardenHandler(t, landscape, moreObjects)
	h.addCertificateRequest("seed-csr-a", claim{owner: seedOwner("a")})
	h.addCertificateRequest("seed-csr-b", claim{owner: seedOwner("b")})
	h.addCertificateRequest("shoot-csr-self", claim{owner: ownerKey{kindShoot, "garden-one", "self"}})
	for _, c := range []struct {
		file   string
		who    authorizationv1.SubjectAccessReviewSpec
		places map[kind]objectNames
	}{
		{"seed-gardenlet", gardenletA, objectNamesForSeed},
		{"seed-extension", extensionA, objectNamesForSeed},
		{"shoot-gardenlet", gardenletSelf, objectNamesForShoot},
		{"shoot-extension", extensionSelf, objectNamesForShoot},
		{"shoot-gardenadm", gardenadmSelf, objectNamesForShoot},
	} {
		t.Run(c.file, func(t *testing.T) {
			got, file := permissionTable(t, h, c.who, c.places), filepath.Join("testdata", c.file+".txt")
			if *update {
				require.NoError(t, os.MkdirAll("testdata", 0o755))
				require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
			}
			want, err := os.ReadFile(file)
			require.NoError(t, err)
			assert.Equal(t, string(want), got)
		})
	}
}

// addCertificateRequest adds a request for a certificate; another test covers its content.
func (h *Handler) addCertificateRequest(name string, c claim) {
	of := objectKey{kind: kindCertificateSigningRequest, name: name}
	h.graph.setRelations(&objectRelations{subject: of, claims: []claim{{of, c.owner}}})
}

// parseQuestion parses VERB RESOURCE[/SUBRESOURCE] [NAMESPACE/]NAME, with a selector:
// field:KEY=VALUE or label:KEY=VALUE.
func parseQuestion(t testing.TB, text string) authorizationv1.ResourceAttributes {
	t.Helper()
	parts := strings.Fields(text)
	resource, group, _ := strings.Cut(parts[1], ".")
	resource, sub, _ := strings.Cut(resource, "/")
	a := authorizationv1.ResourceAttributes{Verb: parts[0], Resource: resource, Group: group, Subresource: sub}
	for _, part := range parts[2:] {
		if what, selector, is := strings.Cut(part, ":"); is && (what == "field" || what == "label") {
			operator, key, value := metav1.LabelSelectorOpIn, "", ""
			if k, v, not := strings.Cut(selector, "!="); not {
				operator, key, value = metav1.LabelSelectorOpNotIn, k, v
			} else {
				key, value, _ = strings.Cut(selector, "=")
			}
			if what == "field" {
				a.FieldSelector = &authorizationv1.FieldSelectorAttributes{Requirements: []metav1.FieldSelectorRequirement{{Key: key, Operator: metav1.FieldSelectorOperator(operator), Values: strings.Split(value, ",")}}}
			} else {
				a.LabelSelector = &authorizationv1.LabelSelectorAttributes{Requirements: []metav1.LabelSelectorRequirement{{Key: key, Operator: operator, Values: strings.Split(value, ",")}}}
			}
			continue
		}
		a.Namespace, a.Name = splitName(part)
	}
	return a
}

func TestDecisions(t *testing.T) {
	h := newGardenHandler(t, landscape)
	tokenA, tokenM := bootstrapTokenKey(objectKey{kindGardenlet, "garden", "a"}).name, bootstrapTokenKey(objectKey{kindManagedSeed, "garden", "m"}).name
	for _, c := range []struct {
		name     string
		who      authorizationv1.SubjectAccessReviewSpec
		yes, not []string
	}{
		{"what a Shoot refers to", gardenletA, []string{
			"get secrets garden-one/cloud", "get secrets garden-one/dns", "get secrets garden-one/plugin", "get secrets garden-one/authorizer", "get secrets garden-one/resource",
			"get configmaps garden-one/audit", "get configmaps garden-one/authentication", "get configmaps garden-one/authorization", "get configmaps garden-one/resource",
			"create workloadidentities/token.security.gardener.cloud garden-one/dns-identity", "get credentialsbindings.security.gardener.cloud garden-one/bound",
			"get namespacedcloudprofiles.core.gardener.cloud garden-one/own", "get cloudprofiles.core.gardener.cloud first", "watch cloudprofiles.core.gardener.cloud first",
			"get projects.core.gardener.cloud one", "get namespaces garden-one/garden-one", "get exposureclasses.core.gardener.cloud public",
		}, []string{
			"get secrets garden-shared/cloud", "get secrets garden-two/resource", "list secrets garden-one/", "watch secrets", "get secrets garden-one/other", "get configmaps garden-one/other",
			"list configmaps garden-one/", "get secrets garden-one/self-backup", "get secretbindings.core.gardener.cloud garden-two/bound", "get secrets/x garden-one/cloud",
			"create workloadidentities.security.gardener.cloud garden-one/", "delete projects.core.gardener.cloud one", "list projects.core.gardener.cloud", "list namespaces",
		}},
		{"what is made for a Shoot", gardenletA, []string{
			"create secrets garden-one/", "create secrets garden-one/s.kubeconfig", "patch secrets garden-one/s.ssh-keypair.old", "delete secrets garden-one/s.monitoring", "create configmaps garden-one/",
			"update internalsecrets.core.gardener.cloud garden-one/s.ca-client", "patch shootstates.core.gardener.cloud garden-one/s", "create shootstates.core.gardener.cloud garden-one/",
			"create secrets gardener-system-shoot-issuer/", "patch secrets gardener-system-shoot-issuer/one--11111111-2222-3333-4444-555555555555",
		}, []string{
			"create secrets garden-three/", "create secrets garden-one/any", "create secrets default/", "delete secrets garden-one/any", "patch secrets garden-one/any", "create configmaps default/",
			"get internalsecrets.core.gardener.cloud garden-two/x.ca-client", "patch secrets gardener-system-shoot-issuer/two--99999999-2222-3333-4444-555555555555", "list secrets gardener-system-shoot-issuer/",
		}},
		{"a Shoot that moves is both Seeds'", gardenletA, []string{"patch shoots/status.core.gardener.cloud garden-two/moving", "get secrets garden-two/moving.kubeconfig", "get namespaces garden-two/garden-two"}, nil},
		{"a Shoot that moves is both Seeds'", gardenletB, []string{"patch shoots/status.core.gardener.cloud garden-two/moving", "get secrets garden-shared/cloud"}, []string{"get secrets garden-one/cloud"}},
		{"Shoots", gardenletA, []string{
			"get shoots.core.gardener.cloud garden-one/s", "get shoots.core.gardener.cloud garden-one/gone", "update shoots/finalizers.core.gardener.cloud garden-one/s",
			"list shoots.core.gardener.cloud field:spec.seedName=a", "watch shoots.core.gardener.cloud field:status.seedName=a", "list shoots.core.gardener.cloud label:name.seed.gardener.cloud/a=true",
			"watch shoots.core.gardener.cloud garden-one/s",
		}, []string{
			"get shoots.core.gardener.cloud garden-two/s", "list shoots.core.gardener.cloud", "list shoots.core.gardener.cloud garden-two/", "list shoots.core.gardener.cloud field:spec.seedName=b",
			"list shoots.core.gardener.cloud field:spec.seedName!=a", "list shoots.core.gardener.cloud field:spec.seedName=a,b", "list shoots.core.gardener.cloud label:name.seed.gardener.cloud/a=false",
			"list shoots.core.gardener.cloud label:name.seed.gardener.cloud/a!=true", "watch shoots.core.gardener.cloud label:x!=y", "watch shoots.core.gardener.cloud garden-two/s",
			"watch shoots.core.gardener.cloud garden-one/gone", "delete shoots.core.gardener.cloud garden-one/s", "create shoots.core.gardener.cloud garden-one/", "create shoots/adminkubeconfig.core.gardener.cloud garden-one/s",
			"patch shoots.core.gardener.cloud garden-one/gone",
		}},
		{"its Seed, and the one above it", gardenletA, []string{
			"get seeds.core.gardener.cloud a", "patch seeds/status.core.gardener.cloud a", "create seeds.core.gardener.cloud", "create seeds.core.gardener.cloud a", "list seeds.core.gardener.cloud field:metadata.name=a",
			"get seeds.core.gardener.cloud m", "delete seeds.core.gardener.cloud m", "get secrets garden/backup-m", "patch managedseeds/status.seedmanagement.gardener.cloud garden/m",
			"get secrets garden/backup-a", "get secrets garden/dns-a", "get secrets garden/internal-a", "create workloadidentities/token.security.gardener.cloud garden/default-a", "get configmaps garden/resource-a",
			"get secrets garden/generated-bucket-uid-a", "create secrets garden/", "get secrets seed-a/any", "list secrets seed-a/", "watch configmaps seed-a/", "get namespaces seed-a/seed-a",
			"get configmaps kube-system/cluster-identity", "get configmaps gardener-system-public/gardener-info", "get configmaps gardener-system-public/kube-root-ca.crt",
			"create leases.coordination.k8s.io gardener-system-seed-lease/", "update leases.coordination.k8s.io gardener-system-seed-lease/a", "update leases.coordination.k8s.io garden/gardenlet-leader-election",
			"create events garden-three/", "patch events.events.k8s.io default/e", "create serviceaccounts/token seed-a/extension-x",
		}, []string{
			"get seeds.core.gardener.cloud b", "patch seeds/status.core.gardener.cloud b", "create seeds.core.gardener.cloud b", "list seeds.core.gardener.cloud", "get secrets garden/backup-b", "get secrets garden/dns-m",
			"get secrets seed-b/any", "list secrets seed-b/", "create secrets seed-a/", "patch secrets seed-a/any", "get secrets garden/any", "get configmaps kube-system/extension-apiserver-authentication",
			"update leases.coordination.k8s.io gardener-system-seed-lease/b", "update leases.coordination.k8s.io kube-system/gardenlet-leader-election", "delete leases.coordination.k8s.io gardener-system-seed-lease/a",
			"list events", "create serviceaccounts/token seed-b/extension-x", "create serviceaccounts/token garden/any", "create serviceaccounts kube-system/", "get nodes", "get clusterroles.rbac.authorization.k8s.io cluster-admin",
			"create clusterrolebindings.rbac.authorization.k8s.io", "create clusterrolebindings.rbac.authorization.k8s.io x", "impersonate users x",
		}},
		{"what belongs to a managed Seed is not the Seed's below", gardenletM, []string{"get secrets garden/dns-m", "get secrets garden/backup-m", "create seeds.core.gardener.cloud m"}, []string{"get managedseeds.seedmanagement.gardener.cloud garden/m", "get shoots.core.gardener.cloud garden/m"}},
		{"first access", gardenletA, []string{"create secrets kube-system/", "create secrets kube-system/" + tokenM, "delete secrets kube-system/" + tokenM, "delete secrets kube-system/" + tokenA, "delete serviceaccounts garden/gardenlet-bootstrap-a",
			"delete clusterrolebindings.rbac.authorization.k8s.io gardener.cloud:system:seed-bootstrapper:garden:gardenlet-bootstrap-a"},
			[]string{"get secrets kube-system/" + tokenA, "create secrets kube-system/" + tokenA, "create secrets kube-system/bootstrap-token-ffffff", "delete secrets kube-system/bootstrap-token-ffffff", "delete serviceaccounts garden/gardenlet-bootstrap-b"}},
		{"first access", gardenletB, nil, []string{"create secrets kube-system/", "create secrets kube-system/" + tokenM}},
		{"an extension", extensionA, []string{"get secrets garden-one/cloud", "get secrets seed-a/any", "create leases.coordination.k8s.io seed-a/", "delete leases.coordination.k8s.io seed-a/x", "list shoots.core.gardener.cloud field:spec.seedName=a"},
			[]string{"create serviceaccounts/token seed-a/extension-x", "create certificatesigningrequests.certificates.k8s.io", "create certificatesigningrequests/seedclient.certificates.k8s.io", "update leases.coordination.k8s.io gardener-system-seed-lease/a",
				"update leases.coordination.k8s.io garden/gardenlet-leader-election", "delete clusterrolebindings.rbac.authorization.k8s.io gardener.cloud:system:seed-bootstrapper:garden:gardenlet-bootstrap-a"}},
		{"a self-hosted Shoot", gardenletSelf, []string{
			"get shoots.core.gardener.cloud garden-one/self", "list shoots.core.gardener.cloud garden-one/self", "patch shoots/status.core.gardener.cloud garden-one/self", "get secrets garden-one/self-backup", "get cloudprofiles.core.gardener.cloud third",
			"list backupbuckets.core.gardener.cloud field:spec.shootRef.name=self", "patch gardenlets.seedmanagement.gardener.cloud garden-one/self-hosted-shoot-self",
			"list gardenlets.seedmanagement.gardener.cloud garden-one/ field:metadata.name=self-hosted-shoot-self", "create serviceaccounts/token garden-one/extension-shoot--self--x", "patch leases.coordination.k8s.io garden-one/self-hosted-shoot-self",
		}, []string{
			"get shoots.core.gardener.cloud garden-one/s", "patch shoots.core.gardener.cloud garden-one/s", "get secrets garden-one/cloud", "get secrets garden-one/dns", "get cloudprofiles.core.gardener.cloud first", "patch leases.coordination.k8s.io garden-one/s--x",
			"create serviceaccounts/token garden-one/extension-shoot--s--x", "create secrets garden-two/", "get gardenlets.seedmanagement.gardener.cloud garden/a",
		}},
		{"one that is not self-hosted", gardenletOther, []string{"get shoots.core.gardener.cloud garden-one/s"}, []string{"patch shoots.core.gardener.cloud garden-one/s", "get secrets garden-one/cloud", "get cloudprofiles.core.gardener.cloud first"}},
		{"gardenadm", gardenadmSelf, []string{"create shoots.core.gardener.cloud garden-one/", "mark-self-hosted shoots.core.gardener.cloud garden-one/self", "patch shoots/status.core.gardener.cloud garden-one/self", "get cloudprofiles.core.gardener.cloud any"},
			[]string{"create shoots.core.gardener.cloud garden-two/", "patch shoots/status.core.gardener.cloud garden-one/s", "get secrets garden-one/self-backup", "get shoots.core.gardener.cloud garden-one/self"}},
	} {
		t.Run(c.name+" "+c.who.User, func(t *testing.T) {
			for _, q := range c.yes {
				got, reason := h.decideFor(c.who, parseQuestion(t, q))
				// The selector of a self-hosted Shoot also needs its namespace.
				if strings.Contains(q, "spec.shootRef.name") {
					assert.Equal(t, noOpinion, got, "a Shoot of that name in another namespace would be read, too")
					a := parseQuestion(t, q)
					a.FieldSelector.Requirements = append(a.FieldSelector.Requirements, metav1.FieldSelectorRequirement{Key: "spec.shootRef.namespace", Operator: metav1.FieldSelectorOpIn, Values: []string{"garden-one"}})
					got, reason = h.decideFor(c.who, a)
				}
				assert.Equal(t, allowed, got, "%s: %s", q, reason)
			}
			for _, q := range c.not {
				got, reason := h.decideFor(c.who, parseQuestion(t, q))
				assert.Equal(t, noOpinion, got, q)
				assert.NotEmpty(t, reason, q)
			}
		})
	}
}

// TestUnselectedReads: as in upstream, all gardenlets may read objects of all Seeds, but not
// objects that Shoots refer to.
func TestUnselectedReads(t *testing.T) {
	h := newGardenHandler(t, landscape)
	h.allowsUnselectedReads = true
	for q, want := range map[string]verdict{
		"list shoots.core.gardener.cloud": allowed, "get shoots.core.gardener.cloud garden-two/s": allowed, "watch seeds.core.gardener.cloud": allowed, "list managedseeds.seedmanagement.gardener.cloud": allowed,
		"patch shoots.core.gardener.cloud garden-two/s": noOpinion, "get secrets garden-two/resource": noOpinion, "list secrets": noOpinion, "list projects.core.gardener.cloud": noOpinion, "get shoots/status.core.gardener.cloud garden-two/s": allowed,
	} {
		got, reason := h.decideFor(gardenletA, parseQuestion(t, q))
		assert.Equal(t, want, got, "%s: %s", q, reason)
	}
}

// TestReasons checks the reasons that the API server shows to users.
func TestReasons(t *testing.T) {
	h := newGardenHandler(t, landscape)
	for q, want := range map[string]string{
		"get secrets garden-two/resource":                        "neither seed a nor its objects refer to secrets garden-two/resource",
		"list shoots.core.gardener.cloud":                        "the gardenlet of seed a may list shoots.core.gardener.cloud only by name (field metadata.name), or field spec.seedName=a, or field status.seedName=a, or label name.seed.gardener.cloud/a=true",
		"list secrets":                                           "the gardenlet of seed a may list secrets only by name (field metadata.name)",
		"get nodes":                                              "a gardenlet does not need nodes",
		"delete shoots.core.gardener.cloud garden-one/s":         "the gardenlet of seed a may only get, list, patch, update, watch shoots.core.gardener.cloud",
		"create shoots/binding.core.gardener.cloud garden-one/s": "a gardenlet does not need subresource binding of shoots.core.gardener.cloud",
		"create secrets garden-three/":                           "the gardenlet of seed a may not create secrets there",
		"get gardenlets.seedmanagement.gardener.cloud garden-one/self-hosted-shoot-self": "the gardenlet of seed a may access gardenlets.seedmanagement.gardener.cloud only in namespace garden",
	} {
		_, reason := h.decideFor(gardenletA, parseQuestion(t, q))
		assert.Equal(t, want, reason, q)
	}
}
