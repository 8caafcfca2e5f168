// SPDX-License-Identifier: Apache-2.0

package variants

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/pergola-dev/pergola/hack/writeprobe"
)

// TestRotationOfAllCredentials rotates all credentials of the Garden under load. Data in etcd is
// encrypted with a new key. Old tokens and certificates are valid exactly until the end of the
// rotation, and clients that switch in between see no interruption.
func TestRotationOfAllCredentials(t *testing.T) {
	before := connectGarden(t)
	namespace := before.ensureNamespace(t, "rotation")
	_, err := before.apiClient.CoreV1().Secrets(namespace).Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "old"}, StringData: map[string]string{"a": "b"}}, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		require.NoError(t, err)
	}
	oldToken := before.newToken(t, namespace)
	stored := func(p *controlPlaneClient) string {
		return encryptionKeyName(p.etcd(t, "main").get("/registry/secrets/" + namespace + "/old").value)
	}
	oldKey := stored(before)
	w := writeprobe.Start(t.Context(), before.apiClient, namespace)
	t.Cleanup(func() { w.Stop() })
	newcomers := before.queryContinuously(t)

	garden := runGardenOperation(t, "rotate-credentials-start")
	assert.Equal(t, map[string]string{
		"certificateAuthorities": "Prepared", "serviceAccountKey": "Prepared", "workloadIdentityKey": "Prepared", "etcdEncryptionKey": "Completed", "observability": "",
	}, garden.phases())
	assert.Empty(t, garden.Metadata.Annotations["gardener.cloud/operation"])
	prepared := connectGarden(t)
	newKey := stored(prepared)
	assert.NotEqual(t, oldKey, newKey, "what was there is written anew with the new key")
	newToken := prepared.newToken(t, namespace)
	assert.NotEqual(t, tokenKeyID(t, oldToken), tokenKeyID(t, newToken))
	assert.NotEqual(t, before.config.CertData, prepared.config.CertData)
	for name, token := range map[string]string{"the token of before": oldToken, "the new one": newToken} {
		assert.NoError(t, prepared.requireTokenAccepted(t, token), name)
	}
	_, err = before.apiClient.CoreV1().Namespaces().Get(t.Context(), namespace, metav1.GetOptions{})
	assert.NoError(t, err, "who has not changed over yet is served")
	for _, s := range prepared.accessTokens(t) {
		assert.Equal(t, tokenKeyID(t, newToken), tokenKeyID(t, s), "processes of the control plane have tokens of the new key")
	}
	w.UseClient(prepared.apiClient)

	garden = runGardenOperation(t, "rotate-credentials-complete")
	for _, kind := range []string{"certificateAuthorities", "serviceAccountKey", "workloadIdentityKey", "etcdEncryptionKey"} {
		assert.Equal(t, "Completed", garden.phases()[kind], kind)
	}
	counts := w.Stop()
	t.Logf("%d writes, %d lost connections", counts.Written, counts.LostConnections)
	assert.Empty(t, counts.Failed, "requests that failed, other than by a lost connection")
	came, refused := newcomers()
	assert.Empty(t, refused, "somebody was refused with the access that he had just read")
	assert.NotZero(t, came)
	after := connectGarden(t)
	assert.Equal(t, newKey, stored(after))
	assert.NoError(t, after.requireTokenAccepted(t, newToken))
	assert.True(t, apierrors.IsUnauthorized(after.requireTokenAccepted(t, oldToken)), "what the old key has signed counts no more")
	_, err = before.apiClient.CoreV1().Namespaces().Get(t.Context(), namespace, metav1.GetOptions{})
	assert.Error(t, err, "the certificates of before are worth nothing")
	configuration := after.secretsOf(t, "role=kube-apiserver-etcd-encryption-configuration")
	require.NotEmpty(t, configuration)
	newest := slices.MaxFunc(configuration, func(a, b corev1.Secret) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	assert.NotContains(t, string(newest.Data["encryption-configuration.yaml"]), oldKey)
}

// rotatedGarden has the needed fields of a Garden.
type rotatedGarden struct {
	Metadata struct {
		Annotations map[string]string `json:"annotations"`
	} `json:"metadata"`
	Status struct {
		Credentials struct {
			Rotation map[string]struct {
				Phase string `json:"phase"`
			} `json:"rotation"`
		} `json:"credentials"`
		LastOperation struct {
			State, Description string
		} `json:"lastOperation"`
	} `json:"status"`
}

func (g rotatedGarden) phases() map[string]string {
	out := map[string]string{}
	for kind, r := range g.Status.Credentials.Rotation {
		out[kind] = r.Phase
	}
	return out
}

