// SPDX-License-Identifier: Apache-2.0

package owner

import (
	"cmp"
	"context"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pergola-dev/pergola/apply"
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
// one, or nil if there is none or checks are disabled.
func (r *Reconciler) checkPrometheuses(ctx context.Context, o *ownerSession) (*health.Verdict, error) {
	if r.ConditionSettings.PrometheusAccess == nil || o.Input.Owner.Kind != Garden {
		return nil, nil
	}
	found, err := listInNamespace(ctx, o.Local, kindPrometheus, o.ControlPlane(), labels.Set{labelHealthCheckBy: settingsByKind[Garden].fieldManager}, "spec.replicas")
	if err != nil {
		return nil, err
	}
	var pods []string
	for _, p := range found {
		replicas, set, _ := unstructured.NestedInt64(p.Object, "spec", "replicas")
		if !set {
			replicas = 1
		}
		for i := range replicas {
			pods = append(pods, prometheus.PodName(p.GetName(), i))
		}
	}
	reach := r.ConditionSettings.PrometheusAccess(o.Local.RESTConfig())
	verdicts := make([]*health.Verdict, len(pods))
	var group sync.WaitGroup
	for i, pod := range pods {
		group.Go(func() { verdicts[i] = checkPrometheusPod(ctx, reach, o.ControlPlane(), pod) })
	}
	group.Wait()
	return withLocation(o.Local, cmp.Or(verdicts...)), nil
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
		v.Reason, v.Message = reasonPrometheusError, "its health checks cannot be read: "+strings.Join(apply.Problems(err), "; ")
	default:
		v.Reason, v.Message = reasonPrometheusDown, "its health checks fail, query it for \"healthcheck\" to see which: "+trouble
	}
	return v
}
