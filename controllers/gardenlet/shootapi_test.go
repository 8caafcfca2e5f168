// SPDX-License-Identifier: Apache-2.0

package gardenlet

import (
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/pergola-dev/pergola/controllers/access"
	"github.com/pergola-dev/pergola/controllers/conventions"
	"github.com/pergola-dev/pergola/hack/smallcatalogue"
)

// catalogueWithShootObject returns a catalogue with a ConfigMap in each Shoot.
func catalogueWithShootObject() fstest.MapFS {
	out := catalogueFiles()
	out["shoot/flow.cue"] = smallcatalogue.Flow("shoot", `c: apply: ["c"], inside: {apply: ["inside"], after: c: "applied"}`, `all: remove: ["c", "inside"]`)
	out["shoot/inside/component.cue"] = &fstest.MapFile{Data: []byte("package component\n\ncomponent: {\n\tcondition: \"ControlPlaneHealthy\"\n\tbundles: inside: {cluster: \"shoot\", direct: true, source: cue: [{\n" +
		"\t\tapiVersion: \"v1\"\n\t\tkind: \"ConfigMap\"\n\t\tmetadata: {name: \"inside-\\(owner.controlPlaneNamespace)\", namespace: \"default\"}\n\t}]}\n}\n")}
	return out
}

// serveShootAPI gives a Shoot an API server with a ready pod; the seed's plays its role.
func (p *testSeed) serveShootAPI(controlPlane string) {
	p.Helper()
	client, err := kubernetes.NewForConfig(withoutRateLimit(servers.seed))
	require.NoError(p, err)
	raw, err := clientcmd.Write(clientcmdapi.Config{
		Clusters:  map[string]*clientcmdapi.Cluster{"c": {Server: servers.seed.Host, CertificateAuthorityData: servers.seed.CAData}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{"u": {ClientCertificateData: servers.seed.CertData, ClientKeyData: servers.seed.KeyData}},
		Contexts:  map[string]*clientcmdapi.Context{"x": {Cluster: "c", AuthInfo: "u"}}, CurrentContext: "x",
	})
	require.NoError(p, err)
	_, err = client.CoreV1().Secrets(controlPlane).Create(p.ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: access.SecretName}, Data: map[string][]byte{access.KubeconfigKey: raw}}, metav1.CreateOptions{})
	require.NoError(p, err)
	keys, labels := conventions.ManagedResourceKeys(), map[string]string{"role": "apiserver"}
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}}
	_, err = client.AppsV1().Deployments(controlPlane).Create(p.ctx, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "kube-apiserver", Labels: map[string]string{keys.ManagedByLabel: keys.ManagedByValue}},
		Spec:       appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: template},
	}, metav1.CreateOptions{})
	require.NoError(p, err)
	pod, err := client.CoreV1().Pods(controlPlane).Create(p.ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "kube-apiserver", Labels: labels}, Spec: template.Spec}, metav1.CreateOptions{})
	require.NoError(p, err)
	pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.1.2.3", PodIPs: []corev1.PodIP{{IP: "10.1.2.3"}}}
	_, err = client.CoreV1().Pods(controlPlane).UpdateStatus(p.ctx, pod, metav1.UpdateOptions{})
	require.NoError(p, err)
}

// TestApplyInsideShoot: objects in a Shoot wait for its API server. They are then applied without a
// new reconciliation, and maintained.
func TestApplyInsideShoot(t *testing.T) {
	p := newTestSeed(t)
	p.catalogue = catalogueWithShootObject()
	p.publish("main@sha1:1")
	p.createShoot("one")
	namespace, controlPlane := "garden-"+p.project, p.controlPlane("one")
	inside := "inside-" + controlPlane
	g := p.runGardenlet()
	p.eventually("the Shoot is converged although nobody serves its API server", func() bool { return p.lastOperation("Shoot", namespace, "one", "state") == "Succeeded" })
	assert.NotNil(t, p.seedConfigMap(controlPlane, "c"))
	assert.Nil(t, p.seedConfigMap("default", inside))

	p.serveShootAPI(controlPlane)
	p.eventually("somebody serves", func() bool { return p.seedConfigMap("default", inside) != nil })
	require.NoError(t, p.configMaps("default").Delete(p.ctx, inside, metav1.DeleteOptions{}))
	p.eventually("drift in the Shoot is repaired", func() bool { return p.seedConfigMap("default", inside) != nil })

	require.NoError(t, g.stop())
	require.NoError(t, p.configMaps("default").Delete(p.ctx, inside, metav1.DeleteOptions{}))
}
