// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"github.com/pergola-dev/pergola/api/crds"
	"github.com/pergola-dev/pergola/commands/adoption"
	"github.com/pergola-dev/pergola/components"
	"github.com/pergola-dev/pergola/hack/apiserver"
)

// TestAdopt checks the output for a landscape with gardener-operator whose CAs have other names.
// Package adoption tests the whole takeover.
func TestAdopt(t *testing.T) {
	apiserver.SkipIfUnavailable(t)
	c, kubeconfig := testServer(t)
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	require.NoError(t, err)
	_, err = envtest.InstallCRDs(config, envtest.CRDInstallOptions{CRDs: crds.ByGroup("operator.gardener.cloud")})
	require.NoError(t, err)
	dir := t.TempDir()
	writeFile(t, dir, "landscape.yaml", "apiVersion: landscape.pergola.dev/v1alpha1\nkind: Landscape\nmetadata:\n  name: old\nspec:\n  catalogue:\n    version: "+components.Version+
		"\n  external:\n  - {kind: Secret, namespace: garden, name: garden-dns-local}\n  - {kind: Secret, namespace: garden, name: virtual-garden-etcd-main-backup-local}\n")
	writeFile(t, dir, "garden.yaml", readDemoFile(t, "garden/garden.yaml"))
	adopt := func(args ...string) commandResult {
		t.Helper()
		return pergola(t, append([]string{"adopt", dir, "--kubeconfig", "runtime=" + kubeconfig}, args...)...)
	}
	o := adopt("--approve", "1f")
	assert.Equal(t, 2, o.code)
	assert.Contains(t, o.stderr, "--approve is for --stop")
	o = adopt("--stop", "--undo")
	assert.Equal(t, 2, o.code)

	require.NoError(t, c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "garden"}}))
	for _, name := range []string{"garden-dns-local", "virtual-garden-etcd-main-backup-local"} {
		require.NoError(t, c.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: name}}))
	}
	garden := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal([]byte(readDemoFile(t, "garden/garden.yaml")), &garden.Object))
	require.NoError(t, unstructured.SetNestedField(garden.Object, "another", "spec", "virtualCluster", "gardener", "clusterIdentity"))
	require.NoError(t, c.Create(t.Context(), garden, client.FieldOwner("kubectl-client-side-apply")))
	garden.Object["status"] = map[string]any{"gardener": map[string]any{"id": "a", "name": "gardener-operator-1", "version": "v1.150.1"},
		"lastOperation": map[string]any{"state": "Succeeded", "type": "Reconcile", "progress": int64(100), "description": "done", "lastUpdateTime": "2026-01-01T00:00:00Z"}}
	require.NoError(t, c.Status().Update(t.Context(), garden))
	labels := map[string]string{"app": "gardener-operator"}
	require.NoError(t, c.Create(t.Context(), &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "gardener-operator"}, Spec: appsv1.DeploymentSpec{
		Replicas: ptr.To[int32](3), Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "registry.example.org/operator:v1.150.1"}}}},
	}}))

	o = adopt()
	require.NotEmpty(t, o.stdout, "%+v", o)
	assert.Equal(t, 1, o.code, "%+v", o)
	assert.Contains(t, o.stdout, "Blocks the takeover:\n  runtime: Garden local: spec.virtualCluster.gardener.clusterIdentity differs from the file\n"+
		"      spec.virtualCluster.gardener.clusterIdentity: \"another\" → \"local\"\n    → write the live value into the file: ")
	assert.Contains(t, o.stdout, "ca would be regenerated: everything that it signed or encrypted would become invalid\n    → label the Secret that has its data: kubectl -n garden label secret NAME secrets-manager-use-data-for-name=ca\n")
	assert.Contains(t, o.stdout, "runtime: Deployment garden/gardener-operator: gardener-operator, 3 replicas: Pergola does its work\n")
	assert.Contains(t, o.stdout, "Resolve the blocking findings, then compare again.\n")
	assert.NotContains(t, o.stdout, "Fine:\n")
	assert.Contains(t, adopt("--all").stdout, "Fine:\n  runtime: gardener-operator is v1.150.1, and the catalogue is written for Gardener v1.150.0\n")
	report := decode[adoption.Report](t, adopt("-o", "json"))
	assert.Equal(t, "old", report.Landscape)
	require.Len(t, report.Controllers, 1)
	assert.True(t, report.Controllers[0].MustStop)
	assert.Equal(t, len(report.Findings), report.Summary[adoption.LevelBlocks]+report.Summary[adoption.LevelRestarts]+report.Summary[adoption.LevelChanges]+report.Summary[adoption.LevelNoAction])

	o = adopt("--stop")
	assert.Equal(t, 1, o.code, "%+v", o)
	assert.Contains(t, o.stderr, "nothing was stopped: ")
	o = adopt("--undo")
	assert.Equal(t, 0, o.code, "%+v", o)
	assert.Equal(t, "There was nothing to start.\n", o.stdout)
	var operator appsv1.Deployment
	require.NoError(t, c.Get(t.Context(), client.ObjectKey{Namespace: "garden", Name: "gardener-operator"}, &operator))
	assert.Equal(t, int32(3), *operator.Spec.Replicas)
}

// TestNextStepOfAdopt: the next step follows from the remaining work.
func TestNextStepOfAdopt(t *testing.T) {
	stops := []adoption.Controller{{Name: "gardener-operator", MustStop: true, Replicas: 1}}
	changes := []adoption.Finding{{Level: adoption.LevelChanges, Text: "x"}}
	for name, c := range map[string]struct {
		report adoption.Report
		want   string
	}{
		"something runs":            {adoption.Report{Controllers: stops, Findings: changes}, " Next: pergola adopt dir --stop.\n"},
		"something blocks":          {adoption.Report{Controllers: stops, Findings: []adoption.Finding{{Level: adoption.LevelBlocks}}}, " Resolve the blocking findings, then compare again.\n"},
		"all is stopped":            {adoption.Report{HasStopped: true, Findings: changes}, " Controllers are stopped: pergola apply dir takes over, pergola adopt dir --undo starts them again.\n"},
		"nothing runs":              {adoption.Report{Findings: changes}, " There is nothing to stop. Next: pergola apply dir.\n"},
		"nothing has to be stopped": {adoption.Report{Controllers: []adoption.Controller{{Name: "gardener-scheduler", Replicas: 1}}, Findings: changes}, " There is nothing to stop. Next: pergola apply dir.\n"},
		"Pergola has all":           {adoption.Report{Findings: []adoption.Finding{{Level: adoption.LevelNoAction}}}, " There is nothing to stop or to take over.\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			(&adoptCommand{}).printReport(&out, &c.report, "dir")
			assert.True(t, strings.HasSuffix(out.String(), c.want), out.String())
		})
	}
}
