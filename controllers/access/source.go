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

// Source says where the access to an API server is found.
type Source struct {
	// Of is what it leads to, and MadeWith what makes its Secret, as errors name them: "the virtual
	// garden", "the Garden".
	Of, MadeWith string
	// Secret has the kubeconfig, Read reads it.
	Secret types.NamespacedName
	Read   Reader
	// Inside is the address in the cluster of the Secret, for errors: requests go where the
	// kubeconfig says.
	Inside string
	// Outside gives the address from elsewhere, which takes the place of one that only that cluster
	// knows. Nil in that cluster.
	Outside func(context.Context) (string, error)
	// Proxy is the one that the cluster of the Secret is reached by: who needs it needs it for this
	// API server, too. A kubeconfig that has its own uses that. Nil is as for all requests:
	// HTTPS_PROXY and NO_PROXY of the environment.
	Proxy func(*http.Request) (*url.URL, error)
	Clock clock.PassiveClock
}

// Reader reads a Secret.
type Reader func(ctx context.Context, key types.NamespacedName) (*corev1.Secret, error)

// ReaderOf reads Secrets of a cluster.
func ReaderOf(config *rest.Config) (Reader, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, key types.NamespacedName) (*corev1.Secret, error) {
		return client.CoreV1().Secrets(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
	}, nil
}

// OfVirtualGarden is the source of access to the virtual garden.
func OfVirtualGarden(read Reader, clk clock.PassiveClock) Source {
	return Source{
		Of: "the virtual garden", MadeWith: "the Garden", Secret: types.NamespacedName{Namespace: NamespaceOfGarden, Name: SecretName},
		Read: read, Inside: VirtualGarden, Clock: clk,
	}
}

// OfShoot is the source of access to a Shoot whose control plane is in a namespace of the seed.
func OfShoot(shoot, namespace string, read Reader, clk clock.PassiveClock) Source {
	return Source{
		Of: "the API server of Shoot " + shoot, MadeWith: "the Shoot", Secret: types.NamespacedName{Namespace: namespace, Name: SecretName},
		Read: read, Inside: "https://kube-apiserver." + namespace + ".svc.cluster.local", Clock: clk,
	}
}

// OfRegisteredSeed is the source of a gardenlet's access to the virtual garden, in a Secret of its
// seed that whoever registers the seed makes.
func OfRegisteredSeed(secret types.NamespacedName, read Reader, clk clock.PassiveClock) Source {
	return Source{Of: "the virtual garden", MadeWith: "the registration of the seed", Secret: secret, Read: read, Inside: VirtualGarden, Clock: clk}
}

// MissingError says that there is no access yet.
type MissingError struct {
	Of, MadeWith string
	Secret       types.NamespacedName
}

func (e *MissingError) Error() string {
	return fmt.Sprintf("%s has no access yet: Secret %s is made with %s", e.Of, e.Secret, e.MadeWith)
}

// IsMissing tells whether a request failed because there is no access yet.
func IsMissing(err error) bool { return errors.As(err, new(*MissingError)) }

// read gives what the Secret leads to, and a text that is another one when that is.
func (s Source) read(ctx context.Context) (config *rest.Config, version string, err error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	secret, err := s.Read(ctx, s.Secret)
	switch {
	case apierrors.IsNotFound(err):
		return nil, "", &MissingError{Of: s.Of, MadeWith: s.MadeWith, Secret: s.Secret}
	case err != nil:
		return nil, "", fmt.Errorf("access to %s: reading Secret %s: %w", s.Of, s.Secret, err)
	}
	outside := ""
	if s.Outside != nil {
		if outside, err = s.Outside(ctx); err != nil {
			return nil, "", fmt.Errorf("access to %s: %w", s.Of, err)
		}
	}
	if config, err = configOf(secret, outside); err != nil {
		return nil, "", fmt.Errorf("access to %s, Secret %s: %w", s.Of, s.Secret, err)
	}
	if config.Proxy == nil {
		config.Proxy = s.Proxy
	}
	return config, digest(secret.Data[Key]) + " " + config.Host, nil
}

// readTimeout is how long reading the Secret may take.
const readTimeout = 10 * time.Second
