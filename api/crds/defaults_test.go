// SPDX-License-Identifier: Apache-2.0

package crds_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	operatorv1alpha1 "github.com/pergola-dev/pergola/api/operator/v1alpha1"
	securityv1alpha1 "github.com/pergola-dev/pergola/api/security/v1alpha1"
	seedmanagementv1alpha1 "github.com/pergola-dev/pergola/api/seedmanagement/v1alpha1"
	"github.com/pergola-dev/pergola/hack/corpus"
)

// setDefaults reports whether the kind has defaults outside of its schema, and sets them.
func setDefaults(object any) bool {
	switch o := object.(type) {
	case *operatorv1alpha1.Garden:
		operatorv1alpha1.SetDefaults_Garden(o)
	case *gardencorev1beta1.Seed:
		gardencorev1beta1.SetDefaults_Seed(o)
	case *gardencorev1beta1.Shoot:
		gardencorev1beta1.SetDefaults_Shoot(o)
	case *gardencorev1beta1.Project:
		gardencorev1beta1.SetDefaults_Project(o)
	case *gardencorev1beta1.CloudProfile:
		gardencorev1beta1.SetDefaults_CloudProfile(o)
	case *gardencorev1beta1.ControllerRegistration:
		gardencorev1beta1.SetDefaults_ControllerRegistration(o)
	case *gardencorev1beta1.NamespacedCloudProfile:
		gardencorev1beta1.SetDefaults_NamespacedCloudProfile(o)
	case *gardencorev1beta1.SecretBinding:
		gardencorev1beta1.SetDefaults_SecretBinding(o)
	case *securityv1alpha1.CredentialsBinding:
		securityv1alpha1.SetDefaults_CredentialsBinding(o)
	case *seedmanagementv1alpha1.Gardenlet:
		seedmanagementv1alpha1.SetDefaults_Gardenlet(o)
	case *seedmanagementv1alpha1.ManagedSeed:
		seedmanagementv1alpha1.SetDefaults_ManagedSeed(o)
	case *seedmanagementv1alpha1.ManagedSeedSet:
		seedmanagementv1alpha1.SetDefaults_ManagedSeedSet(o)
	default:
		return false
	}
	return true
}

func toMap(t *testing.T, object any) map[string]any {
	t.Helper()
	data, err := json.Marshal(object)
	require.NoError(t, err)
	content := map[string]any{}
	require.NoError(t, json.Unmarshal(data, &content))
	return normalizeNumbers(content).(map[string]any)
}

func fromMap(t *testing.T, kind schema.GroupVersionKind, content map[string]any) any {
	t.Helper()
	data, err := json.Marshal(content)
	require.NoError(t, err)
	object := newTypedObject(t, kind)
	require.NoError(t, json.Unmarshal(data, object))
	return object
}

// TestSchemaDefaultsMatchSetDefaults checks that the schema's defaults agree with SetDefaults: in
// either order, the result is the same.
func TestSchemaDefaultsMatchSetDefaults(t *testing.T) {
	dir := corpus.Dir(t)
	byKind := newValidators(t)
	files, err := filepath.Glob(filepath.Join(dir, "cases", "*.yaml"))
	require.NoError(t, err)
	for _, sub := range []string{"example/*.yaml", "example/*/*.yaml", "dev-setup/*/*/*.yaml", "dev-setup/*/*/*/*/*.yaml"} {
		more, err := filepath.Glob(filepath.Join(dir, "valid", sub))
		require.NoError(t, err)
		files = append(files, more...)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, doc := range decodeDocuments(t, data) {
			first := newTypedObject(t, doc.kind)
			require.NoError(t, yaml.Unmarshal(doc.raw, first), file)
			if !setDefaults(first) {
				continue
			}
			want := toMap(t, first)

			// SetDefaults leaves no default to the schema …
			got := runtime.DeepCopyJSON(want)
			byKind[doc.kind].pruneAndDefault(got)
			assert.Equal(t, want, toMap(t, fromMap(t, doc.kind, got)), "%s: the schema defaults more", file)

			// … and accepts the defaults of the schema.
			object := doc.decode(t)
			byKind[doc.kind].pruneAndDefault(object)
			second := fromMap(t, doc.kind, object)
			setDefaults(second)
			assert.Equal(t, want, toMap(t, second), "%s: the schema defaults otherwise", file)
		}
	}
}

