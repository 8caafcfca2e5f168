{{- define "ingress.fieldEnv" -}}
- name: {{ .name }}
  valueFrom:
    fieldRef:
      apiVersion: v1
      fieldPath: {{ .path }}
{{- end -}}

{{/* What istio-agent needs to know to reach istiod and to say which workload it is. */}}
{{- define "ingress.env" -}}
- name: PILOT_CERT_PROVIDER
  value: istiod
- name: CA_ADDR
  value: istiod.{{ .Values.istiodNamespace }}.svc:15012
{{ include "ingress.fieldEnv" (dict "name" "NODE_NAME" "path" "spec.nodeName") }}
{{ include "ingress.fieldEnv" (dict "name" "POD_NAME" "path" "metadata.name") }}
{{ include "ingress.fieldEnv" (dict "name" "POD_NAMESPACE" "path" "metadata.namespace") }}
{{ include "ingress.fieldEnv" (dict "name" "INSTANCE_IP" "path" "status.podIP") }}
{{ include "ingress.fieldEnv" (dict "name" "HOST_IP" "path" "status.hostIP") }}
- name: ISTIO_CPU_LIMIT
  valueFrom:
    resourceFieldRef:
      resource: limits.cpu
      divisor: "1"
{{ include "ingress.fieldEnv" (dict "name" "SERVICE_ACCOUNT" "path" "spec.serviceAccountName") }}
- name: ISTIO_META_WORKLOAD_NAME
  value: istio-ingressgateway
- name: ISTIO_META_OWNER
  value: kubernetes://apis/apps/v1/namespaces/{{ .Values.namespace }}/deployments/istio-ingressgateway
- name: ISTIO_META_MESH_ID
  value: {{ .Values.trustDomain }}
- name: TRUST_DOMAIN
  value: {{ .Values.trustDomain }}
- name: ISTIO_META_UNPRIVILEGED_POD
  value: "true"
- name: ISTIO_META_CLUSTER_ID
  value: Kubernetes
- name: ISTIO_META_NODE_NAME
  valueFrom:
    fieldRef:
      fieldPath: spec.nodeName
{{- if .Values.dualStack }}
- name: ISTIO_DUAL_STACK
  value: "true"
{{- end }}
{{- end -}}
