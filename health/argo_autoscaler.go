// SPDX-License-Identifier: Apache-2.0

package health

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// annotationAutoscalerConditions has the conditions of autoscaling/v1, which has no field for them.
const annotationAutoscalerConditions = "autoscaling.alpha.kubernetes.io/conditions"

// argoAutoscaler checks the reasons of the conditions; any failure decides.
func argoAutoscaler(obj *unstructured.Unstructured) string {
	conditions, err := autoscalerConditions(obj)
	if err != nil {
		return argoUnknown
	}
	verdict := argoProgressing
	for _, c := range conditions {
		if isAutoscalerFailed(c) {
			return argoDegraded
		}
		if c.status == "True" && (c.kind == "AbleToScale" || c.kind == "ScalingLimited") {
			verdict = argoHealthy
		}
	}
	return verdict
}

// autoscalerConditions reads the conditions of a HorizontalPodAutoscaler of any version.
func autoscalerConditions(obj *unstructured.Unstructured) ([]statusCondition, error) {
	if obj.GroupVersionKind().Version != "v1" {
		return conditionsOf(obj), nil
	}
	raw, ok := obj.GetAnnotations()[annotationAutoscalerConditions]
	if !ok {
		return nil, nil
	}
	var list []map[string]any
	if err := json.Unmarshal([]byte(raw), &list); err != nil {
		return nil, err
	}
	out := make([]statusCondition, 0, len(list))
	for _, c := range list {
		out = append(out, readCondition(c))
	}
	return out, nil
}

// isAutoscalerFailed reports whether a condition is a failure that does not end without a change.
func isAutoscalerFailed(c statusCondition) bool {
	switch c.kind {
	case "AbleToScale":
		return c.reason == "FailedGetScale" || c.reason == "FailedUpdateScale"
	case "ScalingActive":
		switch c.reason {
		case "FailedGetResourceMetric", "FailedGetObjectMetric", "FailedGetPodsMetric", "FailedGetExternalMetric",
			"FailedComputeMetricsReplicas", "InvalidSelector":
			return true
		}
	}
	return false
}
