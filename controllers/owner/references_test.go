// SPDX-License-Identifier: Apache-2.0

package owner

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	securityv1alpha1 "github.com/pergola-dev/pergola/api/security/v1alpha1"
	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/controllers/permit"
	"github.com/pergola-dev/pergola/controllers/references"
	"github.com/pergola-dev/pergola/render"
)

// referringSite returns a Shoot that refers to a ConfigMap and a Secret, in the namespace of
// another project's site.
func referringSite(t *testing.T, fields string) *testSite {
	s := newSite(t)
	o := s.run.owner
	project := s.ns + "-project"
	_, err := s.resource("namespaces", "").Create(s.ctx, s.object("{apiVersion: v1, kind: Namespace, metadata: {name: NS-project}}"), metav1.CreateOptions{})
	require.NoError(t, err)
	o.Input.Owner = render.Owner{Kind: Shoot, Namespace: project, Name: "s", ControlPlaneNamespace: s.ns}
	s.setReferences(fields)
	return s
}

// setReferences replaces the Shoot's kubeAPIServer.
func (s *testSite) setReferences(fields string) {
	s.run.owner.Input.Objects = map[string]map[string]any{Shoot: s.object("{apiVersion: v1, kind: Shoot, spec: {kubernetes: {kubeAPIServer: {" + fields + "}}}}").Object}
}

func (s *testSite) applyReferred(name, kind, data string) {
	s.Helper()
	plural := map[string]string{"ConfigMap": "configmaps", "Secret": "secrets"}[kind]
	o := s.object("{apiVersion: v1, kind: " + kind + ", metadata: {name: " + name + ", namespace: NS-project}, data: " + data + "}")
	_, err := s.resource(plural, s.ns+"-project").Apply(s.ctx, name, o, metav1.ApplyOptions{FieldManager: "user", Force: true})
	require.NoError(s, err)
}

// referenceCopies reads the references and returns their bundle.
func (s *testSite) referenceCopies() (render.Bundle, bool) {
	s.Helper()
	o := s.run.owner
	require.NoError(s, s.run.reconciler.readReferences(s.ctx, o))
	result, err := o.withReferenceCopies(render.Result{})
	require.NoError(s, err)
	o.state.bundles = result.Bundles
	if len(result.Bundles) == 0 {
		return render.Bundle{}, false
	}
	return result.Bundles[0], true
}

func (s *testSite) dataValue(plural, name, key string) string {
	s.Helper()
	o, err := s.resource(plural, s.ns).Get(s.ctx, name, metav1.GetOptions{})
	require.NoError(s, err)
	value, _ := o.Object["data"].(map[string]any)[key].(string)
	return value
}

const (
	bothReferences = "auditConfig: {auditPolicy: {configMapRef: {name: policy}}}, structuredAuthorization: {configMapName: authorization, kubeconfigs: [{authorizerName: one, secretName: webhook}]}"
	nonePolicy     = `{policy: "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: None}]"}`
	requestPolicy  = `{policy: "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Request}]"}`
	authorization  = `{config.yaml: "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\nauthorizers: [{type: Webhook, name: one, webhook: {timeout: 3s, subjectAccessReviewVersion: v1, matchConditionSubjectAccessReviewVersion: v1, failurePolicy: NoOpinion, authorizedTTL: 1s, unauthorizedTTL: 1s}}]"}`
)

// plainKubeconfig returns a kubeconfig with this context.
func plainKubeconfig(name string) string {
	return "{apiVersion: v1, kind: Config, current-context: " + name + "}"
}

func kubeconfigOf(name string) string {
	return base64.StdEncoding.EncodeToString([]byte(plainKubeconfig(name)))
}

