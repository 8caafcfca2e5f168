// SPDX-License-Identifier: Apache-2.0

package garden

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	operatorv1alpha1 "github.com/pergola-dev/pergola/api/operator/v1alpha1"
)

// fakeGarden is a virtual garden with these objects.
type fakeGarden []*unstructured.Unstructured

func (g fakeGarden) Objects(_ context.Context, kind schema.GroupVersionKind, _ bool) ([]*unstructured.Unstructured, bool, error) {
	var out []*unstructured.Unstructured
	for _, o := range g {
		if o.GroupVersionKind() == kind {
			out = append(out, o)
		}
	}
	return out, true, nil
}

func (g fakeGarden) Get(_ context.Context, resource schema.GroupVersionResource, namespace, name string) (*unstructured.Unstructured, error) {
	for _, o := range g {
		if plural(o.GetKind()) == resource.Resource && o.GetNamespace() == namespace && o.GetName() == name {
			return o, nil
		}
	}
	return nil, apierrors.NewNotFound(resource.GroupResource(), name)
}

func (g fakeGarden) List(_ context.Context, resource schema.GroupVersionResource, namespace, selector string, _ int64) ([]unstructured.Unstructured, error) {
	by, err := labels.Parse(selector)
	if err != nil {
		return nil, err
	}
	var out []unstructured.Unstructured
	for _, o := range g {
		if plural(o.GetKind()) == resource.Resource && (namespace == "" || o.GetNamespace() == namespace) && by.Matches(labels.Set(o.GetLabels())) {
			out = append(out, *o)
		}
	}
	return out, nil
}

func plural(kind string) string {
	if kind == "BackupEntry" {
		return "backupentries"
	}
	return strings.ToLower(kind) + "s"
}

// denyNames is an authorizer that rejects the names it contains.
type denyNames map[string]bool

func (m denyNames) IsAllowed(_ string, _ []string, request *admissionv1.AdmissionRequest) (bool, string) {
	if m[request.Name] {
		return false, "it belongs to another"
	}
	return true, ""
}

func parseObject(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal([]byte(text), &o.Object), text)
	return o
}

const policy = `{"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [{"level": "Metadata"}]}`

var gardenManifests = []string{
	`{apiVersion: core.gardener.cloud/v1beta1, kind: Project, metadata: {name: one}, spec: {namespace: garden-one}}`,
	`{apiVersion: core.gardener.cloud/v1beta1, kind: Project, metadata: {name: ending, deletionTimestamp: "2026-11-23T12:00:00Z"}, spec: {namespace: garden-ending}}`,
	`{apiVersion: core.gardener.cloud/v1beta1, kind: Project, metadata: {name: empty, deletionTimestamp: "2026-11-23T12:00:00Z"}, spec: {namespace: garden-empty}}`,
	`{apiVersion: core.gardener.cloud/v1beta1, kind: Shoot, metadata: {name: s, namespace: garden-one}, spec: {seedName: a, kubernetes: {version: 1.34.1, kubeAPIServer: {
		admissionPlugins: [{name: P, kubeconfigSecretName: plugin}], auditConfig: {auditPolicy: {configMapRef: {name: audit}}},
		structuredAuthorization: {configMapName: authorization, kubeconfigs: [{authorizerName: x, secretName: webhook}]}}}}}`,
	`{apiVersion: core.gardener.cloud/v1beta1, kind: Shoot, metadata: {name: last, namespace: garden-ending}, spec: {seedName: a}}`,
	`{apiVersion: core.gardener.cloud/v1beta1, kind: Shoot, metadata: {name: moving, namespace: garden-one}, spec: {seedName: a}, status: {lastOperation: {type: Restore, state: Processing}}}`,
	`{apiVersion: v1, kind: ConfigMap, metadata: {name: audit, namespace: garden-one}, data: {policy: '` + policy + `'}}`,
	`{apiVersion: v1, kind: ConfigMap, metadata: {name: broken, namespace: garden-one}, data: {policy: '{"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [{"level": "Nonsense"}]}'}}`,
	`{apiVersion: v1, kind: Secret, metadata: {name: internal, namespace: garden, labels: {gardener.cloud/role: internal-domain}}}`,
	`{apiVersion: core.gardener.cloud/v1beta1, kind: SecretBinding, metadata: {name: b, namespace: garden-one}, provider: {type: "aws,gcp"}, secretRef: {name: cloud, namespace: garden-one}}`,
	`{apiVersion: security.gardener.cloud/v1alpha1, kind: CredentialsBinding, metadata: {name: c, namespace: garden-one}, provider: {type: local}, credentialsRef: {apiVersion: v1, kind: Secret, name: cloud, namespace: garden-one}}`,
	`{apiVersion: core.gardener.cloud/v1beta1, kind: BackupBucket, metadata: {name: mine}, spec: {seedName: a}}`,
	`{apiVersion: core.gardener.cloud/v1beta1, kind: BackupBucket, metadata: {name: theirs}, spec: {seedName: b}}`,
	`{apiVersion: core.gardener.cloud/v1beta1, kind: BackupEntry, metadata: {name: entry, namespace: garden-one}, spec: {seedName: a, bucketName: theirs}}`,
}