// TestUpstreamDefaults compares defaults with those that upstream's API servers set in upstream's
// examples.
func TestUpstreamDefaults(t *testing.T) {
	dir := corpus.Dir(t)
	for _, test := range []struct {
		kind, input, recorded string
		nested                string
	}{
		{kind: "Garden", input: "garden-example.yaml", recorded: "garden/reconcile-flow/reconcile-example.yaml"},
		{kind: "Seed", input: "seed-example.yaml", recorded: "seed/reconcile-flow/reconcile-example.yaml"},
		{kind: "Shoot", input: "shoot-example.yaml", recorded: "shoot/reconcile-flow/reconcile-example.yaml"},
	} {
		t.Run(test.kind, func(t *testing.T) {
			input := findDocument(t, filepath.Join(dir, "objects", "inputs", test.input), test.kind)
			recorded := findDocument(t, filepath.Join(dir, "objects", test.recorded), test.kind)
			got, want := newTypedObject(t, input.kind), newTypedObject(t, recorded.kind)
			require.NoError(t, yaml.UnmarshalStrict(input.raw, got))
			require.NoError(t, yaml.UnmarshalStrict(recorded.raw, want))
			setDefaults(got)
			assert.Equal(t, toMap(t, want)["spec"], toMap(t, got)["spec"])
		})
	}
}

func findDocument(t *testing.T, file, kind string) document {
	t.Helper()
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	for _, doc := range decodeDocuments(t, data) {
		if doc.kind.Kind == kind {
			return doc
		}
	}
	require.Failf(t, "no such document", "%s in %s", kind, file)
	return document{}
}

