// SPDX-License-Identifier: Apache-2.0

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
	kind          kind
	resource      schema.GroupVersionResource
	addStatements func(*relationBuilder)
}

// watchedKinds returns all kinds that are listed and watched.
func watchedKinds() []watchedKind {
	core, security, seedmanagement := gardencorev1beta1.SchemeGroupVersion, securityv1alpha1.SchemeGroupVersion, seedmanagementv1alpha1.SchemeGroupVersion
	return []watchedKind{
		{kindBackupBucket, core.WithResource("backupbuckets"), addBackupBucket},
		{kindBackupEntry, core.WithResource("backupentries"), addBackupEntry},
		{kindBastion, operationsv1alpha1.SchemeGroupVersion.WithResource("bastions"), addBastion},
		{kindCertificateSigningRequest, certificatesv1.SchemeGroupVersion.WithResource("certificatesigningrequests"), addSigningRequest},
		{kindControllerDeployment, corev1.SchemeGroupVersion.WithResource("controllerdeployments"), addControllerDeployment},
		{kindControllerInstallation, core.WithResource("controllerinstallations"), addControllerInstallation},
		{kindCredentialsBinding, security.WithResource("credentialsbindings"), (*relationBuilder).addBindingReferences},
		{kindGardenlet, seedmanagement.WithResource("gardenlets"), addGardenlet},
		{kindManagedSeed, seedmanagement.WithResource("managedseeds"), addManagedSeed},
		{kindNamespacedCloudProfile, core.WithResource("namespacedcloudprofiles"), addNamespacedCloudProfile},
		{kindProject, core.WithResource("projects"), addProject},
		{kindSecretBinding, core.WithResource("secretbindings"), (*relationBuilder).addBindingReferences},
		{kindSeed, core.WithResource("seeds"), addSeed},
		{kindShoot, core.WithResource("shoots"), addShoot},
	}
}

// relationBuilder builds the statement of an object.
type relationBuilder struct {
	*objectRelations
	object *unstructured.Unstructured
}

func relationsOf(k watchedKind, object *unstructured.Unstructured) *objectRelations {
	s := &relationBuilder{objectRelations: &objectRelations{subject: objectKey{k.kind, object.GetNamespace(), object.GetName()}}, object: object}
	k.addStatements(s)
	return s.objectRelations
}

// addReferences states that the objects in these fields belong to the owners of the object.
func (s *relationBuilder) addReferences(refs ...reference) {
	for _, n := range referencedObjects(s.object.Object, s.subject.namespace, refs) {
		s.edges = append(s.edges, edge{n, s.subject})
	}
}

// addOwnersOf states that the object belongs to the owners of another one, if that has a name.
func (s *relationBuilder) addOwnersOf(to objectKey) {
	if to.name != "" {
		s.edges = append(s.edges, edge{s.subject, to})
	}
}

// addSeedClaim states that an object belongs to a Seed, if that has a name.
func (s *relationBuilder) addSeedClaim(what objectKey, seed string) {
	if seed != "" {
		s.claims = append(s.claims, claim{what, seedOwner(seed)})
	}
}

func (s *relationBuilder) text(path ...string) string { return nestedString(s.object.Object, path...) }

// addBindingReferences adds the references of a SecretBinding or CredentialsBinding.
func (s *relationBuilder) addBindingReferences() {
	s.addReferences(reference{"secretRef", kindSecret, fieldNamespace}, reference{"credentialsRef", kindSecret, fieldNamespace})
}

func addBackupBucket(s *relationBuilder) {
	s.addReferences(reference{"spec.credentialsRef", kindSecret, fieldNamespace}, reference{"status.generatedSecretRef", kindSecret, fieldNamespace})
	s.addSeedClaim(s.subject, s.text("spec", "seedName"))
	s.addOwnersOf(objectKey{kindShoot, s.text("spec", "shootRef", "namespace"), s.text("spec", "shootRef", "name")})
}

// addBackupEntry states that the bucket belongs to the owners of the entry, too. So the target
// Seed of a moving Shoot can read the bucket of the previous Seed.
func addBackupEntry(s *relationBuilder) {
	s.addReferences(reference{"spec.bucketName", kindBackupBucket, referrerNamespace})
	s.addSeedClaim(s.subject, s.text("spec", "seedName"))
	s.addSeedClaim(s.subject, s.text("status", "seedName"))
	s.addOwnersOf(objectKey{kindShoot, cmp.Or(s.text("spec", "shootRef", "namespace"), s.subject.namespace), cmp.Or(s.text("spec", "shootRef", "name"), shootOwnerName(s.object))})
}

func shootOwnerName(object *unstructured.Unstructured) string {
	for _, o := range object.GetOwnerReferences() {
		if o.Kind == "Shoot" && strings.HasPrefix(o.APIVersion, gardencorev1beta1.SchemeGroupVersion.Group+"/") {
			return o.Name
		}
	}
	return ""
}

func addBastion(s *relationBuilder) {
	s.addSeedClaim(s.subject, s.text("spec", "seedName"))
	s.addOwnersOf(objectKey{kindShoot, s.subject.namespace, s.text("spec", "shootRef", "name")})
}

// addSigningRequest lets a gardenlet see the result of its own request for a certificate.
func addSigningRequest(s *relationBuilder) {
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
	if seed, as, _ := who.seedRole(); as == roleGardenlet {
		s.addSeedClaim(s.subject, seed)
	}
	if shoot, as, _ := who.shootRole(); as == roleGardenlet {
		s.claims = append(s.claims, claim{s.subject, ownerKey(shoot)})
	}
}

