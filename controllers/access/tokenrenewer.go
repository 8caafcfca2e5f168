// SPDX-License-Identifier: Apache-2.0

package access

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

const (
	// rootCAConfigMap is the ConfigMap with the CAs of the API server in each namespace;
	// kube-controller-manager writes it (kubernetes:
	// pkg/controller/certificates/rootcacertpublisher).
	rootCAConfigMap, rootCAKey = "kube-root-ca.crt", "ca.crt"
	// defaultTokenLifetime is requested when the claims of a token have no expiry or no issue time;
	// an API server may grant less.
	defaultTokenLifetime = 30 * 24 * time.Hour
	// renewalFraction is the fraction of a token's lifetime after which it is renewed, as kubelets
	// do for pods.
	renewalFraction = 0.8
)

// ErrNotRenewable means that only the creator of the access can renew it.
var ErrNotRenewable = errors.New("only the token of a ServiceAccount is renewed automatically; renew this one manually")

// TokenRenewer is access to another cluster that a process renews itself: a kubeconfig with the
// token of a ServiceAccount, in a Secret.
type TokenRenewer struct {
	// Connection uses the access; LazyConfig made it.
	Connection *rest.Config
	// Secrets is a client for the Secret that the connection reads; FieldManager writes it.
	Secrets      kubernetes.Interface
	FieldManager string
}

// RenewalTime returns when the access must be renewed, or zero if it does not expire.
func (o TokenRenewer) RenewalTime(ctx context.Context) (time.Time, error) {
	_, current, err := o.readSecret(ctx)
	if err != nil {
		return time.Time{}, err
	}
	if current.expiresAt.IsZero() {
		return time.Time{}, nil
	}
	return current.issuedAt.Add(time.Duration(renewalFraction * float64(current.expiresAt.Sub(current.issuedAt)))), nil
}

// Renew requests a new token, reads the current CAs of the API server, tests both, and writes them
// into the Secret. The connection uses them from then on. If a step fails, the current access
// stays.
func (o TokenRenewer) Renew(ctx context.Context) error {
	from, current, err := o.readSecret(ctx)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(o.Connection)
	if err != nil {
		return fmt.Errorf("access to %s: %w", o.source().Target, err)
	}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: current.lifetimeSeconds()}}
	made, err := client.CoreV1().ServiceAccounts(current.account.Namespace).CreateToken(ctx, current.account.Name, request, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("requesting a token of ServiceAccount %s: %w", current.account, err)
	}
	authorities, err := client.CoreV1().ConfigMaps(current.account.Namespace).Get(ctx, rootCAConfigMap, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("reading the CAs of %s, ConfigMap %s/%s: %w", o.source().Target, current.account.Namespace, rootCAConfigMap, err)
	}
	// A server that does not match its own CAs, for example behind a public certificate, keeps the
	// CAs that the kubeconfig has.
	var tried []error
	for _, bundle := range [][]byte{[]byte(authorities.Data[rootCAKey]), current.cluster.CertificateAuthorityData} {
		if len(bytes.TrimSpace(bundle)) == 0 && len(current.cluster.CertificateAuthorityData) > 0 {
			continue
		}
		raw, err := current.withCredentials(made.Status.Token, bundle)
		if err != nil {
			return err
		}
		if err := o.checkKubeconfig(ctx, raw, current.account); err != nil {
			tried = append(tried, err)
			continue
		}
		return o.writeSecret(ctx, from, raw)
	}
	return fmt.Errorf("the new access to %s does not work: %w", o.source().Target, errors.Join(tried...))
}

func (o TokenRenewer) source() Source { return transportOf(o.Connection).source }

// readSecret returns the Secret and its parsed content.
func (o TokenRenewer) readSecret(ctx context.Context) (*corev1.Secret, *tokenKubeconfig, error) {
	s := o.source()
	secret, err := o.Secrets.CoreV1().Secrets(s.Secret.Namespace).Get(ctx, s.Secret.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil, &MissingError{Target: s.Target, SecretCreator: s.SecretCreator, Secret: s.Secret}
	}
	if err != nil {
		return nil, nil, fmt.Errorf("access to %s: reading Secret %s: %w", s.Target, s.Secret, err)
	}
	current, err := parseTokenKubeconfig(secret.Data[KubeconfigKey])
	if err != nil {
		return nil, nil, fmt.Errorf("access to %s, Secret %s: %w", s.Target, s.Secret, err)
	}
	return secret, current, nil
}

// checkKubeconfig checks that a kubeconfig gives access as the same account.
func (o TokenRenewer) checkKubeconfig(ctx context.Context, raw []byte, account types.NamespacedName) error {
	s, secret := o.source(), &corev1.Secret{Data: map[string][]byte{KubeconfigKey: raw}}
	s.ReadSecret = func(context.Context, types.NamespacedName) (*corev1.Secret, error) { return secret, nil }
	config, _, err := s.loadConfig(ctx)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		// The cause may quote the certificates.
		return errors.New("the certificates of the kubeconfig cannot be used")
	}
	review, err := client.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	if want := serviceAccountUser(account); review.Status.UserInfo.Username != want {
		return fmt.Errorf("%s identifies it as %q, not as %q", s.Target, review.Status.UserInfo.Username, want)
	}
	return nil
}

