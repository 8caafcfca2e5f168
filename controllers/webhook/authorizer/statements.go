package authorizer

import (
	"cmp"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	corev1 "github.com/pergola-dev/pergola/api/core/v1"
	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	operationsv1alpha1 "github.com/pergola-dev/pergola/api/operations/v1alpha1"
	securityv1alpha1 "github.com/pergola-dev/pergola/api/security/v1alpha1"
	seedmanagementv1alpha1 "github.com/pergola-dev/pergola/api/seedmanagement/v1alpha1"
)

// watchedKind is a kind whose objects state what belongs to an owner.
type watchedKind struct {
	kind     kind
	resource schema.GroupVersionResource
	says     func(*speaker)
}

// watchedKinds returns all kinds that are listed and watched.
func watchedKinds() []watchedKind {
	core, security, seedmanagement := gardencorev1beta1.SchemeGroupVersion, securityv1alpha1.SchemeGroupVersion, seedmanagementv1alpha1.SchemeGroupVersion
	return []watchedKind{
		{kindBackupBucket, core.WithResource("backupbuckets"), backupBucketSays},
		{kindBackupEntry, core.WithResource("backupentries"), backupEntrySays},
		{kindBastion, operationsv1alpha1.SchemeGroupVersion.WithResource("bastions"), bastionSays},
		{kindCertificateSigningRequest, certificatesv1.SchemeGroupVersion.WithResource("certificatesigningrequests"), signingRequestSays},
		{kindControllerDeployment, corev1.SchemeGroupVersion.WithResource("controllerdeployments"), controllerDeploymentSays},
		{kindControllerInstallation, core.WithResource("controllerinstallations"), controllerInstallationSays},
		{kindCredentialsBinding, security.WithResource("credentialsbindings"), (*speaker).binding},
		{kindGardenlet, seedmanagement.WithResource("gardenlets"), gardenletSays},
		{kindManagedSeed, seedmanagement.WithResource("managedseeds"), managedSeedSays},
		{kindNamespacedCloudProfile, core.WithResource("namespacedcloudprofiles"), namespacedCloudProfileSays},
		{kindProject, core.WithResource("projects"), projectSays},
		{kindSecretBinding, core.WithResource("secretbindings"), (*speaker).binding},
		{kindSeed, core.WithResource("seeds"), seedSays},
		{kindShoot, core.WithResource("shoots"), shootSays},
	}
}

// speaker builds the statement of an object.
type speaker struct {
	*statement
	object *unstructured.Unstructured
}

func speak(k watchedKind, object *unstructured.Unstructured) *statement {
	s := &speaker{statement: &statement{of: node{k.kind, object.GetNamespace(), object.GetName()}}, object: object}
	k.says(s)
	return s.statement
}

// refers states that the objects in these fields belong to the owners of the object.
func (s *speaker) refers(refs ...reference) {
	for _, n := range targets(s.object.Object, s.of.namespace, refs) {
		s.edges = append(s.edges, edge{n, s.of})
	}
}

// belongs states that the object belongs to the owners of another one, if that has a name.
func (s *speaker) belongs(to node) {
	if to.name != "" {
		s.edges = append(s.edges, edge{s.of, to})
	}
}

// ofSeed states that an object belongs to a Seed, if that has a name.
func (s *speaker) ofSeed(what node, seed string) {
	if seed != "" {
		s.claims = append(s.claims, claim{what, seedOwner(seed)})
	}
}

func (s *speaker) text(path ...string) string { return text(s.object.Object, path...) }

// binding adds the references of a SecretBinding or CredentialsBinding.
func (s *speaker) binding() {
	s.refers(reference{"secretRef", kindSecret, asWritten}, reference{"credentialsRef", kindSecret, asWritten})
}

func backupBucketSays(s *speaker) {
	s.refers(reference{"spec.credentialsRef", kindSecret, asWritten}, reference{"status.generatedSecretRef", kindSecret, asWritten})
	s.ofSeed(s.of, s.text("spec", "seedName"))
	s.belongs(node{kindShoot, s.text("spec", "shootRef", "namespace"), s.text("spec", "shootRef", "name")})
}

// backupEntrySays states that the bucket belongs to the owners of the entry, too. So the target
// Seed of a moving Shoot can read the bucket of the previous Seed.
func backupEntrySays(s *speaker) {
	s.refers(reference{"spec.bucketName", kindBackupBucket, inOwn})
	s.ofSeed(s.of, s.text("spec", "seedName"))
	s.ofSeed(s.of, s.text("status", "seedName"))
	s.belongs(node{kindShoot, cmp.Or(s.text("spec", "shootRef", "namespace"), s.of.namespace), cmp.Or(s.text("spec", "shootRef", "name"), ownerShoot(s.object))})
}

func ownerShoot(object *unstructured.Unstructured) string {
	for _, o := range object.GetOwnerReferences() {
		if o.Kind == "Shoot" && strings.HasPrefix(o.APIVersion, gardencorev1beta1.SchemeGroupVersion.Group+"/") {
			return o.Name
		}
	}
	return ""
}

func bastionSays(s *speaker) {
	s.ofSeed(s.of, s.text("spec", "seedName"))
	s.belongs(node{kindShoot, s.of.namespace, s.text("spec", "shootRef", "name")})
}

