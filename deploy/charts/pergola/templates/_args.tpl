{{- define "pergola.args" -}}
{{- if eq .Values.role "operator" -}}
- operator
- --namespace={{ .Release.Namespace }}
- --cache-dir=/cache
- --receiver-port={{ empty (include "pergola.receives" .) | ternary "-1" "9292" }}
{{- range .Values.operator.receiver.proxies }}
- --receiver-proxy={{ . }}
{{- end }}
{{- else -}}
- gardenlet
- --seed={{ .Values.gardenlet.seed }}
- --garden-kubeconfig-secret={{ .Release.Namespace }}/{{ .Values.gardenlet.gardenKubeconfig.secretName }}
{{- end }}
{{- range .Values.networkPolicy.namespaceSelectors }}
- --policy-namespaces={{ . }}
{{- end }}
- --health-port=8081
- --metrics-port=8080
- --log-level={{ .Values.log.level }}
- --log-format={{ .Values.log.format }}
{{- end -}}
