// SPDX-License-Identifier: Apache-2.0

package adoption

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/components"
	"github.com/pergola-dev/pergola/controllers/owner"
	"github.com/pergola-dev/pergola/secrets"
)

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal([]byte(text), &o.Object))
	return o
}

func TestFixedFieldsBlock(t *testing.T) {
	for name, c := range map[string]struct {
		field  change.Field
		blocks bool
	}{
		"identity":          {change.Field{Path: "spec.virtualCluster.gardener.clusterIdentity", Old: "a", New: "b"}, true},
		"networks":          {change.Field{Path: "spec.runtimeCluster.networking.pods", Old: []any{"10.0.0.0/16"}, New: []any{"10.1.0.0/16"}}, true},
		"fewer zones":       {change.Field{Path: "spec.runtimeCluster.provider.zones", Old: []any{"a", "b"}, New: []any{"a"}}, true},
		"another zone":      {change.Field{Path: "spec.runtimeCluster.provider.zones", Old: []any{"a"}, New: []any{"b"}}, true},
		"a zone more":       {change.Field{Path: "spec.runtimeCluster.provider.zones", Old: []any{"a"}, New: []any{"a", "b"}}, false},
		"another domain":    {change.Field{Path: "spec.virtualCluster.dns.domains[name=b]", New: map[string]any{"name": "b"}}, false},
		"issuer":            {change.Field{Path: "spec.virtualCluster.kubernetes.kubeAPIServer.serviceAccountConfig.issuer", Old: "a", New: "b"}, true},
		"no issuer any":     {change.Field{Path: "spec.virtualCluster.kubernetes.kubeAPIServer.serviceAccountConfig.issuer", Old: "a"}, true},
		"a log level":       {change.Field{Path: "spec.virtualCluster.gardener.gardenerScheduler.logLevel", Old: "info", New: "debug"}, false},
		"a like-named path": {change.Field{Path: "spec.virtualCluster.networkingOther", Old: "a", New: "b"}, false},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, c.blocks, fixedFieldReason(c.field) != "") })
	}
}

func TestKubernetesDowngradeBlocks(t *testing.T) {
	for version, level := range map[string]Level{"1.33.0": LevelBlocks, "1.34.2": LevelRestarts, "1.35.0": LevelRestarts} {
		assert.Equal(t, level, adjustVersionFinding(Finding{}, change.Field{Old: "1.34.1", New: version}).Level, version)
	}
}

func TestVersionsOfGardener(t *testing.T) {
	for version, level := range map[string]Level{"v1.150.3": LevelNoAction, "1.149.0": LevelRestarts, "v1.148.9": LevelBlocks, "v1.151.0": LevelBlocks, "v2.150.0": LevelBlocks, "dev": LevelChanges} {
		r := &Report{}
		require.NoError(t, (&Adopter{Catalogue: components.FS}).checkVersions(r, object(t, "{kind: Garden, status: {gardener: {version: '"+version+"'}}}")))
		require.Len(t, r.Findings, 1)
		assert.Equal(t, level, r.Findings[0].Level, "%s: %s", version, r.Findings[0].Text)
	}
}

func TestRunningRotations(t *testing.T) {
	r := &Report{}
	checkRotation(r, object(t, `{kind: Garden, status: {credentials: {rotation: {certificateAuthorities: {phase: Preparing}, etcdEncryptionKey: {phase: Completing}, serviceAccountKey: {phase: Prepared}, observability: {lastInitiationTime: x}}}}}`))
	var levels []Level
	for _, f := range r.Findings {
		levels = append(levels, f.Level)
	}
	assert.Equal(t, []Level{LevelChanges, LevelNoAction, LevelBlocks}, levels)
}

// gardenReconciledByPergola is a Garden that Pergola has reconciled last.
const gardenReconciledByPergola = `{kind: Garden, metadata: {name: local, annotations: {gardener.cloud/operation: rotate-ca-start}, managedFields: [{manager: pergola, operation: Apply}]}, status: {
	gardener: {name: host-1}, lastOperation: {state: Processing, description: "etcd-main: Running"}, credentials: {rotation: {certificateAuthorities: {phase: Preparing}, etcdEncryptionKey: {phase: Completing}}}}}`

