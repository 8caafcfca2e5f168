// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pergola-dev/pergola/api/crds"
	"github.com/pergola-dev/pergola/schemas"
)

// immutableField is a field that a definition makes immutable, with the rule that does the same.
type immutableField struct {
	kind, field, rule string
	// before and after are merged into the good object.
	before, after string
}

func immutableFields() []immutableField {
	list := []immutableField{
		{"BackupBucket", "spec.provider", "backupbucket/stays", ``, `spec: {provider: {region: other}}`},
		{"BackupBucket", "spec.seedName", "backupbucket/stays", ``, `spec: {seedName: other}`},
		{"Bastion", "spec.shootRef.name", "bastion/stays", ``, `spec: {shootRef: {name: other}}`},
		{"Bastion", "spec.sshPublicKey", "bastion/stays", ``, `spec: {sshPublicKey: ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJxj7kJH0zB1XG8q2L5rXn3r0uTjR2b8O6gCqU5m1Zz1}`},
		{"ControllerInstallation", "spec.registrationRef.name", "controllerinstallation/stays", ``, `spec: {registrationRef: {name: other}}`},
		{"CredentialsBinding", "provider", "credentialsbinding/stays", ``, `provider: {type: other}`},
		{"CredentialsBinding", "credentialsRef", "credentialsbinding/stays", ``, `credentialsRef: {name: other}`},
		{"ExposureClass", "handler", "exposureclass/stays", ``, `handler: other`},
		{"Garden", "spec.virtualCluster.gardener.clusterIdentity", "garden/cluster-identity-immutable", ``, `spec: {virtualCluster: {gardener: {clusterIdentity: other}}}`},
		{"Garden", "spec.virtualCluster.controlPlane.highAvailability", "garden/high-availability-stays", `spec: {virtualCluster: {controlPlane: {highAvailability: {}}}}`, `spec: {virtualCluster: {controlPlane: null}}`},
		{"Garden", "spec.virtualCluster.etcd.main.backup", "garden/backup-immutable", gardenBackup, `spec: {virtualCluster: {etcd: {main: {backup: null}}}}`},
		{"Garden", "spec.virtualCluster.etcd.main.backup.bucketName", "garden/backup-immutable", gardenBackup, `spec: {virtualCluster: {etcd: {main: {backup: {bucketName: other}}}}}`},
		{"Garden", "spec.virtualCluster.etcd.main.backup.provider", "garden/backup-immutable", gardenBackup, `spec: {virtualCluster: {etcd: {main: {backup: {provider: other}}}}}`},
		{"Garden", "spec.virtualCluster.etcd.main.backup.region", "garden/backup-immutable", gardenBackup, `spec: {virtualCluster: {etcd: {main: {backup: {region: other}}}}}`},
		{"ManagedSeed", "spec.shoot", "managedseed/shoot-named", ``, `spec: {shoot: {name: other}}`},
		{"NamespacedCloudProfile", "spec.parent", "namespacedcloudprofile/parent", ``, `spec: {parent: {name: other}}`},
		{"Project", "spec.namespace", "project/immutable", ``, `spec: {namespace: garden-other}`},
		{"Project", "spec.owner", "project/immutable", `spec: {owner: {kind: User, name: a, apiGroup: rbac.authorization.k8s.io}}`, `spec: {owner: null}`},
		{"SecretBinding", "secretRef", "secretbinding/stays", ``, `secretRef: {name: other}`},
		{"Seed", "spec.backup", "seed/backup-immutable", seedBackup, `spec: {backup: null}`},
		{"Seed", "spec.backup.provider", "seed/backup-immutable", seedBackup, `spec: {backup: {provider: other}}`},
		{"Seed", "spec.backup.region", "seed/backup-immutable", seedBackup, `spec: {backup: {region: other}}`},
		{"Seed", "spec.networks.pods", "seed/networks-immutable", ``, `spec: {networks: {pods: 10.240.0.0/16}}`},
		{"Seed", "spec.networks.services", "seed/networks-immutable", ``, `spec: {networks: {services: 10.240.0.0/16}}`},
		{"Seed", "spec.networks.nodes", "seed/networks-immutable", ``, `spec: {networks: {nodes: 10.240.0.0/16}}`},
		{"Seed", "spec.ingress.domain", "seed/ingress-domain-immutable", ``, `spec: {ingress: {domain: ingress.other.example.com}}`},
		{"Shoot", "spec.region", "shoot/immutable", ``, `spec: {region: other}`},
		{"Shoot", "spec.provider.type", "shoot/immutable", ``, `spec: {provider: {type: other}}`},
		{"Shoot", "spec.exposureClassName", "shoot/immutable", ``, `spec: {exposureClassName: other}`},
		{"Shoot", "spec.networking.pods", "shoot/immutable", ``, `spec: {networking: {pods: 100.128.0.0/11}}`},
		{"Shoot", "spec.networking.services", "shoot/immutable", ``, `spec: {networking: {services: 100.56.0.0/13}}`},
	}
	for _, kind := range []string{"BackupBucket", "BackupEntry", "Bastion", "ContainerRuntime", "ControlPlane", "DNSRecord", "Extension",
		"Infrastructure", "Network", "OperatingSystemConfig", "SelfHostedShootExposure", "Worker"} {
		list = append(list, immutableField{"extensions." + kind, "spec.type", "extensions/stays", ``, `spec: {type: other}`})
	}
	return list
}

