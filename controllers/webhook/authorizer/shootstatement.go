// SPDX-License-Identifier: Apache-2.0

package authorizer

import (
	"strings"
)

// shootReferences are the references of a Shoot. schemas/crosscheck has the fields that rules
// check. A test ensures that this list has all references of control planes.
var shootReferences = []reference{
	{"spec.credentialsBindingName", kindCredentialsBinding, referrerNamespace},
	{"spec.secretBindingName", kindSecretBinding, referrerNamespace},
	{"spec.cloudProfileName", kindCloudProfile, referrerNamespace},
	{"spec.cloudProfile", kindCloudProfile, referrerNamespace},
	{"spec.exposureClassName", kindExposureClass, referrerNamespace},
	{"spec.dns.providers[].secretName", kindSecret, referrerNamespace},
	{"spec.dns.providers[].credentialsRef", kindSecret, referrerNamespace},
	{"spec.kubernetes.kubeAPIServer.admissionPlugins[].kubeconfigSecretName", kindSecret, referrerNamespace},
	{"spec.kubernetes.kubeAPIServer.auditConfig.auditPolicy.configMapRef", kindConfigMap, referrerNamespace},
	{"spec.kubernetes.kubeAPIServer.structuredAuthentication.configMapName", kindConfigMap, referrerNamespace},
	{"spec.kubernetes.kubeAPIServer.structuredAuthorization.configMapName", kindConfigMap, referrerNamespace},
	{"spec.kubernetes.kubeAPIServer.structuredAuthorization.kubeconfigs[].secretName", kindSecret, referrerNamespace},
	{"spec.provider.workers[].controlPlane.backup.credentialsRef", kindSecret, referrerNamespace},
	{"spec.resources[].resourceRef", kindSecret, referrerNamespace},
}

// gardenletObjects are the objects that a gardenlet creates for a Shoot in its namespace, by their
// suffix after the name of the Shoot.
var gardenletObjects = []struct {
	kind   kind
	suffix string
}{
	{kindSecret, ".kubeconfig"}, {kindSecret, ".ca-cluster"}, {kindSecret, ".ssh-keypair"}, {kindSecret, ".ssh-keypair.old"}, {kindSecret, ".monitoring"},
	{kindInternalSecret, ".ca-client"},
	{kindConfigMap, ".ca-cluster"}, {kindConfigMap, ".ca-kubelet"},
	{kindShootState, ""},
}

// addShoot states that a Shoot belongs to its current and its next Seed; a self-hosted one belongs
// to itself.
func addShoot(s *relationBuilder) {
	s.addReferences(shootReferences...)
	s.edges = append(s.edges, edge{objectKey{kind: kindNamespace, name: s.subject.namespace}, s.subject})
	for _, m := range gardenletObjects {
		s.edges = append(s.edges, edge{objectKey{m.kind, s.subject.namespace, s.subject.name + m.suffix}, s.subject})
	}
	if s.object.GetAnnotations()["authentication.gardener.cloud/issuer"] == "managed" {
		s.edges = append(s.edges, edge{objectKey{kind: kindIssuer, name: string(s.object.GetUID())}, s.subject})
	}
	seed, before := s.text("spec", "seedName"), s.text("status", "seedName")
	s.addSeedClaim(s.subject, seed)
	if before != seed {
		s.addSeedClaim(s.subject, before)
	}
	selfHosted := false
	visitPath(s.object.Object, strings.Split("spec.provider.workers[].controlPlane", "."), func(any) { selfHosted = true })
	if selfHosted {
		s.claims = append(s.claims, claim{s.subject, ownerKey(s.subject)})
	}
}

// issuerKey is the node of a Secret in the namespace of issuers, which is named by project and UID.
func issuerKey(name string) objectKey {
	_, uid, _ := strings.Cut(name, "--")
	return objectKey{kind: kindIssuer, name: uid}
}
