// SPDX-License-Identifier: Apache-2.0

package landscape

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/keyutil"
	"sigs.k8s.io/yaml"

	"github.com/pergola-dev/pergola/controllers/landscape"
)

type object = unstructured.Unstructured

var listOptions = metav1.ListOptions{}

// testUnreachableSeed stops the API server of the seed: garden and virtual garden still converge,
// and the next run completes.
func testUnreachableSeed(t *testing.T, s *testStage) {
	server, err := env.findProcess(seedCluster, "kube-apiserver")
	require.NoError(t, err)
	require.NoError(t, server.Kill())
	s.eventTTL("4h", "5h")

	problems, _, c := s.applyExpectingError()
	requireProblem(t, problems, "seed local", "cluster local", "Unreachable", "check that the API server runs")
	requireProblem(t, problems, "shoot garden-local/local: not reconciled, because seed local is not")
	assert.Len(t, problems, 2)
	assert.ElementsMatch(t, []string{"configured Garden local", "configured Deployment garden/virtual-garden-kube-apiserver", "configured Shoot garden-local/local"}, c.writtenObjects())
	status := c.Status(testContext(t), landscape.StatusOptions{})
	assert.True(t, status.Owners[0].Ready, "the Garden is")
	assert.False(t, status.Ready)
	c.Close()

	run := s.cli("apply", s.dir)
	assert.Equal(t, 2, run.run(t))
	for _, text := range []string{"cluster local", "Unreachable", "apply again"} {
		assert.Contains(t, run.stderr.String(), text)
	}

	require.NoError(t, env.up())
	_, c = s.mustApply()
	assert.ElementsMatch(t, []string{"configured Cluster shoot--local--local", "configured Deployment shoot--local--local/kube-apiserver"}, c.writtenObjects())
}

// testExpiredCertificate: an expired client certificate is reported as such.
func testExpiredCertificate(t *testing.T, s *testStage) {
	expired := rest.CopyConfig(env.configs[seedCluster])
	expired.CertData, expired.KeyData = s.certificate(seedCluster, "late", -time.Hour)
	expired.CertFile, expired.KeyFile = "", ""
	problems, _, _ := s.applyExpectingError(withConfig(seedCluster, expired))
	requireProblem(t, problems, "seed local", "cluster local", "CertificateExpired", `"late" expired on`, "issue a new kubeconfig")
}

// certificate signs a client certificate with the CA of a local cluster.
func (s *testStage) certificate(cluster, name string, valid time.Duration) (certificate, key []byte) {
	s.Helper()
	folder := filepath.Join(env.State, "pki", cluster)
	caPEM, err := os.ReadFile(filepath.Join(folder, "ca.crt"))
	require.NoError(s, err)
	block, _ := pem.Decode(caPEM)
	require.NotNil(s, block)
	ca, err := x509.ParseCertificate(block.Bytes)
	require.NoError(s, err)
	caKey, err := keyutil.PrivateKeyFromFile(filepath.Join(folder, "ca.key"))
	require.NoError(s, err)
	own, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(s, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name, Organization: []string{"system:masters"}},
		NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: time.Now().Add(valid),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, ca, own.Public(), caKey)
	require.NoError(s, err)
	rawKey, err := x509.MarshalECPrivateKey(own)
	require.NoError(s, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: rawKey})
}

