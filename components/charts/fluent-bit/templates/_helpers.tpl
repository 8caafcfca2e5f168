{{/* Labels of the pods, which fluent-operator takes from the object. The last two say where the pods may send logs. */}}
{{- define "fluent-bit.labels" -}}
app: fluent-bit
gardener.cloud/role: logging
role: logging
networking.gardener.cloud/to-dns: allowed
networking.gardener.cloud/to-runtime-apiserver: allowed
{{- if ne .Values.to "vali" }}
networking.resources.gardener.cloud/to-opentelemetry-collector-collector-tcp-4317: allowed
networking.resources.gardener.cloud/to-all-shoots-opentelemetry-collector-collector-tcp-4317: allowed
{{- else }}
networking.resources.gardener.cloud/to-logging-tcp-3100: allowed
networking.resources.gardener.cloud/to-all-shoots-logging-tcp-3100: allowed
{{- end }}
{{- end -}}

{{- define "fluent-bit.serviceAnnotations" -}}
networking.resources.gardener.cloud/from-all-seed-scrape-targets-allowed-ports: '[{"port":2020,"protocol":"TCP"},{"port":2021,"protocol":"TCP"}]'
{{- end -}}

{{/* A DaemonSet cannot be given another selector. With other labels it becomes another one, so they are in its name. */}}
{{- define "fluent-bit.name" -}}
{{- $labels := include "fluent-bit.labels" . | fromYaml -}}
{{- $annotations := include "fluent-bit.serviceAnnotations" . | fromYaml -}}
fluent-bit-{{ printf "%v%v" $labels $annotations | sha256sum | trunc 5 }}
{{- end -}}

{{/* What the parts of the configuration are selected by. */}}
{{- define "fluent-bit.part" -}}
fluentbit.gardener/type: seed
{{- end -}}
