package owner

import (
	"cmp"
	"context"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pergola-dev/pergola/controllers/prometheus"
	"github.com/pergola-dev/pergola/health"
)

// labelHealthCheckBy on a Prometheus names the component that checks its health (upstream's).
const labelHealthCheckBy = "health-check-by"

// Reasons of ObservabilityComponentsHealthy from Prometheus health checks (upstream's).
const (
	reasonPrometheusDown  = "PrometheusHealthCheckDown"
	reasonPrometheusError = "PrometheusHealthCheckError"
)

var kindPrometheus = schema.GroupVersionKind{Group: "monitoring.coreos.com", Version: "v1", Kind: "Prometheus"}

// checkPrometheuses checks all servers of our Prometheus instances, and returns the first unhealthy
// one; nil if there is none or checks are disabled.
func (r *Reconciler) checkPrometheuses(ctx context.Context, o *ownerSession) (*health.Verdict, error) {
	role := settingsByKind[o.Input.Owner.Kind].fieldManager
	if r.ConditionSettings.PrometheusAccess == nil || o.Input.Owner.Kind != Garden {
		return nil, nil
	}
	found, err := listInNamespace(ctx, o.Local, kindPrometheus, o.ControlPlane(), labels.Set{labelHealthCheckBy: role}, "spec.replicas")
	if err != nil {
		return nil, err
	}
	type server struct {
		pod     string
		verdict *health.Verdict
	}
	var servers []*server
	for _, p := range found {
		replicas, set, _ := unstructured.NestedInt64(p.Object, "spec", "replicas")
		if !set {
			replicas = 1
		}
		for i := range replicas {
			servers = append(servers, &server{pod: prometheus.PodName(p.GetName(), i)})
		}
	}
	reach := r.ConditionSettings.PrometheusAccess(o.Local.RESTConfig())
	var group sync.WaitGroup
	for _, s := range servers {
		group.Go(func() { s.verdict = checkPrometheusPod(ctx, reach, o.ControlPlane(), s.pod) })
	}
	group.Wait()
	var first *health.Verdict
	for _, s := range servers {
		first = cmp.Or(first, s.verdict)
	}
	return withLocation(o.Local, first), nil
}

// checkPrometheusPod checks one server.
func checkPrometheusPod(ctx context.Context, reach prometheus.ServerAccess, namespace, pod string) *health.Verdict {
	v := &health.Verdict{Kind: "Pod", Namespace: namespace, Name: pod}
	client, err := reach.NewClient(namespace, pod)
	trouble := ""
	if err == nil {
		trouble, err = prometheus.Check(ctx, client)
	}
	switch {
	case err != nil && reach.MayBeBlocked, err == nil && trouble == "":
		return nil
	case err != nil:
		v.Reason, v.Message = reasonPrometheusError, "its health checks cannot be read: "+strings.Join(Problems(err), "; ")
	default:
		v.Reason, v.Message = reasonPrometheusDown, "its health checks fail, query it for \"healthcheck\" to see which: "+trouble
	}
	return v
}
