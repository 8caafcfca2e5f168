{{/* open is an object of which nothing is said. */}}
{{- define "open" -}}
type: object
x-kubernetes-preserve-unknown-fields: true
{{- end -}}

{{- define "openList" -}}
type: array
items:
  {{- include "open" . | nindent 2 }}
{{- end -}}

{{- define "strings" -}}
type: array
items:
  type: string
{{- end -}}

{{- define "stringMap" -}}
type: object
additionalProperties:
  type: string
{{- end -}}

{{- define "intOrString" -}}
anyOf:
- type: integer
- type: string
x-kubernetes-int-or-string: true
{{- end -}}

{{/* duration is Prometheus's own notation, which has years and weeks and no fractions. */}}
{{- define "duration" -}}
type: string
pattern: ^(0|(([0-9]+)y)?(([0-9]+)w)?(([0-9]+)d)?(([0-9]+)h)?(([0-9]+)m)?(([0-9]+)s)?(([0-9]+)ms)?)$
{{- end -}}

{{- define "labelSelector" -}}
type: object
properties:
  matchLabels:
    {{- include "stringMap" . | nindent 4 }}
  matchExpressions:
    type: array
    items:
      type: object
      required: [key, operator]
      properties:
        key:
          type: string
        operator:
          type: string
        values:
          {{- include "strings" . | nindent 10 }}
x-kubernetes-map-type: atomic
{{- end -}}

{{/* keyRef is one key of a Secret or ConfigMap of the same namespace. */}}
{{- define "keyRef" -}}
type: object
required: [key]
properties:
  name:
    type: string
    default: ""
  key:
    type: string
  optional:
    type: boolean
x-kubernetes-map-type: atomic
{{- end -}}

{{- define "secretOrConfigMap" -}}
type: object
properties:
  secret:
    {{- include "keyRef" . | nindent 4 }}
  configMap:
    {{- include "keyRef" . | nindent 4 }}
{{- end -}}

{{- define "authorization" -}}
type: object
properties:
  type:
    description: Bearer when it is not set.
    type: string
  credentials:
    description: The Secret with the token.
    {{- include "keyRef" . | nindent 4 }}
{{- end -}}

{{- define "tlsConfig" -}}
type: object
properties:
  ca:
    {{- include "secretOrConfigMap" . | nindent 4 }}
  cert:
    {{- include "secretOrConfigMap" . | nindent 4 }}
  keySecret:
    {{- include "keyRef" . | nindent 4 }}
  serverName:
    type: string
  insecureSkipVerify:
    type: boolean
x-kubernetes-preserve-unknown-fields: true
{{- end -}}

{{- define "relabelings" -}}
type: array
items:
  type: object
  properties:
    sourceLabels:
      {{- include "strings" . | nindent 6 }}
    separator:
      type: string
    targetLabel:
      type: string
    regex:
      type: string
    modulus:
      type: integer
      format: int64
    replacement:
      type: string
    action:
      type: string
      default: replace
      enum: [replace, Replace, keep, Keep, drop, Drop, hashmod, HashMod, labelmap, LabelMap, labeldrop, LabelDrop, labelkeep, LabelKeep,
        lowercase, Lowercase, uppercase, Uppercase, keepequal, KeepEqual, dropequal, DropEqual]
{{- end -}}

{{- define "namespaceSelector" -}}
type: object
properties:
  any:
    type: boolean
  matchNames:
    {{- include "strings" . | nindent 4 }}
{{- end -}}

{{/* podFields are what Prometheus and Alertmanager say about their pods. */}}
{{- define "podFields" -}}
image:
  type: string
imagePullPolicy:
  type: string
  enum: ["", Always, Never, IfNotPresent]
version:
  type: string
paused:
  type: boolean
replicas:
  type: integer
  format: int32
podMetadata:
  type: object
  properties:
    name:
      type: string
    labels:
      {{- include "stringMap" . | nindent 6 }}
    annotations:
      {{- include "stringMap" . | nindent 6 }}
externalUrl:
  type: string
logLevel:
  type: string
  enum: ["", debug, info, warn, error]
portName:
  type: string
  default: web
priorityClassName:
  type: string
serviceAccountName:
  type: string
resources:
  type: object
  properties:
    requests:
      {{- include "resourceList" . | nindent 6 }}
    limits:
      {{- include "resourceList" . | nindent 6 }}
  x-kubernetes-preserve-unknown-fields: true
securityContext:
  {{- include "open" . | nindent 2 }}
storage:
  {{- include "open" . | nindent 2 }}
containers:
  {{- include "openList" . | nindent 2 }}
volumes:
  {{- include "openList" . | nindent 2 }}
volumeMounts:
  {{- include "openList" . | nindent 2 }}
{{- end -}}

{{- define "resourceList" -}}
type: object
additionalProperties:
  {{- include "intOrString" . | nindent 2 }}
  pattern: ^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$
{{- end -}}