func addControllerDeployment(s *relationBuilder) {
	s.addReferences(reference{"helm.ociRepository.pullSecretRef", kindSecret, gardenNamespace}, reference{"helm.ociRepository.caBundleSecretRef", kindSecret, gardenNamespace},
		reference{"resources[].resourceRef", kindSecret, gardenNamespace})
}

func addControllerInstallation(s *relationBuilder) {
	s.addReferences(reference{"spec.registrationRef", kindControllerRegistration, referrerNamespace}, reference{"spec.deploymentRef", kindControllerDeployment, referrerNamespace},
		reference{"spec.resourceRefs[]", kindSecret, fieldNamespace})
	s.addSeedClaim(s.subject, s.text("spec", "seedRef", "name"))
	s.addOwnersOf(objectKey{kindShoot, s.text("spec", "shootRef", "namespace"), s.text("spec", "shootRef", "name")})
}

func addNamespacedCloudProfile(s *relationBuilder) {
	s.addReferences(reference{"spec.parent", kindCloudProfile, referrerNamespace})
}

func addProject(s *relationBuilder) {
	s.addOwnersOf(objectKey{kind: kindNamespace, name: s.text("spec", "namespace")})
}

// seedSpecReferences are the references of a Seed.
var seedSpecReferences = []reference{
	{"backup.credentialsRef", kindSecret, fieldNamespace},
	{"dns.provider.credentialsRef", kindSecret, fieldNamespace},
	{"dns.provider.secretRef", kindSecret, fieldNamespace},
	{"dns.internal.credentialsRef", kindSecret, fieldNamespace},
	{"dns.defaults[].credentialsRef", kindSecret, fieldNamespace},
	{"resources[].resourceRef", kindSecret, gardenNamespace},
}

// addSeed states that referenced objects belong to the Seed, but not to a managed one's parent.
func addSeed(s *relationBuilder) {
	s.addSeedSpecClaims(s.subject.name, "spec")
	if at, err := time.Parse(time.RFC3339, s.text("status", "clientCertificateExpirationTimestamp")); err == nil {
		s.expires = at
	}
}

// addSeedSpecClaims states that the references in a Seed's spec at a path belong to the Seed.
func (s *relationBuilder) addSeedSpecClaims(seed string, path ...string) {
	at, _, _ := unstructured.NestedFieldNoCopy(s.object.Object, path...)
	spec, _ := at.(map[string]any)
	for _, n := range referencedObjects(spec, gardencorev1beta1.GardenNamespace, seedSpecReferences) {
		s.addSeedClaim(n, seed)
	}
}

// addGardenlet includes the references of the future Seed, which are needed before it exists.
func addGardenlet(s *relationBuilder) {
	if shoot, is := strings.CutPrefix(s.subject.name, prefixSelfHosted); is {
		s.addOwnersOf(objectKey{kindShoot, s.subject.namespace, shoot})
		return
	}
	s.addSeedClaim(s.subject, s.subject.name)
	s.addSeedSpecClaims(s.subject.name, "spec", "config", "seedConfig", "spec")
	s.isRenewalRequested = isRenewalRequested(s.object)
	token := bootstrapTokenKey(s.subject)
	s.bootstraps = append(s.bootstraps, token)
	s.addSeedClaim(token, s.subject.name)
}

// addManagedSeed states that a managed Seed and its bootstrap objects belong to the owners of its
// Shoot.
func addManagedSeed(s *relationBuilder) {
	seed := s.subject.name
	s.addOwnersOf(objectKey{kindShoot, s.subject.namespace, s.text("spec", "shoot", "name")})
	s.edges = append(s.edges, edge{objectKey{kind: kindSeed, name: seed}, s.subject})
	s.addReferences(reference{"spec.gardenlet.config.seedConfig.spec.backup.credentialsRef", kindSecret, fieldNamespace})
	s.addSeedSpecClaims(seed, "spec", "gardenlet", "config", "seedConfig", "spec")
	s.isRenewalRequested = isRenewalRequested(s.object)
	switch s.text("spec", "gardenlet", "bootstrap") {
	case string(seedmanagementv1alpha1.BootstrapToken):
		s.bootstraps = []objectKey{bootstrapTokenKey(s.subject)}
	case string(seedmanagementv1alpha1.BootstrapServiceAccount):
		account := prefixBootstrap + seed
		s.bootstraps = []objectKey{{kindServiceAccount, s.subject.namespace, account}, {kind: kindClusterRoleBinding, name: prefixBootstrapper + s.subject.namespace + ":" + account}}
	}
	for _, n := range s.bootstraps {
		s.edges = append(s.edges, edge{n, s.subject})
	}
}

func isRenewalRequested(object *unstructured.Unstructured) bool {
	return object.GetAnnotations()[gardencorev1beta1.GardenerOperation] == "renew-kubeconfig"
}

// bootstrapTokenKey is the Secret with the bootstrap token of the gardenlet of a ManagedSeed or
// Gardenlet.
func bootstrapTokenKey(of objectKey) objectKey {
	sum := sha256.Sum256([]byte(of.namespace + "--" + of.name))
	return objectKey{kindSecret, metav1.NamespaceSystem, prefixBootstrapToken + hex.EncodeToString(sum[:])[:6]}
}