func webhooksFor(t *testing.T, log *slog.Logger, mode *operatorv1alpha1.ResourceAdmissionWebhookMode) func(path string, request *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	t.Helper()
	var g fakeGarden
	for _, text := range gardenManifests {
		g = append(g, parseObject(t, text))
	}
	served := New(Options{Garden: g, Authorizers: denyNames{"of-another": true}, Log: log, SizeLimits: &operatorv1alpha1.ResourceAdmissionConfiguration{
		OperationMode: mode, UnrestrictedSubjects: []rbacv1.Subject{{Kind: "User", Name: "free"}, {Kind: "ServiceAccount", Namespace: "garden", Name: "robot"}},
		Limits: []operatorv1alpha1.ResourceLimit{
			{APIGroups: []string{"core.gardener.cloud"}, APIVersions: []string{"*"}, Resources: []string{"shoots"}, Size: ptr.To(resource.MustParse("200"))},
			{APIGroups: []string{"core.gardener.cloud"}, APIVersions: []string{"v1beta1"}, Resources: []string{"projects"}, Count: ptr.To[int64](3)},
		},
	}})
	return func(path string, request *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		t.Helper()
		require.Contains(t, served, path)
		response, err := served[path](t.Context(), request)
		require.NoError(t, err)
		return response
	}
}

// newRequest returns a request with an operation and objects.
func newRequest(t *testing.T, operation admissionv1.Operation, now, before, user string, groups ...string) *admissionv1.AdmissionRequest {
	t.Helper()
	request := &admissionv1.AdmissionRequest{UID: "u", Operation: operation, UserInfo: authenticationv1.UserInfo{Username: user, Groups: groups}}
	for at, text := range map[*runtime.RawExtension]string{&request.Object: now, &request.OldObject: before} {
		if text == "" {
			continue
		}
		o := parseObject(t, text)
		raw, err := o.MarshalJSON()
		require.NoError(t, err)
		at.Raw = raw
		gvk := o.GroupVersionKind()
		request.Name, request.Namespace = o.GetName(), o.GetNamespace()
		request.Kind = metav1.GroupVersionKind{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind}
		request.Resource = metav1.GroupVersionResource{Group: gvk.Group, Version: gvk.Version, Resource: plural(gvk.Kind)}
	}
	return request
}

func kubeconfigSecret(name, user string) string {
	if user == "" {
		return `{apiVersion: v1, kind: Secret, metadata: {name: ` + name + `, namespace: garden-one}, data: {}}`
	}
	kubeconfig := `{apiVersion: v1, kind: Config, clusters: [{name: c, cluster: {server: "https://x"}}], users: [{name: u, user: ` + user + `}]}`
	return `{apiVersion: v1, kind: Secret, metadata: {name: ` + name + `, namespace: garden-one}, data: {kubeconfig: ` + base64.StdEncoding.EncodeToString([]byte(kubeconfig)) + `}}`
}

func signingRequestFor(t *testing.T, organization, name, usages string, more ...string) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: name, Organization: []string{organization}}, DNSNames: more}, key)
	require.NoError(t, err)
	text := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}))
	return `{apiVersion: certificates.k8s.io/v1, kind: CertificateSigningRequest, metadata: {generateName: seed-csr-}, spec: {request: ` + text + `, usages: ` + usages + `}}`
}