// TestDefaultsOfEveryKind checks sparse objects of each kind, with the defaults of its definition
// and of SetDefaults. Fields that are not in want get no default. If want equals the input, the
// kind has no defaults upstream either.
func TestDefaultsOfEveryKind(t *testing.T) {
	byKind := newValidators(t)
	const core, operator, seedmanagement, security = "core.gardener.cloud/v1beta1", "operator.gardener.cloud/v1alpha1", "seedmanagement.gardener.cloud/v1alpha1", "security.gardener.cloud/v1alpha1"
	const config = "{apiVersion: gardenlet.config.gardener.cloud/v1alpha1, kind: GardenletConfiguration, resources: {capacity: {shoots: '250'}}}"
	const deployment = "replicaCount: 2, revisionHistoryLimit: 2, enableHealthProbes: true"
	for _, test := range []struct{ version, kind, given, want string }{
		{core, "ControllerRegistration", "spec: {deployment: {}, resources: [{kind: Network, type: a}, {kind: Extension, type: b}, {kind: SelfHostedShootExposure, type: c}]}",
			"spec: {deployment: {policy: OnDemand}, resources: [{kind: Network, type: a, primary: true}, " +
				"{kind: Extension, type: b, primary: true, clusterCompatibility: [shoot], reconcileTimeout: 3m0s, lifecycle: {reconcile: AfterKubeAPIServer, delete: BeforeKubeAPIServer, migrate: BeforeKubeAPIServer}}, " +
				"{kind: SelfHostedShootExposure, type: c, primary: true, continuousEndpointUpdate: true}]}"},
		{core, "ControllerRegistration", "spec: {resources: [{kind: Extension, type: b, primary: false, clusterCompatibility: [seed], reconcileTimeout: 1m0s, lifecycle: {reconcile: AfterWorker}}]}",
			"spec: {resources: [{kind: Extension, type: b, primary: false, clusterCompatibility: [seed], reconcileTimeout: 1m0s, lifecycle: {reconcile: AfterWorker, delete: BeforeKubeAPIServer, migrate: BeforeKubeAPIServer}}]}"},
		{core, "ControllerDeployment", "type: helm\nproviderConfig: {chart: a}", "type: helm\nproviderConfig: {chart: a}"},
		{core, "ControllerInstallation", "spec: {seedRef: {name: a}, registrationRef: {name: b}}", "spec: {seedRef: {name: a}, registrationRef: {name: b}}"},
		{core, "SecretBinding", "secretRef: {name: a}\nquotas: [{name: b}, {name: c, namespace: garden}]", "secretRef: {name: a, namespace: garden-dev}\nquotas: [{name: b, namespace: garden-dev}, {name: c, namespace: garden}]"},
		{security, "CredentialsBinding", "provider: {type: x}\ncredentialsRef: {apiVersion: v1, kind: Secret, name: a}\nquotas: [{name: b}]",
			"provider: {type: x}\ncredentialsRef: {apiVersion: v1, kind: Secret, name: a, namespace: garden-dev}\nquotas: [{name: b, namespace: garden-dev}]"},
		{security, "WorkloadIdentity", "spec: {audiences: [a], targetSystem: {type: x}}", "spec: {audiences: [a], targetSystem: {type: x}}"},
		{core, "Quota", "spec: {scope: {apiVersion: v1, kind: Secret}, metrics: {cpu: '2'}}", "spec: {scope: {apiVersion: v1, kind: Secret}, metrics: {cpu: '2'}}"},
		{core, "BackupBucket", "spec: {provider: {type: x, region: r}}", "spec: {provider: {type: x, region: r}}"},
		{core, "BackupEntry", "spec: {bucketName: b}", "spec: {bucketName: b}"},
		{core, "ExposureClass", "handler: a", "handler: a"},
		{core, "NamespacedCloudProfile", "spec: {parent: {kind: CloudProfile, name: a}, machineTypes: [{name: m, cpu: '1', gpu: '0', memory: 1Gi}], volumeTypes: [{name: v, class: standard}]}",
			"spec: {parent: {kind: CloudProfile, name: a}, machineTypes: [{name: m, cpu: '1', gpu: '0', memory: 1Gi, usable: true}], volumeTypes: [{name: v, class: standard, usable: true}]}"},
		{seedmanagement, "ManagedSeed", "spec: {shoot: {name: a}}",
			"spec: {shoot: {name: a}, gardenlet: {bootstrap: BootstrapToken, mergeWithParent: true, config: " + config + ", deployment: {" + deployment + ", image: {pullPolicy: IfNotPresent}}}}"},
		{seedmanagement, "ManagedSeed", "spec: {shoot: {name: a}, gardenlet: {bootstrap: None, mergeWithParent: false, config: {kind: Other}, deployment: {replicaCount: 1, image: {tag: latest}}}}",
			"spec: {shoot: {name: a}, gardenlet: {bootstrap: None, mergeWithParent: false, config: {kind: Other}, deployment: {replicaCount: 1, revisionHistoryLimit: 2, enableHealthProbes: true, image: {tag: latest, pullPolicy: Always}}}}"},
		{seedmanagement, "ManagedSeedSet", "spec: {selector: {}, template: {}, shootTemplate: {spec: {kubernetes: {version: 1.35.0}, region: r, provider: {type: x}}}, updateStrategy: {rollingUpdate: {}}}",
			"spec: {selector: {}, template: {spec: {gardenlet: {}}}, shootTemplate: {spec: {kubernetes: {version: 1.35.0}, region: r, provider: {type: x}}}, replicas: 1, revisionHistoryLimit: 10, updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: 0}}}"},
		{seedmanagement, "Gardenlet", "spec: {deployment: {helm: {ociRepository: {ref: a}}}}",
			"spec: {config: " + config + ", deployment: {" + deployment + ", image: {pullPolicy: IfNotPresent}, helm: {ociRepository: {ref: a}}}}"},
		{operator, "Extension", "spec: {resources: [{kind: Extension, type: a}], deployment: {extension: {}}}", "spec: {resources: [{kind: Extension, type: a, primary: true}], deployment: {extension: {}}}"},
		{"operations.gardener.cloud/v1alpha1", "Bastion", "spec: {shootRef: {name: a}, sshPublicKey: k, ingress: []}", "spec: {shootRef: {name: a}, sshPublicKey: k, ingress: []}"},
		{"resources.gardener.cloud/v1alpha1", "ManagedResource", "spec: {secretRefs: [{name: a}]}", "spec: {secretRefs: [{name: a}]}"},
		{core, "CloudProfile", "spec: {type: x, kubernetes: {}, regions: [], machineImages: [{name: i, versions: [{version: 1.0.0}]}], machineTypes: [{name: m, cpu: '1', gpu: '0', memory: 1Gi}], volumeTypes: [{name: v, class: standard}]}",
			"spec: {type: x, kubernetes: {}, regions: [], machineImages: [{name: i, updateStrategy: major, versions: [{version: 1.0.0, cri: [{name: containerd}], architectures: [amd64]}]}], " +
				"machineTypes: [{name: m, cpu: '1', gpu: '0', memory: 1Gi, usable: true, architecture: amd64}], volumeTypes: [{name: v, class: standard, usable: true}]}"},
		{core, "Project", "spec: {owner: {kind: User, name: a}, members: [{kind: Group, name: b}], namespace: garden}",
			"spec: {owner: {apiGroup: rbac.authorization.k8s.io, kind: User, name: a}, members: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: b, role: viewer}], namespace: garden, " +
				"tolerations: {defaults: [{key: seed.gardener.cloud/protected}], whitelist: [{key: seed.gardener.cloud/protected}]}}"},
	} {
		t.Run(test.kind, func(t *testing.T) {
			header := "apiVersion: " + test.version + "\nkind: " + test.kind + "\nmetadata: {name: a, namespace: garden-dev}\n"
			given, want := decodeDocuments(t, []byte(header+test.given))[0], decodeDocuments(t, []byte(header+test.want))[0]
			object := given.decode(t)
			require.NotNil(t, byKind[given.kind])
			byKind[given.kind].pruneAndDefault(object)
			got := fromMap(t, given.kind, object)
			setDefaults(got)
			again := toMap(t, got)
			setDefaults(got)
			assert.Equal(t, again, toMap(t, got), "a second time nothing is filled in")
			assert.Equal(t, toMap(t, fromMap(t, want.kind, want.decode(t))), again)
		})
	}
}
