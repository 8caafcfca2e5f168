package secrets

import (
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// cluster starts an API server for one test.
func cluster(t *testing.T) kubernetes.Interface {
	t.Helper()
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		t.Skip("KUBEBUILDER_ASSETS is not set: no API server to test with (make test sets it)")
	}
	env := &envtest.Environment{}
	config, err := env.Start()
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, env.Stop()) })
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	for _, ns := range []string{"garden", "race"} {
		_, err = client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	return client
}

func TestOnARealAPIServer(t *testing.T) {
	client := cluster(t)
	store := NewStore(client)
	clk := clocktesting.NewFakeClock(time.Now().Truncate(time.Second))
	configs := parse(t, requests)
	manager := func(namespace string, opts ...Option) *Manager {
		return New(store, namespace, "gardener-operator", clk, append([]Option{WithKeyBits(testBits)}, opts...)...)
	}
	versions := func(namespace string) map[string]string {
		list, err := client.CoreV1().Secrets(namespace).List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		out := map[string]string{}
		for _, s := range list.Items {
			out[s.Name] = s.ResourceVersion
		}
		return out
	}

	first := manager("garden")
	refs, err := first.GenerateAll(t.Context(), configs)
	require.NoError(t, err)
	before := versions("garden")
	require.NotEmpty(t, before)

	t.Run("found again by another process, without a write", func(t *testing.T) {
		second := manager("garden")
		again, err := second.GenerateAll(t.Context(), configs)
		require.NoError(t, err)
		assert.Equal(t, refs, again)
		assert.Equal(t, first.Facts(), second.Facts())
		assert.Equal(t, before, versions("garden"))
	})
	t.Run("types and immutability", func(t *testing.T) {
		s, err := client.CoreV1().Secrets("garden").Get(t.Context(), first.Facts()["kube-apiserver"].Name, metav1.GetOptions{})
		require.NoError(t, err)
		assert.Equal(t, corev1.SecretTypeTLS, s.Type)
		s.Data[keyTLSKey] = []byte("x")
		_, err = client.CoreV1().Secrets("garden").Update(t.Context(), s, metav1.UpdateOptions{})
		assert.True(t, apierrors.IsInvalid(err), "%v", err)
	})
	t.Run("labels taken away come back, foreign ones stay", func(t *testing.T) {
		name := first.Facts()["service-account-key"].Name
		patch := []byte(`{"metadata":{"labels":{"persist":null,"foreign":"stays"}}}`)
		_, err := client.CoreV1().Secrets("garden").Patch(t.Context(), name, "application/merge-patch+json", patch, metav1.PatchOptions{})
		require.NoError(t, err)
		_, err = manager("garden").GenerateAll(t.Context(), configs)
		require.NoError(t, err)
		s, err := client.CoreV1().Secrets("garden").Get(t.Context(), name, metav1.GetOptions{})
		require.NoError(t, err)
		assert.Equal(t, "true", s.Labels[labelPersist])
		assert.Equal(t, "stays", s.Labels["foreign"])
	})
	t.Run("rotation and clean-up", func(t *testing.T) {
		clk.Step(time.Hour)
		m := manager("garden", WithRotationTimes(map[string]time.Time{"ca": clk.Now(), "ca-client": clk.Now()}))
		rotated, err := m.GenerateAll(t.Context(), configs)
		require.NoError(t, err)
		_, err = client.CoreV1().Secrets("garden").Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "bystander",
			Labels: map[string]string{labelManagedBy: valueSecretsManager, labelManagerIdentity: "gardenlet"}}}, metav1.CreateOptions{})
		require.NoError(t, err)
		deleted, err := m.Cleanup(t.Context())
		require.NoError(t, err)
		assert.NotEmpty(t, deleted)
		left := versions("garden")
		assert.Contains(t, left, "bystander", "another identity's secrets are not touched")
		for _, ref := range rotated {
			assert.Contains(t, left, ref.Secret)
		}
		assert.Contains(t, left, refs[indexOf(refs, "ca")].Secret, "the old CA is kept")
		_, err = manager("garden").GenerateAll(t.Context(), configs)
		require.NoError(t, err)
		assert.Equal(t, left, versions("garden"), "the rotation is read from the cluster")
	})
	t.Run("two processes at once agree", func(t *testing.T) {
		managers := []*Manager{manager("race"), manager("race"), manager("race")}
		var wg sync.WaitGroup
		for _, m := range managers {
			require.NoError(t, m.load(t.Context()), "all have seen an empty namespace")
			wg.Go(func() {
				_, err := m.GenerateAll(t.Context(), configs)
				assert.NoError(t, err)
			})
		}
		wg.Wait()
		assert.Equal(t, managers[0].Facts(), managers[1].Facts())
		assert.Equal(t, managers[0].Facts(), managers[2].Facts())
	})
	t.Run("an error names the namespace and the secret", func(t *testing.T) {
		_, err := manager("nowhere").Generate(t.Context(), configs[indexOf(refs, "ca")])
		require.Error(t, err)
		assert.True(t, apierrors.IsNotFound(err))
		assert.True(t, strings.Contains(err.Error(), `secret "ca" in namespace nowhere`), err)
	})
}

func indexOf(refs []Ref, name string) int {
	for i, r := range refs {
		if r.Name == name {
			return i
		}
	}
	return -1
}
