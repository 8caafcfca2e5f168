// SPDX-License-Identifier: Apache-2.0

package landscape

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

// rotatingSecrets are requests of each kind that rotates.
const rotatingSecrets = `
	ca: {kind: "ca", commonName: "test", rotation: "keepOld"}
	server: {kind: "certificate", certType: "server", commonName: "test", signingCA: "ca", rotation: "inPlace"}
	"service-account-key": {kind: "rsaPrivateKey", bits: 2048, rotation: "keepOld", persist: true}
	"kube-apiserver-etcd-encryption-key": {kind: "etcdEncryptionKey", provider: "aescbc", rotation: "keepOld", persist: true}
	"configuration": {kind: "etcdEncryptionConfiguration", key: "kube-apiserver-etcd-encryption-key", resources: ["secrets"]}
`

// gardenRequests is a Garden that receives operations.
type gardenRequests struct {
	*derivedLandscape
	gardens dynamic.ResourceInterface
}

func (a *gardenRequests) garden() *unstructured.Unstructured {
	a.Helper()
	out, err := a.gardens.Get(testContext(a.T), "derived", metav1.GetOptions{})
	require.NoError(a, err)
	return out
}

func (a *gardenRequests) requestOperation(operation string) {
	a.Helper()
	_, err := a.gardens.Patch(testContext(a.T), "derived", types.MergePatchType, []byte(`{"metadata":{"annotations":{"gardener.cloud/operation":"`+operation+`"}}}`), metav1.PatchOptions{})
	require.NoError(a, err)
}

// rotationPhases returns the phases of the rotations that have one.
func (a *gardenRequests) rotationPhases() map[string]string {
	a.Helper()
	out := map[string]string{}
	rotations, _, err := unstructured.NestedMap(a.garden().Object, "status", "credentials", "rotation")
	require.NoError(a, err)
	for kind := range rotations {
		if phase, has, _ := unstructured.NestedString(rotations, kind, "phase"); has {
			out[kind] = phase
		}
	}
	return out
}

// generatedSecretNames returns the names of generated Secrets by the name of their request, with a
// suffix for bundles.
func (a *gardenRequests) generatedSecretNames() map[string][]string {
	a.Helper()
	list, err := a.client.CoreV1().Secrets("garden").List(testContext(a.T), metav1.ListOptions{})
	require.NoError(a, err)
	out := map[string][]string{}
	for _, s := range list.Items {
		if name := s.Labels["name"]; name != "" && s.Labels["managed-by"] == "secrets-manager" {
			out[name] = append(out[name], s.Name)
		}
	}
	return out
}

// TestGardenOperations checks that operations of a Garden are detected, run once and
// removed, and that rotations and their Secrets pass through the phases.
func TestGardenOperations(t *testing.T) {
	needsServer(t)
	d := newDerivedLandscape(t, map[string]string{"garden.yaml": derivedGarden}, rotatingSecrets)
	_, err := d.client.CoreV1().Namespaces().Create(testContext(t), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "garden"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	d.createAccess()
	d.deleteObjectsAtEnd("inside")
	client, err := dynamic.NewForConfig(d.runtime)
	require.NoError(t, err)
	a := &gardenRequests{d, client.Resource(schema.GroupVersionResource{Group: "operator.gardener.cloud", Version: "v1alpha1", Resource: "gardens"})}
	apply := func() error {
		_, err := d.converger.Apply(testContext(t))
		return err
	}
	require.NoError(t, apply())
	assert.Empty(t, a.rotationPhases())
	provider, _, _ := unstructured.NestedString(a.garden().Object, "status", "credentials", "encryptionAtRest", "provider", "type")
	assert.Equal(t, "aescbc", provider, "the status says what is in etcd")
	first := a.generatedSecretNames()

	told := make(chan struct{}, 9)
	watching, stop := context.WithCancel(testContext(t))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		d.converger.WatchGardenRequests(watching, func() { told <- struct{}{} })
	}()
	keeping := make(chan error, 1)
	go func() { keeping <- d.converger.Maintain(watching) }()
	a.requestOperation("rotate-credentials-start")
	<-told
	stop()
	<-ended
	require.NoError(t, <-keeping)

	require.NoError(t, apply())
	assert.NotContains(t, a.garden().GetAnnotations(), "gardener.cloud/operation")
	assert.Equal(t, map[string]string{"certificateAuthorities": "Prepared", "serviceAccountKey": "Prepared", "workloadIdentityKey": "Prepared", "etcdEncryptionKey": "Completed"}, a.rotationPhases())
	prepared := a.generatedSecretNames()
	for _, name := range []string{"ca", "service-account-key"} {
		assert.Len(t, prepared[name], 2, "the old one and the new one: %s", name)
	}
	assert.Len(t, prepared["kube-apiserver-etcd-encryption-key"], 1, "its rotation is completed")
	assert.NotEqual(t, first["kube-apiserver-etcd-encryption-key"], prepared["kube-apiserver-etcd-encryption-key"])
	assert.Equal(t, first["server"], prepared["server"], "servers show what everybody knows")
	require.NoError(t, apply())
	assert.Equal(t, prepared, a.generatedSecretNames(), "nothing happens until somebody says so")
	assert.Equal(t, []string{"rotation of certificateAuthorities, serviceAccountKey, workloadIdentityKey: Prepared; when all clients have switched, request rotate-credentials-complete"},
		d.converger.Status(testContext(t), StatusOptions{}).Owners[0].Rotations, "who looks at the status later is told, too")

	a.requestOperation("rotate-serviceaccount-key-start;rotate-ca-complete")
	err = apply()
	require.ErrorContains(t, err, `rotate-serviceaccount-key-start: the previous rotation of serviceAccountKey must be Completed first; it is "Prepared"`)
	assert.Equal(t, "Completed", a.rotationPhases()["certificateAuthorities"], "what could be done was done")
	operation, _, _ := unstructured.NestedString(a.garden().Object, "status", "lastOperation", "description")
	assert.Contains(t, operation, "rotate-serviceaccount-key-start")
	assert.NotContains(t, a.garden().GetAnnotations(), "gardener.cloud/operation")
	require.NoError(t, apply(), "what was refused is not asked for any more")
	state, _, _ := unstructured.NestedString(a.garden().Object, "status", "lastOperation", "state")
	assert.Equal(t, "Succeeded", state)

	a.requestOperation("rotate-serviceaccount-key-complete;rotate-workload-identity-key-complete")
	require.NoError(t, apply())
	for kind, phase := range a.rotationPhases() {
		assert.Equal(t, "Completed", phase, kind)
	}
	after := a.generatedSecretNames()
	for name, secrets := range after {
		if !strings.HasSuffix(name, "bundle") {
			assert.Len(t, secrets, 1, "%s: the old one is gone", name)
		}
	}
	assert.NotEqual(t, first["server"], after["server"], "servers show what the new CA has signed")
}
