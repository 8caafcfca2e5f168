// SPDX-License-Identifier: Apache-2.0

package health

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// CheckService fails if a Service of type LoadBalancer has no address yet
// (pkg/utils/kubernetes/health/service.go).
func CheckService(obj *unstructured.Unstructured) error { return toError(checkService(obj)) }

func checkService(obj *unstructured.Unstructured) *Failure {
	if stringAt(obj, "spec", "type") == "LoadBalancer" && len(listAt(obj.Object, "status", "loadBalancer", "ingress")) == 0 {
		return waitf("the load balancer has no address yet")
	}
	return nil
}