// TestAdviceNamesReconciler: the advice to wait names the reconciler; after the takeover that is
// Pergola.
func TestAdviceNamesReconciler(t *testing.T) {
	live := object(t, gardenReconciledByPergola)
	assert.Equal(t, "Pergola", reconcilerOf(live))
	found := checkState(live)
	require.Len(t, found, 2)
	assert.Equal(t, "wait until Pergola has completed it", found[0].Advice)
	assert.Equal(t, "wait until Pergola is done, or fix the reported problem: a takeover needs a successful last operation", found[1].Advice)
	r := &Report{}
	checkRotation(r, live)
	require.Len(t, r.Findings, 2)
	for _, f := range r.Findings {
		assert.Equal(t, LevelNoAction, f.Level, "Pergola does not wait for itself")
		assert.Contains(t, f.Advice, "nothing to do")
	}

	require.NoError(t, unstructured.SetNestedField(live.Object, "gardener-operator-1", "status", "gardener", "name"))
	assert.Equal(t, "gardener-operator", reconcilerOf(live), "it has started again")
	live = object(t, strings.Replace(gardenReconciledByPergola, "manager: pergola, operation: Apply", "manager: kubectl, operation: Update", 1))
	for _, f := range checkState(live) {
		assert.Contains(t, f.Advice, "wait until gardener-operator ")
	}
}

func TestControllersToStop(t *testing.T) {
	r := &Report{Controllers: []Controller{{Name: "a", Replicas: 1}, {Name: "b", MustStop: true}, {Name: "c", MustStop: true, Replicas: 2}}}
	require.Len(t, r.ControllersToStop(), 1)
	assert.Equal(t, "c", r.ControllersToStop()[0].Name)
}

func TestMutatingWebhooks(t *testing.T) {
	deployment := change.Ref{APIVersion: "apps/v1", Kind: "Deployment", Name: "a"}
	for rules, want := range map[string]bool{
		"{apiGroups: [apps], resources: [deployments]}":              true,
		"{apiGroups: ['*'], resources: ['*']}":                       true,
		"{apiGroups: [apps], resources: ['*/*']}":                    true,
		"{apiGroups: [''], resources: [pods]}":                       false,
		"{apiGroups: [apps], resources: [statefulsets]}":             false,
		"{apiGroups: [extensions], resources: [deployments]}":        false,
		"{apiGroups: [apps], resources: [statefulsets, daemonsets]}": false,
	} {
		assert.Equal(t, want, isMutating(object(t, "{kind: MutatingWebhookConfiguration, webhooks: [{rules: ["+rules+"]}]}").Object, deployment), rules)
		assert.False(t, isMutating(object(t, "{kind: ValidatingWebhookConfiguration, webhooks: [{rules: ["+rules+"]}]}").Object, deployment))
	}
}

func TestGeneratedSecrets(t *testing.T) {
	r := &Report{}
	checkSecrets(r, map[string][]owner.PlannedSecret{"runtime": {
		{Request: "ca", Namespace: "garden", Object: "ca-1", Kind: secrets.KindCA, IsNew: true, ReplacedSecrets: []string{"ca-0"}},
		{Request: "ca-client", Namespace: "garden", Object: "ca-client-1", Kind: secrets.KindCA, IsNew: true, SourceSecret: "old-ca"},
		{Request: "service-account-key", Namespace: "garden", Object: "key", Kind: secrets.KindRSAPrivateKey},
		{Request: "server", Namespace: "garden", Object: "server-1", Kind: secrets.KindCertificate, IsNew: true},
	}})
	require.Len(t, r.Findings, 4)
	assert.Equal(t, LevelBlocks, r.Findings[0].Level)
	assert.Equal(t, "label the Secret that has its data: kubectl -n garden label secret ca-0 secrets-manager-use-data-for-name=ca", r.Findings[0].Advice)
	assert.Contains(t, r.Findings[1].Text, "gets the data of Secret garden/old-ca")
	assert.Equal(t, []string{"Secret garden/server-1"}, r.Findings[2].Objects)
	assert.Equal(t, LevelNoAction, r.Findings[3].Level)
}

