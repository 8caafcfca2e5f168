// SPDX-License-Identifier: Apache-2.0

package authorizer

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/yaml"
)

var testTime = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

// landscape is a garden with the Seeds a and b and a Shoot on each. Another Shoot moves from a to
// b, managed Seed m is on a Shoot of a, and one Shoot is self-hosted.
const landscape = `
- {apiVersion: core.gardener.cloud/v1beta1, kind: Project, metadata: {name: one}, spec: {namespace: garden-one}}
- {apiVersion: core.gardener.cloud/v1beta1, kind: Project, metadata: {name: two}, spec: {namespace: garden-two}}
- apiVersion: core.gardener.cloud/v1beta1
  kind: Seed
  metadata: {name: a}
  spec:
    backup: {credentialsRef: {apiVersion: v1, kind: Secret, namespace: garden, name: backup-a}}
    dns:
      provider: {credentialsRef: {apiVersion: v1, kind: Secret, namespace: garden, name: dns-a}}
      internal: {credentialsRef: {apiVersion: v1, kind: Secret, namespace: garden, name: internal-a}}
      defaults: [{credentialsRef: {apiVersion: security.gardener.cloud/v1alpha1, kind: WorkloadIdentity, namespace: garden, name: default-a}}]
    resources: [{name: r, resourceRef: {apiVersion: v1, kind: ConfigMap, name: resource-a}}]
- {apiVersion: core.gardener.cloud/v1beta1, kind: Seed, metadata: {name: b}, spec: {backup: {credentialsRef: {apiVersion: v1, kind: Secret, namespace: garden, name: backup-b}}}}
- apiVersion: core.gardener.cloud/v1beta1
  kind: Shoot
  metadata: {name: s, namespace: garden-one, uid: 11111111-2222-3333-4444-555555555555, annotations: {authentication.gardener.cloud/issuer: managed}}
  spec:
    seedName: a
    credentialsBindingName: bound
    cloudProfile: {kind: NamespacedCloudProfile, name: own}
    exposureClassName: public
    dns: {providers: [{secretName: dns}, {credentialsRef: {apiVersion: security.gardener.cloud/v1alpha1, kind: WorkloadIdentity, name: dns-identity}}]}
    kubernetes:
      kubeAPIServer:
        admissionPlugins: [{name: P, kubeconfigSecretName: plugin}]
        auditConfig: {auditPolicy: {configMapRef: {name: audit}}}
        structuredAuthentication: {configMapName: authentication}
        structuredAuthorization: {configMapName: authorization, kubeconfigs: [{authorizerName: x, secretName: authorizer}]}
    resources:
    - {name: r, resourceRef: {apiVersion: v1, kind: Secret, name: resource}}
    - {name: c, resourceRef: {apiVersion: v1, kind: ConfigMap, name: resource}}
  status: {seedName: a}
- apiVersion: core.gardener.cloud/v1beta1
  kind: Shoot
  metadata: {name: s, namespace: garden-two}
  spec: {seedName: b, secretBindingName: bound, cloudProfileName: second, resources: [{name: r, resourceRef: {apiVersion: v1, kind: Secret, name: resource}}]}
- {apiVersion: core.gardener.cloud/v1beta1, kind: Shoot, metadata: {name: moving, namespace: garden-two}, spec: {seedName: b, cloudProfile: {name: second}}, status: {seedName: a}}
- {apiVersion: core.gardener.cloud/v1beta1, kind: Shoot, metadata: {name: m, namespace: garden}, spec: {seedName: a}}
- {apiVersion: core.gardener.cloud/v1beta1, kind: Shoot, metadata: {name: self, namespace: garden-one}, spec: {credentialsBindingName: self, cloudProfileName: third, provider: {workers: [{name: cp, controlPlane: {backup: {credentialsRef: {apiVersion: v1, kind: Secret, name: self-backup}}}}]}}}
- {apiVersion: core.gardener.cloud/v1beta1, kind: NamespacedCloudProfile, metadata: {name: own, namespace: garden-one}, spec: {parent: {kind: CloudProfile, name: first}}}
- {apiVersion: security.gardener.cloud/v1alpha1, kind: CredentialsBinding, metadata: {name: bound, namespace: garden-one}, credentialsRef: {apiVersion: v1, kind: Secret, name: cloud, namespace: garden-one}}
- {apiVersion: security.gardener.cloud/v1alpha1, kind: CredentialsBinding, metadata: {name: self, namespace: garden-one}, credentialsRef: {apiVersion: core.gardener.cloud/v1beta1, kind: InternalSecret, name: self-cloud, namespace: garden-one}}
- {apiVersion: core.gardener.cloud/v1beta1, kind: SecretBinding, metadata: {name: bound, namespace: garden-two}, secretRef: {name: cloud, namespace: garden-shared}}
- {apiVersion: core.gardener.cloud/v1beta1, kind: BackupBucket, metadata: {name: uid-a}, spec: {seedName: a, credentialsRef: {apiVersion: v1, kind: Secret, namespace: garden, name: backup-a}}, status: {generatedSecretRef: {namespace: garden, name: generated-bucket-uid-a}}}
- {apiVersion: core.gardener.cloud/v1beta1, kind: BackupBucket, metadata: {name: uid-b}, spec: {seedName: b, credentialsRef: {apiVersion: v1, kind: Secret, namespace: garden, name: backup-b}}}
- {apiVersion: core.gardener.cloud/v1beta1, kind: BackupBucket, metadata: {name: uid-self}, spec: {shootRef: {namespace: garden-one, name: self}}}
- {apiVersion: core.gardener.cloud/v1beta1, kind: BackupEntry, metadata: {name: entry-s, namespace: garden-one}, spec: {seedName: a, bucketName: uid-a}}
- {apiVersion: core.gardener.cloud/v1beta1, kind: BackupEntry, metadata: {name: entry-s, namespace: garden-two}, spec: {seedName: b, bucketName: uid-b}}
- {apiVersion: core.gardener.cloud/v1beta1, kind: BackupEntry, metadata: {name: entry-self, namespace: garden-one, ownerReferences: [{apiVersion: core.gardener.cloud/v1beta1, kind: Shoot, name: self, uid: x}]}, spec: {bucketName: uid-self}}
- {apiVersion: operations.gardener.cloud/v1alpha1, kind: Bastion, metadata: {name: bastion, namespace: garden-one}, spec: {seedName: a, shootRef: {name: s}}}
- {apiVersion: operations.gardener.cloud/v1alpha1, kind: Bastion, metadata: {name: bastion, namespace: garden-two}, spec: {seedName: b, shootRef: {name: s}}}
- {apiVersion: operations.gardener.cloud/v1alpha1, kind: Bastion, metadata: {name: self, namespace: garden-one}, spec: {shootRef: {name: self}}}
- {apiVersion: core.gardener.cloud/v1, kind: ControllerDeployment, metadata: {name: deployment}, helm: {ociRepository: {pullSecretRef: {name: pull}, caBundleSecretRef: {name: bundle}}}, resources: [{name: r, resourceRef: {apiVersion: v1, kind: ConfigMap, name: values}}]}
- {apiVersion: core.gardener.cloud/v1, kind: ControllerDeployment, metadata: {name: other}, helm: {ociRepository: {pullSecretRef: {name: pull-other}}}}
- {apiVersion: core.gardener.cloud/v1beta1, kind: ControllerInstallation, metadata: {name: extension-a}, spec: {seedRef: {name: a}, registrationRef: {name: extension}, deploymentRef: {name: deployment}, resourceRefs: [{apiVersion: v1, kind: Secret, namespace: garden, name: values-1}]}}
- {apiVersion: core.gardener.cloud/v1beta1, kind: ControllerInstallation, metadata: {name: extension-b}, spec: {seedRef: {name: b}, registrationRef: {name: extension}, deploymentRef: {name: other}}}
- {apiVersion: core.gardener.cloud/v1beta1, kind: ControllerInstallation, metadata: {name: extension-self}, spec: {shootRef: {namespace: garden-one, name: self}, registrationRef: {name: extension}, deploymentRef: {name: deployment}}}
- apiVersion: seedmanagement.gardener.cloud/v1alpha1
  kind: ManagedSeed
  metadata: {name: m, namespace: garden}
  spec:
    shoot: {name: m}
    gardenlet: {bootstrap: BootstrapToken, config: {seedConfig: {spec: {backup: {credentialsRef: {apiVersion: v1, kind: Secret, namespace: garden, name: backup-m}}, dns: {provider: {credentialsRef: {apiVersion: v1, kind: Secret, namespace: garden, name: dns-m}}}}}}}
- {apiVersion: seedmanagement.gardener.cloud/v1alpha1, kind: Gardenlet, metadata: {name: a, namespace: garden}, spec: {config: {}}}
- {apiVersion: seedmanagement.gardener.cloud/v1alpha1, kind: Gardenlet, metadata: {name: b, namespace: garden}, spec: {config: {}}}
- {apiVersion: seedmanagement.gardener.cloud/v1alpha1, kind: Gardenlet, metadata: {name: self-hosted-shoot-self, namespace: garden-one}, spec: {config: {}}}
`

