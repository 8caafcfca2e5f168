{{- define "istiod.labels" -}}
app: istiod
istio: pilot
{{- end -}}

{{/* The configuration of the mesh. Nothing is visible to the gateways unless exportTo says so. */}}
{{- define "istiod.mesh" -}}
accessLogFile: "/dev/stdout"

ingressControllerMode: "OFF"

# Services, routes and rules are for the namespaces that they name in exportTo, and for no other:
# one control plane's gateway must not see another one's endpoints.
defaultServiceExportTo: ["~"]
defaultVirtualServiceExportTo: ["~"]
defaultDestinationRuleExportTo: ["~"]

defaultConfig:
  discoveryAddress: istiod.{{ .Release.Namespace }}.svc:15012

defaultProviders:
  metrics:
  - prometheus
enablePrometheusMerge: true

rootNamespace: {{ .Release.Namespace }}
trustDomain: {{ .Values.trustDomain }}
{{- end -}}

{{- define "istiod.fieldEnv" -}}
- name: {{ .name }}
  valueFrom:
    fieldRef:
      apiVersion: v1
      fieldPath: {{ .path }}
{{- end -}}