// TestReferencesAreCopied checks that referred objects are copied to a Shoot's control plane,
// follow their originals, and are deleted without references.
func TestReferencesAreCopied(t *testing.T) {
	s := referringSite(t, bothReferences)
	first, second := kubeconfigOf("first"), kubeconfigOf("second")
	s.applyReferred("policy", "ConfigMap", nonePolicy)
	b, _ := s.referenceCopies()
	require.ErrorContains(t, s.run.checkReferences(false), "object not found: Secret "+s.ns+"-project/webhook in cluster local (spec.kubernetes.kubeAPIServer.structuredAuthorization.kubeconfigs[0].secretName)")
	require.ErrorContains(t, s.run.checkReferences(false), "object not found: ConfigMap "+s.ns+"-project/authorization")
	require.NotContains(t, s.run.checkReferences(false).Error(), "policy")
	_, err := s.apply(b)
	require.ErrorContains(t, err, "not known yet: ConfigMap "+s.ns+"-project/authorization, Secret "+s.ns+"-project/webhook")
	assert.Empty(t, s.uids("configmaps", "secrets"))

	s.applyReferred("webhook", "Secret", "{kubeconfig: "+first+"}")
	s.applyReferred("authorization", "ConfigMap", authorization)
	b, _ = s.referenceCopies()
	require.NoError(t, s.run.checkReferences(false))
	assert.Equal(t, map[string]change.Action{"ref-policy": change.Create, "ref-webhook": change.Create, "ref-authorization": change.Create}, s.plan(b))
	assert.Equal(t, map[string]apply.Action{"ref-policy": apply.Created, "ref-webhook": apply.Created, "ref-authorization": apply.Created}, s.mustApply(b))
	assert.Equal(t, first, s.dataValue("secrets", "ref-webhook", "kubeconfig"))
	assert.Contains(t, s.dataValue("configmaps", "ref-policy", "policy"), "level: None")

	// Change the content of both.
	s.applyReferred("policy", "ConfigMap", requestPolicy)
	s.applyReferred("webhook", "Secret", "{kubeconfig: "+second+"}")
	b, _ = s.referenceCopies()
	items, _, err := s.run.reconciler.planBundle(s.ctx, s.run.owner, b, &servingCache{})
	require.NoError(t, err)
	for _, item := range items {
		for _, field := range item.Fields {
			assert.NotContains(t, []any{field.Old, field.New}, second)
		}
	}
	s.mustApply(b)
	assert.Equal(t, second, s.dataValue("secrets", "ref-webhook", "kubeconfig"))
	assert.Contains(t, s.dataValue("configmaps", "ref-policy", "policy"), "level: Request")

	// Remove one reference, with a gate that holds every deletion.
	s.setReferences("auditConfig: {auditPolicy: {configMapRef: {name: policy}}}")
	s.run.reconciler.Gate = permit.Gate{Reviewed: func(string, change.Ref) bool { return false }}
	b, _ = s.referenceCopies()
	s.mustApply(b)
	uids := s.uids("configmaps", "secrets")
	assert.Len(t, uids, 1)
	assert.Contains(t, uids, "configmaps/ref-policy")

	// Remove the last reference.
	s.setReferences("")
	_, has := s.referenceCopies()
	assert.False(t, has)
	assert.Empty(t, s.run.report.Held)
}

// TestCredentialsAreCopied checks that the Secret behind a Shoot's binding is copied under the name
// that extensions know. The copy follows its original, triggers extensions, and is repaired; no
// output shows its content.
func TestCredentialsAreCopied(t *testing.T) {
	s := referringSite(t, "")
	o := s.run.owner
	o.Input.Objects = map[string]map[string]any{Shoot: s.object("{apiVersion: v1, kind: Shoot, spec: {credentialsBindingName: b, provider: {workers: [{name: a}]}}}").Object}
	first, second := base64.StdEncoding.EncodeToString([]byte("first account")), base64.StdEncoding.EncodeToString([]byte("second account"))
	b, _ := s.referenceCopies()
	require.ErrorContains(t, s.run.checkReferences(false), "object not found: CredentialsBinding "+s.ns+"-project/b in cluster local (spec.credentialsBindingName)")
	_, err := s.apply(b)
	require.ErrorContains(t, err, "not known yet: CredentialsBinding "+s.ns+"-project/b")

	binding := s.object("{apiVersion: security.gardener.cloud/v1alpha1, kind: CredentialsBinding, metadata: {name: b, namespace: NS-project}, provider: {type: local}, credentialsRef: {apiVersion: v1, kind: Secret, name: account, namespace: NS-project}}")
	_, err = s.api.Resource(securityv1alpha1.SchemeGroupVersion.WithResource("credentialsbindings")).Namespace(s.ns+"-project").Create(s.ctx, binding, metav1.CreateOptions{})
	require.NoError(t, err)
	s.referenceCopies()
	require.ErrorContains(t, s.run.checkReferences(false), "object not found: Secret "+s.ns+"-project/account in cluster local (credentialsRef of CredentialsBinding "+s.ns+"-project/b)")

	s.applyReferred("account", "Secret", "{key: "+first+"}")
	b, _ = s.referenceCopies()
	require.NoError(t, s.run.checkReferences(false))
	assert.Equal(t, map[string]apply.Action{"cloudprovider": apply.Created}, s.mustApply(b))
	assert.Equal(t, first, s.dataValue("secrets", "cloudprovider", "key"))
	infrastructure := s.object("{apiVersion: extensions.gardener.cloud/v1alpha1, kind: Infrastructure, metadata: {name: s, namespace: NS}, spec: {type: local, region: local, secretRef: {name: cloudprovider, namespace: NS}}}")
	before, err := s.run.requestDigest(s.ctx, o.Local, infrastructure)
	require.NoError(t, err)

	s.applyReferred("account", "Secret", "{key: "+second+"}")
	b, _ = s.referenceCopies()
	items, _, err := s.run.reconciler.planBundle(s.ctx, o, b, &servingCache{})
	require.NoError(t, err)
	require.Len(t, items, 1)
	shown, err := json.Marshal(items)
	require.NoError(t, err)
	for _, content := range []string{first, second, "first account", "second account"} {
		assert.NotContains(t, string(shown), content)
	}
	s.mustApply(b)
	assert.Equal(t, second, s.dataValue("secrets", "cloudprovider", "key"))
	after, err := s.run.requestDigest(s.ctx, o.Local, infrastructure)
	require.NoError(t, err)
	assert.NotEqual(t, before, after, "extensions are asked again")

	require.NoError(t, s.resource("secrets", s.ns).Delete(s.ctx, "cloudprovider", metav1.DeleteOptions{}))
	require.Eventually(t, func() bool {
		return o.Local.Cached(apply.Ref{APIVersion: "v1", Kind: "Secret", Namespace: s.ns, Name: "cloudprovider"}) == nil
	}, 10*time.Second, 10*time.Millisecond)
	assert.Equal(t, map[string]apply.Action{"cloudprovider": apply.Created}, s.mustApply(b))
}

