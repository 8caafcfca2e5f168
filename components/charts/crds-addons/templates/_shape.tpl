{{/* shape writes the schema of a shape (see README.md). */}}
{{- define "shape" -}}
{{- if kindIs "map" . -}}
type: object
x-kubernetes-preserve-unknown-fields: true
properties:
  {{- range $field, $shape := . }}
  {{ $field }}:
    {{- include "shape" $shape | nindent 4 }}
  {{- end }}
{{- else if kindIs "slice" . -}}
type: array
items:
  {{- include "shape" (first .) | nindent 2 }}
{{- else if eq . "open" -}}
type: object
x-kubernetes-preserve-unknown-fields: true
{{- else if eq . "strings" -}}
type: object
additionalProperties:
  type: string
{{- else if eq . "intOrString" -}}
x-kubernetes-int-or-string: true
{{- else if eq . "quantity" -}}
anyOf:
- type: integer
- type: string
pattern: ^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$
x-kubernetes-int-or-string: true
{{- else if has . (list "string" "boolean" "integer") -}}
type: {{ . }}
{{- else -}}
{{- fail (printf "%v is no shape" .) -}}
{{- end -}}
{{- end -}}