func TestWebhooks(t *testing.T) {
	const (
		create, update, remove = admissionv1.Create, admissionv1.Update, admissionv1.Delete
		somebody               = "alice"
		gardenlet, seeds       = "gardener.cloud:system:seed:a", "gardener.cloud:system:seeds"
		own                    = "gardener.cloud:system:shoot:garden-one:self"
		token                  = `{apiVersion: v1, kind: Secret, metadata: {name: bootstrap-token-abc, namespace: kube-system}, type: bootstrap.kubernetes.io/token, data: {usage-bootstrap-authentication: dHJ1ZQ==, usage-bootstrap-signing: dHJ1ZQ==`
		domain                 = `{apiVersion: v1, kind: Secret, metadata: {name: new, namespace: NS, labels: {gardener.cloud/role: internal-domain}, annotations: {dns.gardener.cloud/provider: local, dns.gardener.cloud/domain: DOMAIN}}}`
		published              = `{apiVersion: v1, kind: ConfigMap, metadata: {name: s.ca-cluster, namespace: garden-one, labels: {gardener.cloud/update-restriction: "true"}}, data: {ca.crt: CA}}`
		shoot                  = `{apiVersion: core.gardener.cloud/v1beta1, kind: Shoot, metadata: {name: new, namespace: garden-one}, spec: {kubernetes: {version: 1.34.1, kubeAPIServer: {auditConfig: {auditPolicy: {configMapRef: {name: NAME}}}}}}}`
		audit                  = `{apiVersion: v1, kind: ConfigMap, metadata: {name: audit, namespace: garden-one}, data: {policy: 'POLICY'}}`
		authorizers            = `{apiVersion: v1, kind: ConfigMap, metadata: {name: authorization, namespace: garden-one}, data: {config.yaml: '{"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthorizationConfiguration",
			"authorizers": [{"type": "Webhook", "name": "NAME", "webhook": {"authorizedTTL": "5m", "unauthorizedTTL": "30s", "timeout": "3s", "subjectAccessReviewVersion": "v1", "matchConditionSubjectAccessReviewVersion": "v1", "failurePolicy": "NoOpinion"}}]}'}}`
	)
	with := func(text string, pairs ...string) string { return strings.NewReplacer(pairs...).Replace(text) }
	client := `["digital signature", "client auth"]`
	ask := webhooksFor(t, nil, nil)
	for name, test := range map[string]struct {
		path    string
		request *admissionv1.AdmissionRequest
		says    string // text of a rejection; empty: allowed
	}{
		"namespace of a Project":              {PathNamespaceDeletion, newRequest(t, remove, "", `{apiVersion: v1, kind: Namespace, metadata: {name: garden-one}}`, somebody), `delete the Project instead`},
		"namespace with a Shoot":              {PathNamespaceDeletion, newRequest(t, remove, "", `{apiVersion: v1, kind: Namespace, metadata: {name: garden-ending}}`, somebody), `still has Shoots, such as "last"`},
		"namespace without Shoots":            {PathNamespaceDeletion, newRequest(t, remove, "", `{apiVersion: v1, kind: Namespace, metadata: {name: garden-empty}}`, somebody), ""},
		"namespace of nobody":                 {PathNamespaceDeletion, newRequest(t, remove, "", `{apiVersion: v1, kind: Namespace, metadata: {name: other}}`, somebody), ""},
		"namespace that goes":                 {PathNamespaceDeletion, newRequest(t, remove, "", `{apiVersion: v1, kind: Namespace, metadata: {name: garden-one, deletionTimestamp: "2026-11-23T12:00:00Z"}}`, somebody), ""},
		"kubeconfig with a token":             {PathKubeconfigSecrets, newRequest(t, create, kubeconfigSecret("k", "{token: t}"), "", somebody), ""},
		"kubeconfig with a program":           {PathKubeconfigSecrets, newRequest(t, create, kubeconfigSecret("k", "{exec: {apiVersion: client.authentication.k8s.io/v1, command: /bin/id}}"), "", somebody), "users[].user.exec"},
		"kubeconfig with a file":              {PathKubeconfigSecrets, newRequest(t, update, kubeconfigSecret("k", "{tokenFile: /etc/passwd}"), kubeconfigSecret("k", "{token: t}"), somebody), "refers to files"},
		"no kubeconfig":                       {PathKubeconfigSecrets, newRequest(t, create, `{apiVersion: v1, kind: Secret, metadata: {name: k, namespace: garden-one}, data: {kubeconfig: Og==}}`, "", somebody), "is not a kubeconfig"},
		"kubeconfig in use is emptied":        {PathKubeconfigSecretRefs, newRequest(t, update, kubeconfigSecret("plugin", ""), kubeconfigSecret("plugin", "{token: t}"), somebody), "Shoots use it (s)"},
		"kubeconfig of a webhook is emptied":  {PathKubeconfigSecretRefs, newRequest(t, update, kubeconfigSecret("webhook", ""), kubeconfigSecret("webhook", "{token: t}"), somebody), "Shoots use it (s)"},
		"kubeconfig of nobody is emptied":     {PathKubeconfigSecretRefs, newRequest(t, update, kubeconfigSecret("free", ""), kubeconfigSecret("free", "{token: t}"), somebody), ""},
		"kubeconfig in use changes":           {PathKubeconfigSecretRefs, newRequest(t, update, kubeconfigSecret("plugin", "{token: u}"), kubeconfigSecret("plugin", "{token: t}"), somebody), ""},
		"a second internal domain":            {PathInternalDomain, newRequest(t, create, with(domain, "NS", "garden", "DOMAIN", "x.example"), "", somebody), "garden/internal already"},
		"an internal domain of a seed":        {PathInternalDomain, newRequest(t, create, with(domain, "NS", "seed-a", "DOMAIN", "x.example"), "", somebody), ""},
		"an internal domain without one":      {PathInternalDomain, newRequest(t, create, with(domain, "NS", "seed-a", "DOMAIN", `""`), "", somebody), "dns.gardener.cloud/domain"},
		"an internal domain elsewhere":        {PathInternalDomain, newRequest(t, create, with(domain, "NS", "default", "DOMAIN", `""`), "", somebody), ""},
		"an internal domain in use changes":   {PathInternalDomain, newRequest(t, update, with(domain, "NS", "seed-a", "DOMAIN", "y.example"), with(domain, "NS", "seed-a", "DOMAIN", "x.example"), somebody), "cannot be changed: Shoots use it"},
		"an internal domain in use goes":      {PathInternalDomain, newRequest(t, remove, "", with(domain, "NS", "garden", "DOMAIN", "x.example"), somebody), "cannot be deleted: Shoots use it"},
		"an internal domain of no Shoot goes": {PathInternalDomain, newRequest(t, remove, "", with(domain, "NS", "seed-b", "DOMAIN", "x.example"), somebody), ""},
		"published, by somebody":              {PathUpdateRestriction, newRequest(t, update, with(published, "CA", "x"), with(published, "CA", "y"), somebody), "only gardenlets may change it"},
		"published, made by somebody":         {PathUpdateRestriction, newRequest(t, create, with(published, "CA", "x"), "", somebody), "only gardenlets may make it"},
		"published, written as it is":         {PathUpdateRestriction, newRequest(t, update, with(published, "CA", "x"), with(published, "CA", "x"), "gardener.cloud:pergola"), ""},
		"published, by a gardenlet":           {PathUpdateRestriction, newRequest(t, update, with(published, "CA", "x"), with(published, "CA", "y"), gardenlet, seeds), ""},
		"published, collected":                {PathUpdateRestriction, newRequest(t, remove, "", with(published, "CA", "x"), garbageCollector), ""},
		"published, deleted":                  {PathUpdateRestriction, newRequest(t, remove, "", with(published, "CA", "x"), somebody), "delete it"},
		"Shoot without policy":                {PathAuditPolicies, newRequest(t, create, with(shoot, "NAME", "missing"), "", somebody), `ConfigMap "missing" does not exist`},
		"Shoot with policy":                   {PathAuditPolicies, newRequest(t, create, with(shoot, "NAME", "audit"), "", somebody), ""},
		"Shoot with broken policy":            {PathAuditPolicies, newRequest(t, create, with(shoot, "NAME", "broken"), "", somebody), "rules[0].level"},
		"Shoot that stays":                    {PathAuditPolicies, newRequest(t, update, with(shoot, "NAME", "missing"), with(shoot, "NAME", "missing"), somebody), ""},
		"policy in use breaks":                {PathAuditPolicies, newRequest(t, update, with(audit, "POLICY", "{}"), with(audit, "POLICY", policy), somebody), "audit policy of Shoot garden-one/s is not valid"},
		"policy in use changes":               {PathAuditPolicies, newRequest(t, update, with(audit, "POLICY", policy), with(audit, "POLICY", "{}"), somebody), ""},
		"authorization of another webhook":    {PathAuthorization, newRequest(t, update, with(authorizers, "NAME", "y"), with(authorizers, "NAME", "x"), somebody), `authorizerName "y"`},
		"authorization of its webhook":        {PathAuthorization, newRequest(t, update, with(authorizers, "NAME", "x"), with(authorizers, "NAME", "y"), somebody), ""},
		"authentication of nobody":            {PathAuthentication, newRequest(t, update, with(audit, "POLICY", "{}"), with(audit, "POLICY", policy), somebody), ""},
		"a large Shoot":                       {PathResourceSize, newRequest(t, create, with(shoot, "NAME", strings.Repeat("n", 200)), "", somebody), "and the Garden allows 200"},
		"a large Shoot of a free one":         {PathResourceSize, newRequest(t, create, with(shoot, "NAME", strings.Repeat("n", 200)), "", "free"), ""},
		"a large Shoot of a robot":            {PathResourceSize, newRequest(t, create, with(shoot, "NAME", strings.Repeat("n", 200)), "", "system:serviceaccount:garden:robot"), ""},
		"a large ConfigMap":                   {PathResourceSize, newRequest(t, create, with(published, "CA", strings.Repeat("n", 500)), "", somebody), ""},
		"one Project more":                    {PathResourceSize, newRequest(t, create, `{apiVersion: core.gardener.cloud/v1beta1, kind: Project, metadata: {name: more}}`, "", somebody), "at most 3 projects"},
		"a Project changes":                   {PathResourceSize, newRequest(t, update, gardenManifests[0], gardenManifests[0], somebody), ""},
		"restricted: somebody":                {PathSeedRestriction, newRequest(t, create, kubeconfigSecret("of-another", "{token: t}"), "", somebody), ""},
		"restricted: of another":              {PathSeedRestriction, newRequest(t, create, kubeconfigSecret("of-another", "{token: t}"), "", gardenlet, seeds), "belongs to another"},
		"restricted: a liar":                  {PathSeedRestriction, newRequest(t, create, kubeconfigSecret("x", "{token: t}"), "", somebody, seeds), "must be named"},
		"restricted: no name":                 {PathSeedRestriction, newRequest(t, create, `{apiVersion: v1, kind: Secret, metadata: {generateName: x-, namespace: garden-one}}`, "", gardenlet, seeds), "must give its new objects a name"},
		"own bucket":                          {PathSeedRestriction, newRequest(t, create, `{apiVersion: core.gardener.cloud/v1beta1, kind: BackupBucket, metadata: {name: uid}, spec: {seedName: a}}`, "", gardenlet, seeds), ""},
		"bucket of another":                   {PathSeedRestriction, newRequest(t, create, `{apiVersion: core.gardener.cloud/v1beta1, kind: BackupBucket, metadata: {name: uid}, spec: {seedName: b}}`, "", gardenlet, seeds), `must be "a"`},
		"entry in own bucket":                 {PathSeedRestriction, newRequest(t, create, `{apiVersion: core.gardener.cloud/v1beta1, kind: BackupEntry, metadata: {name: e, namespace: garden-one}, spec: {seedName: a, bucketName: mine}}`, "", gardenlet, seeds), ""},
		"entry in another bucket":             {PathSeedRestriction, newRequest(t, create, `{apiVersion: core.gardener.cloud/v1beta1, kind: BackupEntry, metadata: {name: e, namespace: garden-one}, spec: {seedName: a, bucketName: theirs}}`, "", gardenlet, seeds), "BackupBucket theirs"},
		"entry in no bucket":                  {PathSeedRestriction, newRequest(t, create, `{apiVersion: core.gardener.cloud/v1beta1, kind: BackupEntry, metadata: {name: e, namespace: garden-one}, spec: {seedName: a, bucketName: none}}`, "", gardenlet, seeds), "BackupBucket"},
		"entry of a Shoot that moves":         {PathSeedRestriction, newRequest(t, create, `{apiVersion: core.gardener.cloud/v1beta1, kind: BackupEntry, metadata: {name: source-entry, namespace: garden-one, ownerReferences: [{apiVersion: core.gardener.cloud/v1beta1, kind: Shoot, name: moving, uid: u}]}, spec: {seedName: a, bucketName: theirs}}`, "", gardenlet, seeds), ""},
		"entry of a Shoot that stays":         {PathSeedRestriction, newRequest(t, create, `{apiVersion: core.gardener.cloud/v1beta1, kind: BackupEntry, metadata: {name: source-entry, namespace: garden-one, ownerReferences: [{apiVersion: core.gardener.cloud/v1beta1, kind: Shoot, name: s, uid: u}]}, spec: {seedName: a, bucketName: theirs}}`, "", gardenlet, seeds), "is not being restored"},
		"entry that is no copy":               {PathSeedRestriction, newRequest(t, create, `{apiVersion: core.gardener.cloud/v1beta1, kind: BackupEntry, metadata: {name: source-entry, namespace: garden-one, ownerReferences: [{apiVersion: core.gardener.cloud/v1beta1, kind: Shoot, name: moving, uid: u}]}, spec: {seedName: a, bucketName: mine}}`, "", gardenlet, seeds), "must be that of BackupEntry"},
		"bastion of another":                  {PathSeedRestriction, newRequest(t, create, `{apiVersion: operations.gardener.cloud/v1alpha1, kind: Bastion, metadata: {name: b, namespace: garden-one}, spec: {seedName: b, shootRef: {name: s}}}`, "", gardenlet, seeds), `must be "a"`},
		"own certificate":                     {PathSeedRestriction, newRequest(t, create, signingRequestFor(t, seeds, gardenlet, client), "", gardenlet, seeds), ""},
		"certificate of another":              {PathSeedRestriction, newRequest(t, create, signingRequestFor(t, seeds, "gardener.cloud:system:seed:b", client), "", gardenlet, seeds), "must be for"},
		"certificate of an administrator":     {PathSeedRestriction, newRequest(t, create, signingRequestFor(t, "system:masters", gardenlet, client), "", gardenlet, seeds), "must be for"},
		"certificate with other names":        {PathSeedRestriction, newRequest(t, create, signingRequestFor(t, seeds, gardenlet, client, "kubernetes"), "", gardenlet, seeds), "no other names"},
		"certificate of a server":             {PathSeedRestriction, newRequest(t, create, signingRequestFor(t, seeds, gardenlet, `["digital signature", "server auth"]`), "", gardenlet, seeds), "a gardenlet does not need"},
		"binding to all rights":               {PathSeedRestriction, newRequest(t, create, `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: x}, roleRef: {kind: ClusterRole, name: cluster-admin}}`, "", gardenlet, seeds), "only ClusterRole"},
		"token for a gardenlet":               {PathSeedRestriction, newRequest(t, create, token+`}}`, "", gardenlet, seeds), ""},
		"token with groups":                   {PathSeedRestriction, newRequest(t, create, token+`, auth-extra-groups: eA==}}`, "", gardenlet, seeds), "must not be set"},
		"token of another type":               {PathSeedRestriction, newRequest(t, create, strings.Replace(token, "bootstrap.kubernetes.io/token", "Opaque", 1)+`}}`, "", gardenlet, seeds), "type: must be"},
		"own Shoot":                           {PathShootRestriction, newRequest(t, create, `{apiVersion: core.gardener.cloud/v1beta1, kind: Shoot, metadata: {name: self, namespace: garden-one}}`, "", own, "gardener.cloud:system:shoots"), ""},
		"another Shoot":                       {PathShootRestriction, newRequest(t, create, `{apiVersion: core.gardener.cloud/v1beta1, kind: Shoot, metadata: {name: s, namespace: garden-one}}`, "", own, "gardener.cloud:system:shoots"), "only Shoot garden-one/self"},
		"Project of another namespace":        {PathShootRestriction, newRequest(t, create, `{apiVersion: core.gardener.cloud/v1beta1, kind: Project, metadata: {name: p}, spec: {namespace: garden-two}}`, "", own, "gardener.cloud:system:shoots"), `must be "garden-one"`},
		"bucket of another Shoot":             {PathShootRestriction, newRequest(t, create, `{apiVersion: core.gardener.cloud/v1beta1, kind: BackupBucket, metadata: {name: b}, spec: {shootRef: {namespace: garden-one, name: s}}}`, "", own, "gardener.cloud:system:shoots"), "must be Shoot garden-one/self"},
	} {
		t.Run(name, func(t *testing.T) {
			response := ask(test.path, test.request)
			if test.says == "" {
				assert.True(t, response.Allowed, "%+v", response.Result)
				return
			}
			require.False(t, response.Allowed)
			assert.Contains(t, response.Result.Message, test.says)
			assert.NotContains(t, response.Result.Message, "%!")
		})
	}
}

