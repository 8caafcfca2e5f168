package access

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// SecretName is the name of the Secret, in the namespace of the control plane, and of the request
// for its kubeconfig in the catalogue.
const SecretName = "gardener-internal"

// Key is where the kubeconfig is in the Secret.
const Key = "kubeconfig"

// NamespaceOfGarden is where the control plane of the virtual garden runs.
const NamespaceOfGarden = "garden"

// VirtualGarden is the address of the virtual garden in the runtime cluster.
const VirtualGarden = "https://virtual-garden-kube-apiserver." + NamespaceOfGarden + ".svc.cluster.local"

// dialTimeout is how long a connection may take to be made.
const dialTimeout = 5 * time.Second

// Kubeconfig reads one that came from a Secret. Its errors have nothing of the content.
func Kubeconfig(raw []byte) (*rest.Config, error) {
	config, err := clientcmd.RESTConfigFromKubeConfig(raw)
	if err != nil {
		// the cause may quote it
		return nil, errors.New("the kubeconfig in its Secret cannot be read")
	}
	switch {
	case config.ExecProvider != nil, config.AuthProvider != nil:
		return nil, errors.New("the kubeconfig in its Secret runs a program (exec or auth-provider): put a token or a certificate into it")
	case config.BearerTokenFile != "", config.CAFile != "", config.CertFile != "", config.KeyFile != "":
		return nil, errors.New("the kubeconfig in its Secret refers to files: put their content into it (…-data, token)")
	}
	return config, nil
}

// configOf is what a Secret leads to. outside takes the place of an address that only the cluster
// of the Secret knows; empty for a process in that cluster.
func configOf(secret *corev1.Secret, outside string) (*rest.Config, error) {
	raw := secret.Data[Key]
	if len(raw) == 0 {
		return nil, fmt.Errorf("it has no key %s", Key)
	}
	config, err := Kubeconfig(raw)
	if err != nil {
		return nil, err
	}
	server, _, err := rest.DefaultServerUrlFor(config)
	if err != nil || server.Host == "" {
		return nil, errors.New("the kubeconfig in its Secret has no address that can be read")
	}
	server.User = nil // it would be in errors
	if outside != "" && isInside(server.Hostname()) {
		if server, err = url.Parse(outside); err != nil || server.Host == "" {
			return nil, fmt.Errorf("%q is no address", outside)
		}
	}
	config.Host = server.String()
	config.Dial = (&net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second}).DialContext
	return config, nil
}

// isInside tells a name that only a cluster resolves: one of a Service.
func isInside(host string) bool {
	if host == "localhost" || net.ParseIP(host) != nil {
		return false
	}
	return !strings.Contains(host, ".") || strings.HasSuffix(host, ".svc") || strings.Contains(host, ".svc.")
}
