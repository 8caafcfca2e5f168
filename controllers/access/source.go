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
	// Names for errors: the API server (Of: "the virtual garden"), and the object that its Secret
	// comes with (MadeWith: "the Garden").
	Of, MadeWith string
	// Secret contains the kubeconfig; Read reads it.
	Secret types.NamespacedName
	Read   Reader
	// Inside is the address in the cluster of the Secret, for errors: requests use the address of
	// the kubeconfig.
	Inside string
	// Outside returns the external address, which replaces one that only that cluster resolves. It
	// is nil for a process in that cluster.
	Outside func(context.Context) (string, error)
	// Proxy is the proxy for the cluster of the Secret, which this API server needs as well. A
	// proxy in the kubeconfig has precedence. Nil uses HTTPS_PROXY and NO_PROXY of the environment.
	Proxy func(*http.Request) (*url.URL, error)
	Clock clock.PassiveClock
}

// Reader reads a Secret.
type Reader func(ctx context.Context, key types.NamespacedName) (*corev1.Secret, error)

// ReaderOf returns a Reader for the Secrets of a cluster.
func ReaderOf(config *rest.Config) (Reader, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, key types.NamespacedName) (*corev1.Secret, error) {
		return client.CoreV1().Secrets(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
	}, nil
}

// OfVirtualGarden returns the source of access to the virtual garden.
func OfVirtualGarden(read Reader, clk clock.PassiveClock) Source {
	return Source{
		Of: "the virtual garden", MadeWith: "the Garden", Secret: types.NamespacedName{Namespace: NamespaceOfGarden, Name: SecretName},
		Read: read, Inside: VirtualGarden, Clock: clk,
	}
}

// OfShoot returns the source of access to a Shoot whose control plane is in a namespace of the
// seed.
func OfShoot(shoot, namespace string, read Reader, clk clock.PassiveClock) Source {
	return Source{
		Of: "the API server of Shoot " + shoot, MadeWith: "the Shoot", Secret: types.NamespacedName{Namespace: namespace, Name: SecretName},
		Read: read, Inside: "https://kube-apiserver." + namespace + ".svc.cluster.local", Clock: clk,
	}
}

// OfRegisteredSeed returns the source of a gardenlet's access to the virtual garden. The
// registration of the seed creates its Secret there.
func OfRegisteredSeed(secret types.NamespacedName, read Reader, clk clock.PassiveClock) Source {
	return Source{Of: "the virtual garden", MadeWith: "the registration of the seed", Secret: secret, Read: read, Inside: VirtualGarden, Clock: clk}
}

// MissingError means that the Secret with the access does not exist yet.
type MissingError struct {
	Of, MadeWith string
	Secret       types.NamespacedName
}

func (e *MissingError) Error() string {
	return fmt.Sprintf("%s has no access yet: Secret %s is made with %s", e.Of, e.Secret, e.MadeWith)
}

// IsMissing reports whether a request failed because the access does not exist yet.
func IsMissing(err error) bool { return errors.As(err, new(*MissingError)) }

// read returns the REST config of the Secret, and a version that changes with it.
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

// readTimeout limits the time to read the Secret.
const readTimeout = 10 * time.Second
