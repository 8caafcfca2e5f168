package authorizer

import (
	"strings"
)

// ofShoot are the references of a Shoot. schemas/across has the fields that rules check. A test
// ensures that this list has all references of control planes.
var ofShoot = []reference{
	{"spec.credentialsBindingName", kindCredentialsBinding, inOwn},
	{"spec.secretBindingName", kindSecretBinding, inOwn},
	{"spec.cloudProfileName", kindCloudProfile, inOwn},
	{"spec.cloudProfile", kindCloudProfile, inOwn},
	{"spec.exposureClassName", kindExposureClass, inOwn},
	{"spec.dns.providers[].secretName", kindSecret, inOwn},
	{"spec.dns.providers[].credentialsRef", kindSecret, inOwn},
	{"spec.kubernetes.kubeAPIServer.admissionPlugins[].kubeconfigSecretName", kindSecret, inOwn},
	{"spec.kubernetes.kubeAPIServer.auditConfig.auditPolicy.configMapRef", kindConfigMap, inOwn},
	{"spec.kubernetes.kubeAPIServer.structuredAuthentication.configMapName", kindConfigMap, inOwn},
	{"spec.kubernetes.kubeAPIServer.structuredAuthorization.configMapName", kindConfigMap, inOwn},
	{"spec.kubernetes.kubeAPIServer.structuredAuthorization.kubeconfigs[].secretName", kindSecret, inOwn},
	{"spec.provider.workers[].controlPlane.backup.credentialsRef", kindSecret, inOwn},
	{"spec.resources[].resourceRef", kindSecret, inOwn},
}

// made are the objects that a gardenlet creates for a Shoot in its namespace, by their suffix after
// the name of the Shoot.
var made = []struct {
	kind   kind
	suffix string
}{
	{kindSecret, ".kubeconfig"}, {kindSecret, ".ca-cluster"}, {kindSecret, ".ssh-keypair"}, {kindSecret, ".ssh-keypair.old"}, {kindSecret, ".monitoring"},
	{kindInternalSecret, ".ca-client"},
	{kindConfigMap, ".ca-cluster"}, {kindConfigMap, ".ca-kubelet"},
	{kindShootState, ""},
}

// shootSays states that a Shoot belongs to its current and its next Seed; a self-hosted one belongs
// to itself.
func shootSays(s *speaker) {
	s.refers(ofShoot...)
	s.edges = append(s.edges, edge{node{kind: kindNamespace, name: s.of.namespace}, s.of})
	for _, m := range made {
		s.edges = append(s.edges, edge{node{m.kind, s.of.namespace, s.of.name + m.suffix}, s.of})
	}
	if s.object.GetAnnotations()["authentication.gardener.cloud/issuer"] == "managed" {
		s.edges = append(s.edges, edge{node{kind: kindIssuer, name: string(s.object.GetUID())}, s.of})
	}
	seed, before := s.text("spec", "seedName"), s.text("status", "seedName")
	s.ofSeed(s.of, seed)
	if before != seed {
		s.ofSeed(s.of, before)
	}
	selfHosted := false
	each(s.object.Object, strings.Split("spec.provider.workers[].controlPlane", "."), func(any) { selfHosted = true })
	if selfHosted {
		s.claims = append(s.claims, claim{s.of, owner(s.of)})
	}
}

// issuer is the node of a Secret in the namespace of issuers, which is named by project and UID.
func issuer(name string) node {
	_, uid, _ := strings.Cut(name, "--")
	return node{kind: kindIssuer, name: uid}
}
