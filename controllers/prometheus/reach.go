package prometheus

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/prometheus/client_golang/api"
	"k8s.io/client-go/rest"

	"github.com/pergola-dev/pergola/internal/addresses"
)

// port is where a server listens.
const port = 9090

// Reach is a way to the servers of a cluster.
type Reach struct {
	// Client is for one pod of an instance.
	Client func(namespace, pod string) (api.Client, error)
	// Doubtful says that the way may be closed while all is well: nothing is said of servers that
	// do not answer then.
	Doubtful bool
}

// Pod is the name of one that prometheus-operator makes of an instance.
func Pod(instance string, replica int64) string {
	return fmt.Sprintf("prometheus-%s-%d", instance, replica)
}

// Inside reaches servers as other pods do: by the names of their pods, which the Service
// prometheus-operated gives them. config is that of the cluster, whose dialer and proxy count.
func Inside(config *rest.Config) Reach {
	transport := &http.Transport{Proxy: config.Proxy, DialContext: config.Dial, DisableKeepAlives: true}
	return Reach{Client: func(namespace, pod string) (api.Client, error) {
		return api.NewClient(api.Config{Address: fmt.Sprintf("http://%s.prometheus-operated.%s.svc:%d", pod, namespace, port), RoundTripper: transport})
	}}
}

// Outside reaches servers through the API server of their cluster, with the rights of config
// (pods/proxy). Network policies may not let it through.
func Outside(config *rest.Config) Reach {
	return Reach{Doubtful: true, Client: func(namespace, pod string) (api.Client, error) {
		server, _, err := rest.DefaultServerUrlFor(config)
		if err != nil {
			return nil, fmt.Errorf("the address of the API server: %w", addresses.Error(err))
		}
		transport, err := rest.TransportFor(config)
		if err != nil {
			// the cause may quote them
			return nil, errors.New("the certificates of the kubeconfig cannot be used")
		}
		at := server.JoinPath("api", "v1", "namespaces", namespace, "pods", fmt.Sprintf("%s:%d", pod, port), "proxy")
		return api.NewClient(api.Config{Address: at.String(), RoundTripper: transport})
	}}
}