func parseObjects(t testing.TB, text string) []*unstructured.Unstructured {
	t.Helper()
	var contents []map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(text), &contents))
	out := make([]*unstructured.Unstructured, len(contents))
	for i := range contents {
		out[i] = &unstructured.Unstructured{Object: contents[i]}
	}
	return out
}

// kindOf returns the watched kind of an object.
func kindOf(t testing.TB, object *unstructured.Unstructured) watchedKind {
	t.Helper()
	for _, k := range watchedKinds() {
		if k.resource.GroupVersion() == object.GroupVersionKind().GroupVersion() && kindNames[k.kind] == object.GetKind() {
			return k
		}
	}
	require.Fail(t, "not watched: "+object.GroupVersionKind().String())
	return watchedKind{}
}

var kindNames = map[kind]string{
	kindBackupBucket: "BackupBucket", kindBackupEntry: "BackupEntry", kindBastion: "Bastion", kindCertificateSigningRequest: "CertificateSigningRequest",
	kindControllerDeployment: "ControllerDeployment", kindControllerInstallation: "ControllerInstallation", kindCredentialsBinding: "CredentialsBinding",
	kindGardenlet: "Gardenlet", kindManagedSeed: "ManagedSeed", kindNamespacedCloudProfile: "NamespacedCloudProfile", kindProject: "Project",
	kindSecretBinding: "SecretBinding", kindSeed: "Seed", kindShoot: "Shoot",
}

