// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/prometheus/client_golang/api"
	"k8s.io/client-go/rest"

	"github.com/pergola-dev/pergola/internal/addresses"
)

// serverPort is the port of a server.
const serverPort = 9090

// ServerAccess is a way to the servers of a cluster.
type ServerAccess struct {
	// NewClient returns a client for one pod of an instance.
	NewClient func(namespace, pod string) (api.Client, error)
	// MayBeBlocked means that the way may be blocked while all is well. An unreachable server is
	// then not reported.
	MayBeBlocked bool
}

// PodName returns the name of a pod that prometheus-operator creates for an instance.
func PodName(instance string, replica int64) string {
	return fmt.Sprintf("prometheus-%s-%d", instance, replica)
}

// InClusterAccess reaches servers as other pods do: by pod names of the Service
// prometheus-operated. It uses the dialer and proxy of config, the cluster's config.
func InClusterAccess(config *rest.Config) ServerAccess {
	transport := &http.Transport{Proxy: config.Proxy, DialContext: config.Dial, DisableKeepAlives: true}
	return ServerAccess{NewClient: func(namespace, pod string) (api.Client, error) {
		return api.NewClient(api.Config{Address: fmt.Sprintf("http://%s.prometheus-operated.%s.svc:%d", pod, namespace, serverPort), RoundTripper: transport})
	}}
}

// APIServerAccess reaches servers through the API server of their cluster, with the rights of
// config (pods/proxy). Network policies may block it.
func APIServerAccess(config *rest.Config) ServerAccess {
	return ServerAccess{MayBeBlocked: true, NewClient: func(namespace, pod string) (api.Client, error) {
		server, _, err := rest.DefaultServerUrlFor(config)
		if err != nil {
			return nil, fmt.Errorf("reading the address of the API server: %w", addresses.RedactError(err))
		}
		transport, err := rest.TransportFor(config)
		if err != nil {
			// The cause may quote them.
			return nil, errors.New("the certificates of the kubeconfig cannot be used")
		}
		at := server.JoinPath("api", "v1", "namespaces", namespace, "pods", fmt.Sprintf("%s:%d", pod, serverPort), "proxy")
		return api.NewClient(api.Config{Address: at.String(), RoundTripper: transport})
	}}
}