// TestProviderLabels: credentials get their providers' labels, lose others', and keep the rest.
func TestProviderLabels(t *testing.T) {
	ask := webhooksFor(t, nil, nil)
	cloud := `{apiVersion: v1, kind: Secret, metadata: {name: cloud, namespace: garden-one, labels: {keep: me, provider.shoot.gardener.cloud/azure: "true"}}}`
	response := ask(PathProviderLabels, newRequest(t, admissionv1.Create, cloud, "", "alice"))
	require.True(t, response.Allowed)
	var patch []struct {
		Op, Path string
		Value    map[string]string
	}
	require.NoError(t, json.Unmarshal(response.Patch, &patch))
	require.Len(t, patch, 1)
	assert.Equal(t, "/metadata/labels", patch[0].Path)
	assert.Equal(t, map[string]string{"keep": "me", prefixProvider + "aws": "true", prefixProvider + "gcp": "true", prefixProvider + "local": "true"}, patch[0].Value)

	labelled := `{apiVersion: v1, kind: Secret, metadata: {name: cloud, namespace: garden-one, labels: {provider.shoot.gardener.cloud/aws: "true", provider.shoot.gardener.cloud/gcp: "true", provider.shoot.gardener.cloud/local: "true"}}}`
	assert.Empty(t, ask(PathProviderLabels, newRequest(t, admissionv1.Update, labelled, labelled, "alice")).Patch)
	assert.Empty(t, ask(PathProviderLabels, newRequest(t, admissionv1.Create, kubeconfigSecret("unbound", ""), "", "alice")).Patch)
}