// newGardenHandler returns a handler that knows objects.
func newGardenHandler(t testing.TB, texts ...string) *Handler {
	t.Helper()
	h := newHandler(Options{Clock: clocktesting.NewFakePassiveClock(testTime)})
	for _, text := range texts {
		h.addObjects(t, text)
	}
	return h
}

func (h *Handler) addObjects(t testing.TB, text string) {
	t.Helper()
	for _, object := range parseObjects(t, text) {
		h.graph.setRelations(relationsOf(kindOf(t, object), object))
	}
}

// Users of requests.
var (
	gardenletA     = authorizationv1.SubjectAccessReviewSpec{User: "gardener.cloud:system:seed:a", Groups: []string{groupSeeds, "system:authenticated"}}
	gardenletB     = authorizationv1.SubjectAccessReviewSpec{User: "gardener.cloud:system:seed:b", Groups: []string{groupSeeds, "system:authenticated"}}
	gardenletM     = authorizationv1.SubjectAccessReviewSpec{User: "gardener.cloud:system:seed:m", Groups: []string{groupSeeds, "system:authenticated"}}
	extensionA     = serviceAccount("seed-a", "extension-x")
	gardenletSelf  = authorizationv1.SubjectAccessReviewSpec{User: "gardener.cloud:system:shoot:garden-one:self", Groups: []string{groupShoots}}
	gardenadmSelf  = authorizationv1.SubjectAccessReviewSpec{User: "gardener.cloud:gardenadm:shoot:garden-one:self", Groups: []string{groupShoots}}
	extensionSelf  = serviceAccount("garden-one", "extension-shoot--self--x")
	gardenletOther = authorizationv1.SubjectAccessReviewSpec{User: "gardener.cloud:system:shoot:garden-one:s", Groups: []string{groupShoots}}
)

func serviceAccount(namespace, name string) authorizationv1.SubjectAccessReviewSpec {
	return authorizationv1.SubjectAccessReviewSpec{User: "system:serviceaccount:" + namespace + ":" + name, Groups: []string{groupAccounts, groupAccounts + ":" + namespace, "system:authenticated"}}
}

func (h *Handler) decideFor(who authorizationv1.SubjectAccessReviewSpec, what authorizationv1.ResourceAttributes) (verdict, string) {
	who.ResourceAttributes = &what
	if shoot, _, _ := (requester{who.User, who.Groups}).shootRole(); shoot.name != "" {
		return h.decideForShoot(&who)
	}
	return h.decideForSeed(&who)
}
