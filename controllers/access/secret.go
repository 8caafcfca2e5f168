// SPDX-License-Identifier: Apache-2.0

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

// SecretName is the name of the Secret in the namespace of the control plane, and of its kubeconfig
// request in the catalogue.
const SecretName = "gardener-internal"

// KubeconfigKey is the key of the kubeconfig in the Secret.
const KubeconfigKey = "kubeconfig"

// GardenNamespace is the namespace of the virtual garden's control plane.
const GardenNamespace = "garden"

// VirtualGardenURL is the address of the virtual garden in the runtime cluster.
const VirtualGardenURL = "https://virtual-garden-kube-apiserver." + GardenNamespace + ".svc.cluster.local"

// dialTimeout limits the time to open a connection.
const dialTimeout = 5 * time.Second

// ParseKubeconfig parses a kubeconfig from a Secret. Its errors contain nothing of the content.
func ParseKubeconfig(raw []byte) (*rest.Config, error) {
	config, err := clientcmd.RESTConfigFromKubeConfig(raw)
	if err != nil {
		// The cause may quote the content.
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

// restConfigOf returns the REST config of a Secret. outside replaces an address that only the
// cluster of the Secret resolves; it is empty for a process in that cluster.
func restConfigOf(secret *corev1.Secret, outside string) (*rest.Config, error) {
	raw := secret.Data[KubeconfigKey]
	if len(raw) == 0 {
		return nil, fmt.Errorf("it has no key %s", KubeconfigKey)
	}
	config, err := ParseKubeconfig(raw)
	if err != nil {
		return nil, err
	}
	server, _, err := rest.DefaultServerUrlFor(config)
	if err != nil || server.Host == "" {
		return nil, errors.New("the kubeconfig in its Secret has no valid address")
	}
	server.User = nil // errors would contain it
	if outside != "" && isClusterInternalHost(server.Hostname()) {
		if server, err = url.Parse(outside); err != nil || server.Host == "" {
			return nil, fmt.Errorf("%q is not an address", outside)
		}
	}
	config.Host = server.String()
	config.Dial = (&net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second}).DialContext
	return config, nil
}

// isClusterInternalHost reports whether only a cluster resolves a host name, as the name of a
// Service.
func isClusterInternalHost(host string) bool {
	if host == "localhost" || net.ParseIP(host) != nil {
		return false
	}
	return !strings.Contains(host, ".") || strings.HasSuffix(host, ".svc") || strings.Contains(host, ".svc.")
}