// TestSizesAreLogged: in log mode nothing is rejected, and the log has no contents.
func TestSizesAreLogged(t *testing.T) {
	var log bytes.Buffer
	ask := webhooksFor(t, slog.New(slog.NewTextHandler(&log, nil)), ptr.To(operatorv1alpha1.AdmissionModeLog))
	large := `{apiVersion: core.gardener.cloud/v1beta1, kind: Shoot, metadata: {name: large, namespace: garden-one}, spec: {purpose: ` + strings.Repeat("n", 300) + `}}`
	assert.True(t, ask(PathResourceSize, newRequest(t, admissionv1.Create, large, "", "alice")).Allowed)
	assert.Contains(t, log.String(), "large")
	assert.NotContains(t, log.String(), "nnn")
}

// TestErrorsQuoteNoObjects: errors about malformed objects do not quote them.
func TestErrorsQuoteNoObjects(t *testing.T) {
	served := New(Options{Garden: fakeGarden{}, Authorizers: denyNames{}})
	for path, respond := range served {
		request := newRequest(t, admissionv1.Update, kubeconfigSecret("k", "{token: t}"), kubeconfigSecret("k", ""), "gardener.cloud:system:seed:a", "gardener.cloud:system:seeds")
		request.Object.Raw, request.Operation = []byte(`{"metadata": "TOPSECRET"`), admissionv1.Create
		_, err := respond(t.Context(), request)
		if err != nil {
			assert.NotContains(t, err.Error(), "TOPSECRET", path)
		}
	}
}
