// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/pergola-dev/pergola/hack/apiserver"
)

// cluster starts an API server for one test.
func cluster(t *testing.T) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(apiserver.Start(t))
	require.NoError(t, err)
	for _, ns := range []string{"garden", "race"} {
		_, err = client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	return client
}

// clusterFixture is an API server with the secrets of all requests in namespace garden.
type clusterFixture struct {
	client  kubernetes.Interface
	clock   *clocktesting.FakeClock
	configs []Config
	first   *Manager
	refs    []Ref
}

func newClusterFixture(t *testing.T) *clusterFixture {
	s := &clusterFixture{client: cluster(t), clock: clocktesting.NewFakeClock(time.Now().Truncate(time.Second)), configs: parse(t, requests)}
	s.first = s.manager("garden")
	var err error
	s.refs, err = s.first.GenerateAll(t.Context(), s.configs)
	require.NoError(t, err)
	return s
}

func (s *clusterFixture) manager(namespace string, opts ...Option) *Manager {
	return New(NewStore(s.client), namespace, "gardener-operator", s.clock, append([]Option{WithKeyBits(testBits)}, opts...)...)
}

// resourceVersions returns the resource versions of all Secrets by name.
func (s *clusterFixture) resourceVersions(t *testing.T) map[string]string {
	t.Helper()
	list, err := s.client.CoreV1().Secrets("garden").List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	out := map[string]string{}
	for _, secret := range list.Items {
		out[secret.Name] = secret.ResourceVersion
	}
	return out
}

func (s *clusterFixture) get(t *testing.T, request string) *corev1.Secret {
	t.Helper()
	secret, err := s.client.CoreV1().Secrets("garden").Get(t.Context(), s.first.Facts()[request].Name, metav1.GetOptions{})
	require.NoError(t, err)
	return secret
}

func TestManagerWithAPIServer(t *testing.T) {
	s := newClusterFixture(t)
	before := s.resourceVersions(t)
	require.NotEmpty(t, before)

	t.Run("found again by another process, without a write", func(t *testing.T) {
		second := s.manager("garden")
		again, err := second.GenerateAll(t.Context(), s.configs)
		require.NoError(t, err)
		assert.Equal(t, s.refs, again)
		assert.Equal(t, s.first.Facts(), second.Facts())
		assert.Equal(t, before, s.resourceVersions(t))
	})
	t.Run("types and immutability", func(t *testing.T) {
		secret := s.get(t, "kube-apiserver")
		assert.Equal(t, corev1.SecretTypeTLS, secret.Type)
		secret.Data[keyTLSKey] = []byte("x")
		_, err := s.client.CoreV1().Secrets("garden").Update(t.Context(), secret, metav1.UpdateOptions{})
		assert.True(t, apierrors.IsInvalid(err), "%v", err)
	})
	t.Run("labels taken away come back, foreign ones stay", func(t *testing.T) {
		patch := []byte(`{"metadata":{"labels":{"persist":null,"foreign":"stays"}}}`)
		name := s.first.Facts()["service-account-key"].Name
		_, err := s.client.CoreV1().Secrets("garden").Patch(t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{})
		require.NoError(t, err)
		_, err = s.manager("garden").GenerateAll(t.Context(), s.configs)
		require.NoError(t, err)
		assert.Equal(t, "true", s.get(t, "service-account-key").Labels[labelPersist])
		assert.Equal(t, "stays", s.get(t, "service-account-key").Labels["foreign"])
	})
	t.Run("rotation and clean-up", func(t *testing.T) { s.testRotation(t) })
	t.Run("several processes at once agree", func(t *testing.T) { s.testRace(t) })
	t.Run("an error names the namespace and the secret", func(t *testing.T) {
		_, err := s.manager("nowhere").Generate(t.Context(), s.configs[indexOf(s.refs, "ca")])
		require.ErrorContains(t, err, `secret "ca" in namespace nowhere`)
		assert.True(t, apierrors.IsNotFound(err))
	})
}

func (s *clusterFixture) testRotation(t *testing.T) {
	s.clock.Step(time.Hour)
	m := s.manager("garden", WithRotationTimes(map[string]time.Time{"ca": s.clock.Now(), "ca-client": s.clock.Now()}))
	rotated, err := m.GenerateAll(t.Context(), s.configs)
	require.NoError(t, err)
	_, err = s.client.CoreV1().Secrets("garden").Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "bystander",
		Labels: map[string]string{labelManagedBy: valueSecretsManager, labelManagerIdentity: "gardenlet"}}}, metav1.CreateOptions{})
	require.NoError(t, err)
	deleted, err := m.Cleanup(t.Context())
	require.NoError(t, err)
	assert.NotEmpty(t, deleted)

	left := s.resourceVersions(t)
	assert.Contains(t, left, "bystander", "another identity's secrets are not touched")
	for _, ref := range rotated {
		assert.Contains(t, left, ref.Secret)
	}
	assert.Contains(t, left, s.refs[indexOf(s.refs, "ca")].Secret, "the old CA is kept")
	_, err = s.manager("garden").GenerateAll(t.Context(), s.configs)
	require.NoError(t, err)
	assert.Equal(t, left, s.resourceVersions(t), "the rotation is read from the cluster")
}

func (s *clusterFixture) testRace(t *testing.T) {
	managers := []*Manager{s.manager("race"), s.manager("race"), s.manager("race")}
	var wg sync.WaitGroup
	for _, m := range managers {
		require.NoError(t, m.loadExisting(t.Context()), "all have seen an empty namespace")
	}
	for _, m := range managers {
		wg.Go(func() {
			_, err := m.GenerateAll(t.Context(), s.configs)
			assert.NoError(t, err)
		})
	}
	wg.Wait()
	assert.Equal(t, managers[0].Facts(), managers[1].Facts())
	assert.Equal(t, managers[0].Facts(), managers[2].Facts())
}

func indexOf(refs []Ref, name string) int {
	for i, r := range refs {
		if r.Name == name {
			return i
		}
	}
	return -1
}
