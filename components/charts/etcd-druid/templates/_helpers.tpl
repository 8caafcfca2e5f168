{{- define "etcd-druid.labels" -}}
gardener.cloud/role: etcd-druid
{{- end -}}