// testObjectFaults has three objects that cannot be applied: each is reported with its cause, and
// all others are applied.
func testObjectFaults(t *testing.T, s *testStage) {
	// An undefined kind, in a bundle of the seed.
	undoKind := s.addFileWithUndo("components/seed/etcd-druid/kustomization.yaml", `
resources: [unknown.yaml]
`)
	undoFile := s.addFileWithUndo("components/seed/etcd-druid/unknown.yaml", `
apiVersion: example.com/v1
kind: Unknown
metadata: {name: nobody-knows-me, namespace: garden}
`)
	// A field of a Deployment that another manager owns before Git declares it.
	undoWish := s.addFileWithUndo("components/garden/istio/kustomization.yaml", `
patches:
- target: {kind: Deployment, name: istiod}
  patch: |
    apiVersion: apps/v1
    kind: Deployment
    metadata: {name: istiod}
    spec: {progressDeadlineSeconds: 500}
`)
	deployments := s.resource(runtimeCluster, "apps/v1", "deployments", "istio-system")
	_, err := deployments.Apply(testContext(t), "istiod", s.object(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: istiod, namespace: istio-system}
spec: {progressDeadlineSeconds: 700}
`), metav1.ApplyOptions{FieldManager: "somebody-else", Force: true})
	require.NoError(t, err)
	// A policy that denies a required write.
	undoDeny := s.denyByPolicy("no-scheduler", "deployments", "object.metadata.name == 'kube-scheduler' && object.metadata.namespace == 'shoot--local--local'")
	schedulers := s.resource(seedCluster, "apps/v1", "deployments", "shoot--local--local")
	s.delete(schedulers, "kube-scheduler")
	s.waitForPolicy(schedulers)
	s.delete(s.resource(runtimeCluster, "apps/v1", "deployments", "garden"), "vpa-updater")

	problems, _, c := s.applyExpectingError()
	requireProblem(t, problems, "seed local", "cluster local", "Unknown garden/nobody-knows-me", "NoKind", "install the CustomResourceDefinition")
	requireProblem(t, problems, "garden local", "cluster runtime", "Deployment istio-system/istiod", "Conflict", "spec.progressDeadlineSeconds", "somebody-else")
	assert.Contains(t, c.writtenObjects(), "created Deployment garden/vpa-updater", "others go on")
	c.Close()

	// With the seed repaired, its shoot is reconciled.
	undoWish()
	undoFile()
	undoKind()
	_, err = deployments.Apply(testContext(t), "istiod", s.object(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: istiod, namespace: istio-system}
`), metav1.ApplyOptions{FieldManager: "somebody-else", Force: true})
	require.NoError(t, err)
	problems, _, c = s.applyExpectingError()
	requireProblem(t, problems, "shoot garden-local/local", "cluster local", "Deployment shoot--local--local/kube-scheduler", "WebhookDenied", "no-scheduler")
	assert.Len(t, problems, 1)
	c.Close()
	undoDeny()
	eventually(t, "the policy to be gone", func() bool {
		_, err := schedulers.Create(testContext(t), s.deployment("kube-scheduler", "shoot--local--local"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err == nil
	})
	s.mustApply()
}

func (s *testStage) object(text string) *unstructured.Unstructured {
	s.Helper()
	raw, err := yaml.YAMLToJSON([]byte(text))
	require.NoError(s, err)
	o := &unstructured.Unstructured{}
	require.NoError(s, o.UnmarshalJSON(raw))
	return o
}

func (s *testStage) deployment(name, namespace string) *unstructured.Unstructured {
	return s.object(strings.NewReplacer("NAMESPACE", namespace, "NAME", name).Replace(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: NAME, namespace: NAMESPACE}
spec:
  selector: {matchLabels: {app: NAME}}
  template:
    metadata: {labels: {app: NAME}}
    spec: {containers: [{name: app, image: registry.k8s.io/pause}]}
`))
}

// denyByPolicy makes the API server of the seed deny objects by a policy.
func (s *testStage) denyByPolicy(name, plural, when string) (undo func()) {
	s.Helper()
	policies := s.resource(seedCluster, "admissionregistration.k8s.io/v1", "validatingadmissionpolicies", "")
	bindings := s.resource(seedCluster, "admissionregistration.k8s.io/v1", "validatingadmissionpolicybindings", "")
	replace := strings.NewReplacer("NAME", name, "PLURAL", plural, "WHEN", when)
	_, err := policies.Create(testContext(s.T), s.object(replace.Replace(`
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: NAME}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: ["*"], apiVersions: ["*"], operations: [CREATE, UPDATE], resources: [PLURAL]}]
  validations: [{expression: "!(WHEN)", message: "nobody may have it"}]
`)), metav1.CreateOptions{})
	require.NoError(s, err)
	_, err = bindings.Create(testContext(s.T), s.object(replace.Replace(`
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: NAME}
spec: {policyName: NAME, validationActions: [Deny]}
`)), metav1.CreateOptions{})
	require.NoError(s, err)
	return func() {
		s.delete(bindings, name)
		s.delete(policies, name)
	}
}

// testMissingRights uses a kubeconfig with few write permissions. The message names the missing
// ones.
func testMissingRights(t *testing.T, s *testStage) {
	roles := s.resource(seedCluster, "rbac.authorization.k8s.io/v1", "clusterroles", "")
	bindings := s.resource(seedCluster, "rbac.authorization.k8s.io/v1", "clusterrolebindings", "")
	ctx := testContext(t)
	_, err := roles.Create(ctx, s.object(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: restricted}
rules:
- {apiGroups: ["*"], resources: ["*"], verbs: [get, list, watch]}
- {apiGroups: ["", coordination.k8s.io, resources.gardener.cloud], resources: ["*"], verbs: ["*"]}
- {nonResourceURLs: ["*"], verbs: [get]}
`), metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = bindings.Create(ctx, s.object(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: restricted}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: restricted}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: restricted}]
`), metav1.CreateOptions{})
	require.NoError(t, err)
	s.delete(s.resource(seedCluster, "apps/v1", "deployments", "garden"), "etcd-druid")

	restricted := rest.CopyConfig(env.configs[seedCluster])
	restricted.Impersonate.UserName = "restricted"
	problems, _, c := s.applyExpectingError(withConfig(seedCluster, restricted))
	requireProblem(t, problems, "seed local", "cluster local", "Deployment garden/etcd-druid", "Forbidden", `allow user "restricted" the verb patch on deployments.apps`)
	status := c.Status(testContext(t), landscape.StatusOptions{})
	for _, condition := range status.Owners[1].Conditions {
		assert.NotEqual(t, "True", string(condition.Status), "%s: %s", condition.Type, condition.Message)
	}
	c.Close()

	s.delete(bindings, "restricted")
	s.delete(roles, "restricted")
	_, c = s.mustApply()
	assert.Equal(t, []string{"created Deployment garden/etcd-druid"}, c.writtenObjects())
}

// waitForPolicy waits until a new policy is enforced.
func (s *testStage) waitForPolicy(deployments interface {
	Create(ctx context.Context, o *unstructured.Unstructured, options metav1.CreateOptions, subresources ...string) (*unstructured.Unstructured, error)
}) {
	s.Helper()
	eventually(s.T, "the policy to be in force", func() bool {
		_, err := deployments.Create(testContext(s.T), s.deployment("kube-scheduler", "shoot--local--local"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err != nil && strings.Contains(err.Error(), "nobody may have it")
	})
}