// signingRequestSays lets a gardenlet see the result of its own request for a certificate.
func signingRequestSays(s *speaker) {
	encoded, err := base64.StdEncoding.DecodeString(s.text("spec", "request"))
	if err != nil {
		return
	}
	block, _ := pem.Decode(encoded)
	if block == nil {
		return
	}
	request, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return
	}
	who := requester{name: request.Subject.CommonName, groups: request.Subject.Organization}
	if seed, as, _ := who.ofSeed(); as == asGardenlet {
		s.ofSeed(s.of, seed)
	}
	if shoot, as, _ := who.ofShoot(); as == asGardenlet {
		s.claims = append(s.claims, claim{s.of, owner(shoot)})
	}
}

func controllerDeploymentSays(s *speaker) {
	s.refers(reference{"helm.ociRepository.pullSecretRef", kindSecret, inGarden}, reference{"helm.ociRepository.caBundleSecretRef", kindSecret, inGarden},
		reference{"resources[].resourceRef", kindSecret, inGarden})
}

func controllerInstallationSays(s *speaker) {
	s.refers(reference{"spec.registrationRef", kindControllerRegistration, inOwn}, reference{"spec.deploymentRef", kindControllerDeployment, inOwn},
		reference{"spec.resourceRefs[]", kindSecret, asWritten})
	s.ofSeed(s.of, s.text("spec", "seedRef", "name"))
	s.belongs(node{kindShoot, s.text("spec", "shootRef", "namespace"), s.text("spec", "shootRef", "name")})
}

func namespacedCloudProfileSays(s *speaker) {
	s.refers(reference{"spec.parent", kindCloudProfile, inOwn})
}

func projectSays(s *speaker) {
	s.belongs(node{kind: kindNamespace, name: s.text("spec", "namespace")})
}

// ofSeedSpec are the references of a Seed.
var ofSeedSpec = []reference{
	{"backup.credentialsRef", kindSecret, asWritten},
	{"dns.provider.credentialsRef", kindSecret, asWritten},
	{"dns.provider.secretRef", kindSecret, asWritten},
	{"dns.internal.credentialsRef", kindSecret, asWritten},
	{"dns.defaults[].credentialsRef", kindSecret, asWritten},
	{"resources[].resourceRef", kindSecret, inGarden},
}

// seedSays states that referenced objects belong to the Seed, but not to a managed one's parent.
func seedSays(s *speaker) {
	s.seedSpec(s.of.name, "spec")
	if at, err := time.Parse(time.RFC3339, s.text("status", "clientCertificateExpirationTimestamp")); err == nil {
		s.expires = at
	}
}

// seedSpec states that the references in a Seed's spec at a path belong to the Seed.
func (s *speaker) seedSpec(seed string, path ...string) {
	at, _, _ := unstructured.NestedFieldNoCopy(s.object.Object, path...)
	spec, _ := at.(map[string]any)
	for _, n := range targets(spec, gardencorev1beta1.GardenNamespace, ofSeedSpec) {
		s.ofSeed(n, seed)
	}
}

// gardenletSays includes the references of the future Seed, which are needed before it exists.
func gardenletSays(s *speaker) {
	if shoot, is := strings.CutPrefix(s.of.name, prefixSelfHosted); is {
		s.belongs(node{kindShoot, s.of.namespace, shoot})
		return
	}
	s.ofSeed(s.of, s.of.name)
	s.seedSpec(s.of.name, "spec", "config", "seedConfig", "spec")
	s.renews = renews(s.object)
	token := bootstrapToken(s.of)
	s.bootstraps = append(s.bootstraps, token)
	s.ofSeed(token, s.of.name)
}

// managedSeedSays states that a managed Seed and its bootstrap objects belong to the owners of its
// Shoot.
func managedSeedSays(s *speaker) {
	seed := s.of.name
	s.belongs(node{kindShoot, s.of.namespace, s.text("spec", "shoot", "name")})
	s.edges = append(s.edges, edge{node{kind: kindSeed, name: seed}, s.of})
	s.refers(reference{"spec.gardenlet.config.seedConfig.spec.backup.credentialsRef", kindSecret, asWritten})
	s.seedSpec(seed, "spec", "gardenlet", "config", "seedConfig", "spec")
	s.renews = renews(s.object)
	switch s.text("spec", "gardenlet", "bootstrap") {
	case string(seedmanagementv1alpha1.BootstrapToken):
		s.bootstraps = []node{bootstrapToken(s.of)}
	case string(seedmanagementv1alpha1.BootstrapServiceAccount):
		account := prefixBootstrap + seed
		s.bootstraps = []node{{kindServiceAccount, s.of.namespace, account}, {kind: kindClusterRoleBinding, name: prefixBootstrapper + s.of.namespace + ":" + account}}
	}
	for _, n := range s.bootstraps {
		s.edges = append(s.edges, edge{n, s.of})
	}
}

func renews(object *unstructured.Unstructured) bool {
	return object.GetAnnotations()[gardencorev1beta1.GardenerOperation] == "renew-kubeconfig"
}

// bootstrapToken is the Secret with the bootstrap token of the gardenlet of a ManagedSeed or
// Gardenlet.
func bootstrapToken(of node) node {
	sum := sha256.Sum256([]byte(of.namespace + "--" + of.name))
	return node{kindSecret, metav1.NamespaceSystem, prefixToken + hex.EncodeToString(sum[:])[:6]}
}