// writeSecret stores a kubeconfig in the Secret, unless the Secret changed meanwhile, and makes the
// connection reload it.
func (o TokenRenewer) writeSecret(ctx context.Context, from *corev1.Secret, raw []byte) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": from.ResourceVersion}, "data": map[string][]byte{KubeconfigKey: raw}})
	if err != nil {
		return fmt.Errorf("preparing the patch: %T", err) // may quote the content
	}
	if _, err := o.Secrets.CoreV1().Secrets(from.Namespace).Patch(ctx, from.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: o.FieldManager}); err != nil {
		return fmt.Errorf("writing the new access to Secret %s/%s: %w", from.Namespace, from.Name, err)
	}
	t := transportOf(o.Connection)
	if err := t.acquireLock(ctx); err != nil {
		return err
	}
	defer t.releaseLock()
	t.reload(ctx)
	return nil
}

// tokenKubeconfig is a kubeconfig with the token of a ServiceAccount.
type tokenKubeconfig struct {
	config              *clientcmdapi.Config
	cluster             *clientcmdapi.Cluster
	user                *clientcmdapi.AuthInfo
	account             types.NamespacedName
	issuedAt, expiresAt time.Time
}

// parseTokenKubeconfig parses a kubeconfig. Its errors contain nothing of the content.
func parseTokenKubeconfig(raw []byte) (*tokenKubeconfig, error) {
	config, err := clientcmd.Load(raw)
	if err != nil {
		return nil, errors.New("the kubeconfig cannot be read")
	}
	current := config.Contexts[config.CurrentContext]
	if current == nil {
		return nil, errors.New("the kubeconfig has no current context")
	}
	out := &tokenKubeconfig{config: config, cluster: config.Clusters[current.Cluster], user: config.AuthInfos[current.AuthInfo]}
	if out.cluster == nil || out.user == nil {
		return nil, errors.New("the current context of the kubeconfig has no cluster, or no user")
	}
	if out.user.Token == "" {
		return nil, ErrNotRenewable
	}
	claims, err := parseTokenClaims(out.user.Token)
	if err != nil {
		return nil, err
	}
	namespace, name, ok := strings.Cut(strings.TrimPrefix(claims.Subject, serviceAccountUserPrefix), ":")
	if !ok || !strings.HasPrefix(claims.Subject, serviceAccountUserPrefix) {
		return nil, ErrNotRenewable
	}
	out.account = types.NamespacedName{Namespace: namespace, Name: name}
	if claims.IssuedAt > 0 && claims.Expires > claims.IssuedAt {
		out.issuedAt, out.expiresAt = time.Unix(claims.IssuedAt, 0), time.Unix(claims.Expires, 0)
	}
	return out, nil
}

// serviceAccountUserPrefix starts the user names of ServiceAccounts (kubernetes:
// staging/src/k8s.io/apiserver/pkg/authentication/serviceaccount).
const serviceAccountUserPrefix = "system:serviceaccount:"

func serviceAccountUser(account types.NamespacedName) string {
	return serviceAccountUserPrefix + account.Namespace + ":" + account.Name
}

// tokenClaims are the claims of a token. Only the API server can verify them.
type tokenClaims struct {
	Subject  string `json:"sub"`
	IssuedAt int64  `json:"iat"`
	Expires  int64  `json:"exp"`
}

func parseTokenClaims(jwt string) (tokenClaims, error) {
	var out tokenClaims
	parts := strings.Split(jwt, ".")
	if len(parts) != 3 {
		return out, ErrNotRenewable
	}
	raw, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err == nil {
		err = json.Unmarshal(raw, &out)
	}
	if err != nil {
		return out, errors.New("its token cannot be read")
	}
	return out, nil
}

// lifetimeSeconds returns the lifetime to request, in seconds: the same lifetime as the current
// token.
func (t *tokenKubeconfig) lifetimeSeconds() *int64 {
	lifetime := defaultTokenLifetime
	if !t.expiresAt.IsZero() {
		lifetime = t.expiresAt.Sub(t.issuedAt)
	}
	seconds := int64(lifetime / time.Second)
	return &seconds
}

// withCredentials returns the kubeconfig with another token and other CAs.
func (t *tokenKubeconfig) withCredentials(value string, authorities []byte) ([]byte, error) {
	config := t.config.DeepCopy()
	current := config.Contexts[config.CurrentContext]
	config.AuthInfos[current.AuthInfo].Token = value
	if len(authorities) > 0 {
		config.Clusters[current.Cluster].CertificateAuthorityData = authorities
	}
	raw, err := clientcmd.Write(*config)
	if err != nil {
		// may quote the content
		return nil, fmt.Errorf("preparing the kubeconfig: %T", err)
	}
	return raw, nil
}
