{{- define "ingress.selector" -}}
app: istio-ingressgateway
{{- range $key, $value := .Values.labels }}
{{ $key }}: {{ $value }}
{{- end }}
{{- end -}}

{{- define "ingress.labels" -}}
app.kubernetes.io/version: {{ .Chart.AppVersion }}
{{ include "ingress.selector" . }}
{{- end -}}

{{/* Who may come from inside of the cluster: control planes, extensions and the garden namespace. */}}
{{- define "ingress.namespaceSelectors" -}}
'[{"matchLabels":{"gardener.cloud/role":"extension"}},{"matchLabels":{"gardener.cloud/role":"shoot"}},{"matchLabels":{"kubernetes.io/metadata.name":"garden"}}]'
{{- end -}}

{{/* Inserts a Lua filter in front of the router of the HTTPS listener. */}}
{{- define "ingress.beforeRouter" -}}
applyTo: HTTP_FILTER
match:
  context: GATEWAY
  listener:
    portNumber: 9443
    filterChain:
      filter:
        name: envoy.filters.network.http_connection_manager
        subFilter:
          name: envoy.filters.http.router
{{- end -}}
