// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
)

// Source describes where the access to an API server is stored.
type Source struct {
	// Target and SecretCreator are names for errors: the API server (Of: "the virtual garden"), and
	// the object that its Secret comes with (SecretCreator: "the Garden").
	Target, SecretCreator string
	// Secret contains the kubeconfig; Read reads it.
	Secret     types.NamespacedName
	ReadSecret SecretReader
	// InternalURL is the address in the cluster of the Secret, for errors: requests use the address
	// of the kubeconfig.
	InternalURL string
	// ExternalURL returns the external address, which replaces one that only that cluster resolves.
	// It is nil for a process in that cluster.
	ExternalURL func(context.Context) (string, error)
	// Proxy is the proxy for the cluster of the Secret, which this API server needs as well. A
	// proxy in the kubeconfig has precedence. Nil uses HTTPS_PROXY and NO_PROXY of the environment.
	Proxy func(*http.Request) (*url.URL, error)
	Clock clock.PassiveClock
}

// SecretReader reads a Secret.
type SecretReader func(ctx context.Context, key types.NamespacedName) (*corev1.Secret, error)

// NewSecretReader returns a Reader for the Secrets of a cluster.
func NewSecretReader(config *rest.Config) (SecretReader, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, key types.NamespacedName) (*corev1.Secret, error) {
		return client.CoreV1().Secrets(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
	}, nil
}

// VirtualGardenSource returns the source of access to the virtual garden.
func VirtualGardenSource(read SecretReader, clk clock.PassiveClock) Source {
	return Source{
		Target: "the virtual garden", SecretCreator: "the Garden", Secret: types.NamespacedName{Namespace: GardenNamespace, Name: SecretName},
		ReadSecret: read, InternalURL: VirtualGardenURL, Clock: clk,
	}
}

// ShootSource returns the source of access to a Shoot whose control plane is in a namespace of the
// seed.
func ShootSource(shoot, namespace string, read SecretReader, clk clock.PassiveClock) Source {
	return Source{
		Target: "the API server of Shoot " + shoot, SecretCreator: "the Shoot", Secret: types.NamespacedName{Namespace: namespace, Name: SecretName},
		ReadSecret: read, InternalURL: "https://kube-apiserver." + namespace + ".svc.cluster.local", Clock: clk,
	}
}

// RegisteredSeedSource returns the source of a gardenlet's access to the virtual garden. The
// registration of the seed creates its Secret there.
func RegisteredSeedSource(secret types.NamespacedName, read SecretReader, clk clock.PassiveClock) Source {
	return Source{Target: "the virtual garden", SecretCreator: "the registration of the seed", Secret: secret, ReadSecret: read, InternalURL: VirtualGardenURL, Clock: clk}
}

// MissingError means that the Secret with the access does not exist yet.
type MissingError struct {
	Target, SecretCreator string
	Secret                types.NamespacedName
}

func (e *MissingError) Error() string {
	return fmt.Sprintf("access to %s does not exist yet: Secret %s is created with %s", e.Target, e.Secret, e.SecretCreator)
}

// IsMissing reports whether a request failed because the access does not exist yet.
func IsMissing(err error) bool { return errors.As(err, new(*MissingError)) }

// loadConfig returns the REST config of the Secret, and a version that changes with it.
func (s Source) loadConfig(ctx context.Context) (config *rest.Config, version string, err error) {
	ctx, cancel := context.WithTimeout(ctx, secretReadTimeout)
	defer cancel()
	secret, err := s.ReadSecret(ctx, s.Secret)
	switch {
	case apierrors.IsNotFound(err):
		return nil, "", &MissingError{Target: s.Target, SecretCreator: s.SecretCreator, Secret: s.Secret}
	case err != nil:
		return nil, "", fmt.Errorf("access to %s: reading Secret %s: %w", s.Target, s.Secret, err)
	}
	outside := ""
	if s.ExternalURL != nil {
		if outside, err = s.ExternalURL(ctx); err != nil {
			return nil, "", fmt.Errorf("access to %s: %w", s.Target, err)
		}
	}
	if config, err = restConfigOf(secret, outside); err != nil {
		return nil, "", fmt.Errorf("access to %s, Secret %s: %w", s.Target, s.Secret, err)
	}
	if config.Proxy == nil {
		config.Proxy = s.Proxy
	}
	return config, sha256Hex(secret.Data[KubeconfigKey]) + " " + config.Host, nil
}

// secretReadTimeout limits the time to read the Secret.
const secretReadTimeout = 10 * time.Second