const (
	gardenBackup = `spec: {virtualCluster: {etcd: {main: {backup: {provider: local, region: local, bucketName: garden-backup, secretRef: {name: backup}}}}}}`
	seedBackup   = `spec: {backup: {provider: local, region: local, credentialsRef: {apiVersion: v1, kind: Secret, name: backup, namespace: garden}}}`
)

// TestImmutableFieldsAreRules: rules reject the same changes as definitions, at the same field.
func TestImmutableFieldsAreRules(t *testing.T) {
	for _, c := range immutableFields() {
		t.Run(c.kind+" "+c.field, func(t *testing.T) {
			before := mergeYAML(t, validObject(t, c.kind), c.before)
			found, err := schemas.Validate(t.Context(), []schemas.Input{{Object: mergeYAML(t, before, c.after), Old: before}}, schemas.Options{})
			require.NoError(t, err)
			assert.True(t, slices.ContainsFunc(found, func(v schemas.Violation) bool { return v.Rule == c.rule && v.Field == c.field }), "%v", found)
		})
	}
}

// TestImmutableFieldsAreListed: the list above contains all immutable fields of the definitions,
// and is documented.
func TestImmutableFieldsAreListed(t *testing.T) {
	defined := map[string]bool{}
	for _, crd := range crds.All() {
		if crd.Spec.Group == "druid.gardener.cloud" {
			continue // etcd-druid's, with its own rules
		}
		kind := crd.Spec.Names.Kind
		if crd.Spec.Group == "extensions.gardener.cloud" {
			kind = "extensions." + kind
		}
		for _, version := range crd.Spec.Versions {
			collectImmutableFields(defined, kind, "", *version.Schema.OpenAPIV3Schema)
		}
	}
	listed := map[string]bool{}
	docs, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "reference", "admission-webhooks.md"))
	require.NoError(t, err)
	for _, c := range immutableFields() {
		listed[c.kind+" "+c.field] = true
		if !strings.HasPrefix(c.kind, "extensions.") {
			assert.Contains(t, string(docs), fmt.Sprintf("| %s | `%s` | %s |", c.kind, c.field, c.rule))
		}
	}
	assert.Contains(t, string(docs), "| all of extensions.gardener.cloud but Cluster | `spec.type` | extensions/stays |")
	assert.Equal(t, defined, listed)
}

// collectImmutableFields finds the fields that have rules about changes.
func collectImmutableFields(found map[string]bool, kind, path string, schema apiextensionsv1.JSONSchemaProps) {
	for _, rule := range schema.XValidations {
		if strings.Contains(rule.Rule, "oldSelf") {
			found[kind+" "+strings.TrimPrefix(path+rule.FieldPath, ".")] = true
		}
	}
	for name, child := range schema.Properties {
		collectImmutableFields(found, kind, path+"."+name, child)
	}
	if schema.Items != nil && schema.Items.Schema != nil {
		collectImmutableFields(found, kind, path+"[]", *schema.Items.Schema)
	}
}

// checkImmutableFields: without webhooks, the API server rejects the change at the field that the
// rule names.
func checkImmutableFields(t *testing.T, w *testServer) {
	for _, c := range immutableFields() {
		t.Run(c.kind+" "+c.field, func(t *testing.T) {
			live, err := w.createUnvalidated(t, mergeYAML(t, validObject(t, c.kind), c.before))
			require.NoError(t, err)
			require.NoError(t, w.unvalidated.Update(w.ctx, live.DeepCopy(), client.DryRunAll), "nothing changed")
			_, fields, byWebhook := errorsOfServer(t, w.unvalidated.Update(w.ctx, mergeYAML(t, live, c.after), client.DryRunAll))
			assert.False(t, byWebhook)
			assert.Equal(t, []string{c.field}, slices.Compact(fields))
		})
	}
}