// runGardenOperation requests an operation, as kubectl would, and applies the landscape, which runs
// it.
func runGardenOperation(t *testing.T, operation string) (out rotatedGarden) {
	t.Helper()
	client, err := localClient(runtimeCluster)
	require.NoError(t, err)
	const path = "/apis/operator.gardener.cloud/v1alpha1/gardens/local"
	patch := fmt.Sprintf(`{"metadata":{"annotations":{"gardener.cloud/operation":%q}}}`, operation)
	require.NoError(t, client.RESTClient().Patch(types.MergePatchType).AbsPath(path).Body([]byte(patch)).Do(t.Context()).Error())
	ctx, cancel := context.WithTimeout(t.Context(), 2*waitTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, env.Pergola, "apply", filepath.Join(env.dir, "landscape"), "--timeout", waitTimeout.String())
	cmd.Env = append(os.Environ(), "KUBECONFIG="+env.kubeconfig, "SOPS_AGE_KEY_FILE="+filepath.Join(env.Root, "landscapes/local/.sops/age.key"))
	text, err := cmd.CombinedOutput()
	require.NoError(t, err, string(text))
	raw, err := client.RESTClient().Get().AbsPath(path).DoRaw(t.Context())
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(raw, &out))
	assert.Equal(t, "Succeeded", out.Status.LastOperation.State, out.Status.LastOperation.Description)
	return out
}

// queryContinuously query the virtual garden continuously, each with the current credentials. The
// result stops them, and returns the number of answers and the rejections.
func (p *controlPlaneClient) queryContinuously(t *testing.T) func() (came int, refused []string) {
	ctx, cancel := context.WithCancel(t.Context())
	var (
		ended   = make(chan struct{})
		came    int
		refused []string
	)
	come := func() error {
		secret, err := p.hostClient.CoreV1().Secrets(p.namespace).Get(ctx, "gardener-internal", metav1.GetOptions{})
		if err != nil {
			return err
		}
		config, err := clientcmd.RESTConfigFromKubeConfig(secret.Data["kubeconfig"])
		if err != nil {
			return err
		}
		config.Proxy, config.QPS, config.WarningHandler = p.config.Proxy, p.config.QPS, p.config.WarningHandler
		config.ServerName, config.Host = p.config.ServerName, p.config.Host
		api, err := kubernetes.NewForConfig(config)
		if err != nil {
			return err
		}
		_, err = api.CoreV1().Namespaces().Get(ctx, "default", metav1.GetOptions{})
		return err
	}
	go func() {
		defer close(ended)
		tick := time.NewTicker(250 * time.Millisecond)
		defer tick.Stop()
		for ctx.Err() == nil {
			switch err := come(); {
			case err == nil:
				came++
			case apierrors.IsUnauthorized(err), errors.As(err, new(*tls.CertificateVerificationError)):
				refused = append(refused, err.Error())
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
			}
		}
	}()
	return func() (int, []string) {
		cancel()
		<-ended
		return came, refused
	}
}

// encryptionKeyName returns the name of the encryption key of a value.
func encryptionKeyName(value string) string {
	parts := strings.SplitN(value, ":", 6)
	if len(parts) < 5 || parts[1] != "enc" {
		return ""
	}
	return parts[4]
}

// newToken returns a token of a ServiceAccount without rights.
func (p *controlPlaneClient) newToken(t *testing.T, namespace string) string {
	t.Helper()
	accounts := p.apiClient.CoreV1().ServiceAccounts(namespace)
	_, err := accounts.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "somebody"}}, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		require.NoError(t, err)
	}
	token, err := accounts.CreateToken(t.Context(), "somebody", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	require.NoError(t, err)
	return token.Status.Token
}

// requireTokenAccepted fails unless a token is accepted.
func (p *controlPlaneClient) requireTokenAccepted(t *testing.T, token string) error {
	t.Helper()
	_, err := p.clientWithToken(t, token).AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	return err
}

// tokenKeyID returns the id of the key that signed a token.
func tokenKeyID(t *testing.T, token string) string {
	t.Helper()
	raw, err := base64.RawURLEncoding.DecodeString(strings.Split(token, ".")[0])
	require.NoError(t, err)
	var header struct {
		KeyID string `json:"kid"`
	}
	require.NoError(t, json.Unmarshal(raw, &header))
	return header.KeyID
}

func (p *controlPlaneClient) secretsOf(t *testing.T, selector string) []corev1.Secret {
	t.Helper()
	list, err := p.hostClient.CoreV1().Secrets(p.namespace).List(t.Context(), metav1.ListOptions{LabelSelector: selector})
	require.NoError(t, err)
	return list.Items
}

// accessTokens returns the tokens of the control plane's processes.
func (p *controlPlaneClient) accessTokens(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, s := range p.secretsOf(t, "resources.gardener.cloud/purpose=token-requestor,resources.gardener.cloud/class=shoot") {
		if token := string(s.Data["token"]); token != "" {
			out[s.Name] = token
		}
	}
	require.NotEmpty(t, out)
	return out
}