// TestCopiesAreRepaired checks that a changed or deleted copy is restored.
func TestCopiesAreRepaired(t *testing.T) {
	s := referringSite(t, "auditConfig: {auditPolicy: {configMapRef: {name: policy}}}")
	s.applyReferred("policy", "ConfigMap", nonePolicy)
	b, _ := s.referenceCopies()
	s.mustApply(b)
	events := make(chan apply.DriftEvent, 10)
	watching, stop := context.WithCancel(s.ctx)
	defer stop()
	go s.run.reconciler.Engine.WatchDrift(watching, s.run.owner.Local, func(e apply.DriftEvent) { events <- e })
	_, err := s.resource("configmaps", s.ns).Patch(s.ctx, "ref-policy", types.MergePatchType, []byte(`{"data":{"policy":"by hand"}}`), metav1.PatchOptions{FieldManager: "kubectl-edit"})
	require.NoError(t, err)
	event := <-events
	assert.Equal(t, "ref-policy", event.Ref.Name)
	_, found, err := s.run.reconciler.repair(s.ctx, s.run.owner, event.Set)
	require.NoError(t, err)
	assert.True(t, found)
	assert.Contains(t, s.dataValue("configmaps", "ref-policy", "policy"), "level: None")
}

// TestPlansExpectWhatGitDeclares checks that a plan uses the objects that Git declares, and live
// objects for the rest.
func TestPlansExpectWhatGitDeclares(t *testing.T) {
	s := referringSite(t, bothReferences)
	s.applyReferred("policy", "ConfigMap", nonePolicy)
	s.applyReferred("authorization", "ConfigMap", authorization)
	o := s.run.owner
	declared := s.object("{apiVersion: v1, kind: Secret, metadata: {name: webhook, namespace: NS-project}, stringData: {kubeconfig: '" + plainKubeconfig("first") + "'}}")
	policy := s.object("{apiVersion: v1, kind: ConfigMap, metadata: {name: policy, namespace: NS-project}, data: " + requestPolicy + "}")
	o.Input.DeclaredReferences = map[string]func() *unstructured.Unstructured{"Secret/webhook": declared.DeepCopy, "ConfigMap/policy": policy.DeepCopy}
	require.NoError(t, s.run.reconciler.readReferences(s.ctx, o))
	now, err := references.Facts(o.currentState().references)
	require.NoError(t, err)
	assert.Contains(t, now["ConfigMap/policy"].Data["policy"], "level: None")
	assert.NotContains(t, now, "Secret/webhook")

	expected, err := o.useDeclaredReferences()
	require.NoError(t, err)
	assert.Contains(t, expected["ConfigMap/policy"].Data["policy"], "level: Request")
	assert.Equal(t, now["ConfigMap/authorization"], expected["ConfigMap/authorization"])
	assert.Empty(t, expected["Secret/webhook"].Data, "no content of a Secret")
	require.NoError(t, s.run.checkReferences(false))

	// The declared facts equal the live ones.
	s.applyReferred("webhook", "Secret", "{kubeconfig: "+kubeconfigOf("first")+"}")
	require.NoError(t, s.run.reconciler.readReferences(s.ctx, o))
	now, err = references.Facts(o.currentState().references)
	require.NoError(t, err)
	assert.Equal(t, now["Secret/webhook"], expected["Secret/webhook"])
}

// TestOnlyReferenceCopiesPassTheGate checks that objects that only resemble copies are held like
// all others.
func TestOnlyReferenceCopiesPassTheGate(t *testing.T) {
	assert.True(t, isReferenceCopy(apply.Entry{Ref: apply.Ref{APIVersion: "v1", Kind: "Secret", Name: "ref-a"}, Labels: map[string]string{references.LabelCopy: "true"}}))
	assert.False(t, isReferenceCopy(apply.Entry{Ref: apply.Ref{APIVersion: "v1", Kind: "Secret", Name: "ref-a"}}))
	assert.False(t, isReferenceCopy(apply.Entry{Ref: apply.Ref{APIVersion: "v1", Kind: "PersistentVolumeClaim", Name: "ref-a"}, Labels: map[string]string{references.LabelCopy: "true"}}))
}
