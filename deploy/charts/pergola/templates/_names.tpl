{{- define "pergola.name" -}}
pergola-{{ .Values.role }}
{{- end -}}

{{- define "pergola.selector" -}}
app.kubernetes.io/name: pergola
app.kubernetes.io/component: {{ .Values.role }}
{{- end -}}

{{- define "pergola.labels" -}}
{{ include "pergola.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{- end -}}

{{- define "pergola.serviceAccount" -}}
{{ .Values.serviceAccount.name | default (include "pergola.name" .) }}
{{- end -}}

{{- define "pergola.image" -}}
{{- with .Values.image -}}
{{- if .digest }}{{ .repository }}@{{ .digest }}{{ else }}{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}{{ end -}}
{{- end -}}
{{- end -}}

{{- define "pergola.priorityClass" -}}
{{ .Values.priorityClass.name | default (eq .Values.role "operator" | ternary "gardener-garden-system-critical" "gardener-system-critical") }}
{{- end -}}

{{- define "pergola.prometheus" -}}
{{ .Values.monitoring.prometheus | default (eq .Values.role "operator" | ternary "garden" "seed") }}
{{- end -}}

{{/* runs says whether the role is a process; gardenlet-access is only rights. */}}
{{- define "pergola.runs" -}}
{{- if ne .Values.role "gardenlet-access" }}true{{ end -}}
{{- end -}}

{{- define "pergola.receives" -}}
{{- if and (eq .Values.role "operator") .Values.operator.receiver.enabled }}true{{ end -}}
{{- end -}}

{{/* converging lists the subjects that may converge the runtime cluster. */}}
{{- define "pergola.converging" -}}
{{- if .Values.operator.ownRights }}
- kind: ServiceAccount
  name: {{ include "pergola.serviceAccount" . }}
  namespace: {{ .Release.Namespace }}
{{- end }}
{{- range .Values.operator.impersonation.serviceAccounts }}
- kind: ServiceAccount
  name: {{ . }}
  namespace: {{ $.Release.Namespace }}
{{- end }}
{{- end -}}

{{/* seconds of a duration such as 2h or 1h30m. */}}
{{- define "pergola.seconds" -}}
{{- $sum := 0 -}}
{{- range regexFindAll "[0-9]+(ms|s|m|h|d|w)" . -1 -}}
{{- $n := regexFind "^[0-9]+" . | int64 -}}
{{- $unit := regexFind "[a-z]+$" . -}}
{{- $sum = add $sum (mul $n (get (dict "ms" 0 "s" 1 "m" 60 "h" 3600 "d" 86400 "w" 604800) $unit)) -}}
{{- end -}}
{{ $sum }}
{{- end -}}

{{/* apiServerAddress is the right to see where the API server of the cluster is, which network policies name. */}}
{{- define "pergola.apiServerAddress" }}
# Where the API server of this cluster is: policies name its addresses.
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: {{ include "pergola.name" . }}
  namespace: default
  labels:
    {{- include "pergola.labels" . | nindent 4 }}
rules:
- apiGroups: [discovery.k8s.io]
  resources: [endpointslices]
  verbs: [list, watch]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: {{ include "pergola.name" . }}
  namespace: default
  labels:
    {{- include "pergola.labels" . | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: {{ include "pergola.name" . }}
subjects:
- kind: ServiceAccount
  name: {{ include "pergola.serviceAccount" . }}
  namespace: {{ .Release.Namespace }}
{{- end -}}
