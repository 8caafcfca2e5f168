{{- define "vali.labels" -}}
app: vali
gardener.cloud/role: logging
role: logging
{{- end -}}

{{- define "vali.securityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
{{- end -}}