func TestSingleFindings(t *testing.T) {
	image := change.Field{Path: "spec.template.spec.containers[name=a].image", Old: "a", New: "b"}
	label := change.Field{Path: "metadata.labels[a]", Old: "a", New: "b"}
	stamp := change.Field{Path: "metadata.annotations[gardener.cloud/timestamp]", Old: "a"}
	deployment := change.Ref{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "garden", Name: "a"}
	etcd := change.Ref{APIVersion: "druid.gardener.cloud/v1alpha1", Kind: "Etcd", Namespace: "garden", Name: "e"}
	a := &Adopter{}
	for name, c := range map[string]struct {
		item   change.Item
		level  Level
		fields int
	}{
		"a template":          {change.Item{Object: deployment, Action: change.Adopt, Fields: []change.Field{image, label}}, LevelRestarts, 1},
		"a label":             {change.Item{Object: deployment, Action: change.Adopt, Fields: []change.Field{label}}, LevelChanges, 1},
		"only its managers":   {change.Item{Object: deployment, Action: change.Adopt, Fields: []change.Field{stamp}}, LevelNoAction, 0},
		"a conflict":          {change.Item{Object: deployment, Action: change.Fail, Reason: "conflict"}, LevelBlocks, 0},
		"a deletion":          {change.Item{Object: deployment, Action: change.Delete}, LevelChanges, 0},
		"data that goes":      {change.Item{Object: etcd, Action: change.Delete, Consequences: []string{"loses stored data"}}, LevelBlocks, 0},
		"backups elsewhere":   {change.Item{Object: etcd, Action: change.Change, Fields: []change.Field{{Path: "spec.backup.store.container", Old: "a", New: "b"}}}, LevelBlocks, 1},
		"nothing in an etcd":  {change.Item{Object: etcd, Action: change.Adopt, Fields: []change.Field{{Path: "spec.sharedConfig", Old: map[string]any{}}}, Consequences: []string{"may roll the etcd members"}}, LevelChanges, 1},
		"a mark of the first": {change.Item{Object: etcd, Action: change.Adopt, Fields: []change.Field{{Path: "metadata.annotations", New: map[string]any{"resources.gardener.cloud/origin": "x"}}}}, LevelNoAction, 0},
		"marks and others":    {change.Item{Object: etcd, Action: change.Adopt, Fields: []change.Field{{Path: "metadata.labels", New: map[string]any{"resources.gardener.cloud/managed-by": "x", "a": "b"}}}}, LevelChanges, 1},
		"of an operator":      {change.Item{Object: change.Ref{APIVersion: "monitoring.coreos.com/v1", Kind: "Prometheus", Namespace: "garden", Name: "p"}, Action: change.Adopt, Fields: []change.Field{{Path: "spec.volumes", Old: "a", New: "b"}}}, LevelRestarts, 1},
		"members of an etcd":  {change.Item{Object: etcd, Action: change.Change, Fields: []change.Field{{Path: "spec.etcd.image", Old: "a", New: "b"}}, Consequences: []string{"may roll the etcd members"}}, LevelRestarts, 1},
		"something is anew":   {change.Item{Object: deployment, Action: change.Recreate}, LevelRestarts, 0},
		"something is made":   {change.Item{Object: deployment, Action: change.Create}, LevelChanges, 0},
		"something that held": {change.Item{Object: deployment, Action: change.Hold, Approval: "x"}, LevelChanges, 0},
	} {
		t.Run(name, func(t *testing.T) {
			r := &Report{}
			c.item.Cluster, c.item.Bundle = "runtime", "b"
			a.checkObjects(r, change.Plan{Items: []change.Item{c.item}})
			require.Len(t, r.Findings, 1)
			assert.Equal(t, c.level, r.Findings[0].Level)
			assert.Len(t, r.Findings[0].Fields, c.fields)
			if c.level != LevelNoAction {
				assert.Equal(t, []string{c.item.Object.String()}, r.Findings[0].Objects)
			}
		})
	}
}

func TestSamePrograms(t *testing.T) {
	for image, want := range map[string]string{
		"registry.example.org:5000/a/b:v1": "registry.example.org:5000/a/b", "registry.example.org:5000/a/b": "registry.example.org:5000/a/b",
		"a/b@sha256:00": "a/b", "a/b:v1@sha256:00": "a/b", "": "",
	} {
		assert.Equal(t, want, imageRepository(image), image)
	}
}

func TestIsServedBy(t *testing.T) {
	c := Controller{Cluster: "runtime", Namespace: "garden", Name: "virtual-garden-gardener-resource-manager"}
	for name, test := range map[string]struct {
		hooks  string
		here   bool
		served bool
	}{
		"its Service":            {"[{clientConfig: {service: {namespace: garden, name: virtual-garden-gardener-resource-manager}}}]", true, true},
		"the Service of a name":  {"[{clientConfig: {service: {namespace: garden, name: virtual-garden-gardener-resource-manager}}}]", false, false},
		"its address":            {"[{clientConfig: {url: 'https://virtual-garden-gardener-resource-manager.garden:443/x'}}]", false, true},
		"another one":            {"[{clientConfig: {url: 'https://gardener-admission-controller.garden/x'}}]", false, false},
		"others answer, too":     {"[{clientConfig: {url: 'https://virtual-garden-gardener-resource-manager.garden/x'}}, {clientConfig: {url: 'https://b.garden/x'}}]", false, false},
		"nobody has to":          {"[]", true, false},
		"a name that is a start": {"[{clientConfig: {service: {namespace: garden, name: virtual-garden-gardener-resource-manager-2}}}]", true, false},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, test.served, isServedBy(object(t, "{kind: MutatingWebhookConfiguration, webhooks: "+test.hooks+"}"), c, test.here))
		})
	}
}

func TestRestoringTool(t *testing.T) {
	assert.Equal(t, "garden/gcm", managedResourceOf(object(t, `{metadata: {annotations: {resources.gardener.cloud/origin: "abc-seed:garden/gcm"}}}`)))
	assert.Equal(t, "garden/gcm", managedResourceOf(object(t, `{metadata: {annotations: {resources.gardener.cloud/origin: "garden/gcm"}}}`)))
	assert.Empty(t, managedResourceOf(object(t, `{metadata: {annotations: {resources.gardener.cloud/origin: "garden.local/gcm/x"}}}`)))
	assert.Empty(t, managedResourceOf(object(t, `{metadata: {name: a}}`)))
	assert.Equal(t, "Argo CD, Application garden", restoringTool(object(t, `{metadata: {labels: {argocd.argoproj.io/instance: garden}}}`)))
	assert.Equal(t, "Flux, HelmRelease operator", restoringTool(object(t, `{metadata: {labels: {helm.toolkit.fluxcd.io/name: operator}}}`)))
	assert.Empty(t, restoringTool(object(t, `{metadata: {labels: {app.kubernetes.io/managed-by: Helm}}}`)))
}

func TestApprovalOfControllers(t *testing.T) {
	one, two := Controller{Cluster: "runtime", Namespace: "garden", Name: "a"}, Controller{Cluster: "runtime", Namespace: "garden", Name: "b", Replicas: 2}
	assert.Empty(t, approvalOf(nil))
	both := approvalOf([]Controller{one, two})
	assert.NotEqual(t, approvalOf([]Controller{one}), both)
	two.Replicas = 0
	assert.Equal(t, both, approvalOf([]Controller{one, two}), "it can be repeated when half of it is done")
}

func TestCompareIdentity(t *testing.T) {
	garden := map[string]any{"spec": map[string]any{"virtualCluster": map[string]any{
		"gardener": map[string]any{"clusterIdentity": "here"}, "networking": map[string]any{"services": []any{"100.64.0.0/13", "fd00::/108"}},
	}}}
	issuers := []string{"https://new.example.org", "https://old.example.org"}
	for name, c := range map[string]struct {
		lives virtualGardenIdentity
		level Level
		says  string
	}{
		"the same":          {virtualGardenIdentity{"here", "100.64.0.1", "https://new.example.org"}, LevelNoAction, ""},
		"nothing is known":  {virtualGardenIdentity{}, LevelNoAction, ""},
		"another identity":  {virtualGardenIdentity{cluster: "there"}, LevelBlocks, "clusterIdentity"},
		"another range":     {virtualGardenIdentity{address: "10.0.0.1"}, LevelBlocks, "networking.services"},
		"a range of two":    {virtualGardenIdentity{address: "fd00::1"}, LevelNoAction, ""},
		"a former issuer":   {virtualGardenIdentity{issuer: "https://old.example.org"}, LevelChanges, ""},
		"an unknown issuer": {virtualGardenIdentity{issuer: "https://kubernetes.default.svc"}, LevelBlocks, "acceptedIssuers"},
	} {
		t.Run(name, func(t *testing.T) {
			found := compareIdentity(c.lives, garden, issuers)
			if c.level == LevelNoAction {
				require.Empty(t, found)
				return
			}
			require.Len(t, found, 1)
			assert.Equal(t, c.level, found[0].Level)
			assert.Contains(t, found[0].Advice, c.says)
		})
	}
	deployment := object(t, "{kind: Deployment, spec: {template: {spec: {containers: [{command: [kube-apiserver], args: [--service-account-issuer=a, --v=2, --service-account-issuer=b]}]}}}}")
	assert.Equal(t, []string{"a", "b"}, flagValues(deployment, "--service-account-issuer="))
}

func TestCompareAPI(t *testing.T) {
	for _, c := range []struct {
		service    string
		aggregated bool
		do         string
	}{
		{"gardener-apiserver", true, ""}, {"", false, ""}, {"gardener-apiserver", false, "gardenAPI: aggregated"}, {"", true, "gardenAPI: crd"},
	} {
		f, differs := compareAPI(c.service, c.aggregated)
		assert.Equal(t, c.do != "", differs)
		assert.Contains(t, f.Advice, c.do)
		assert.Equal(t, LevelBlocks, f.Level)
	}
}
