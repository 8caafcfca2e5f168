{{/* endpointFields are what is said about a target, however it is found. */}}
{{- define "endpointFields" -}}
path:
  description: /metrics when it is not set.
  type: string
scheme:
  type: string
  enum: [http, https, HTTP, HTTPS]
params:
  type: object
  additionalProperties:
    {{- include "strings" . | nindent 4 }}
interval:
  {{- include "duration" . | nindent 2 }}
scrapeTimeout:
  {{- include "duration" . | nindent 2 }}
honorLabels:
  type: boolean
honorTimestamps:
  type: boolean
authorization:
  {{- include "authorization" . | nindent 2 }}
tlsConfig:
  {{- include "tlsConfig" . | nindent 2 }}
relabelings:
  description: What is done to targets before they are scraped.
  {{- include "relabelings" . | nindent 2 }}
metricRelabelings:
  description: What is done to samples before they are stored.
  {{- include "relabelings" . | nindent 2 }}
{{- end -}}

{{- define "serviceMonitor.spec" -}}
description: The endpoints of Services to scrape.
type: object
required: [endpoints, selector]
properties:
  jobLabel:
    type: string
  targetLabels:
    {{- include "strings" . | nindent 4 }}
  podTargetLabels:
    {{- include "strings" . | nindent 4 }}
  selector:
    {{- include "labelSelector" . | nindent 4 }}
  namespaceSelector:
    {{- include "namespaceSelector" . | nindent 4 }}
  endpoints:
    type: array
    items:
      type: object
      properties:
        port:
          description: Name of a port of the Service.
          type: string
        targetPort:
          description: Name or number of a port of the pods.
          {{- include "intOrString" . | nindent 10 }}
        {{- include "endpointFields" . | nindent 8 }}
      x-kubernetes-preserve-unknown-fields: true
x-kubernetes-preserve-unknown-fields: true
{{- end -}}

{{- define "podMonitor.spec" -}}
description: The pods to scrape.
type: object
required: [selector]
properties:
  jobLabel:
    type: string
  podTargetLabels:
    {{- include "strings" . | nindent 4 }}
  selector:
    {{- include "labelSelector" . | nindent 4 }}
  namespaceSelector:
    {{- include "namespaceSelector" . | nindent 4 }}
  podMetricsEndpoints:
    type: array
    items:
      type: object
      properties:
        port:
          type: string
        portNumber:
          type: integer
          format: int32
          minimum: 1
          maximum: 65535
        {{- include "endpointFields" . | nindent 8 }}
      x-kubernetes-preserve-unknown-fields: true
x-kubernetes-preserve-unknown-fields: true
{{- end -}}

{{- define "scrapeConfig.spec" -}}
description: Targets that no Service or pod selector finds, by a static list or any discovery of Prometheus.
type: object
properties:
  jobName:
    type: string
    minLength: 1
  staticConfigs:
    type: array
    items:
      type: object
      required: [targets]
      properties:
        targets:
          type: array
          minItems: 1
          items:
            type: string
        labels:
          {{- include "stringMap" . | nindent 10 }}
  kubernetesSDConfigs:
    type: array
    items:
      type: object
      required: [role]
      properties:
        role:
          type: string
          enum: [Pod, Endpoints, Ingress, Service, Node, EndpointSlice]
        namespaces:
          type: object
          properties:
            names:
              {{- include "strings" . | nindent 14 }}
            ownNamespace:
              type: boolean
      x-kubernetes-preserve-unknown-fields: true
  metricsPath:
    type: string
  scheme:
    type: string
    enum: [http, https, HTTP, HTTPS]
  params:
    type: object
    additionalProperties:
      {{- include "strings" . | nindent 6 }}
  scrapeInterval:
    {{- include "duration" . | nindent 4 }}
  scrapeTimeout:
    {{- include "duration" . | nindent 4 }}
  honorLabels:
    type: boolean
  honorTimestamps:
    type: boolean
  authorization:
    {{- include "authorization" . | nindent 4 }}
  tlsConfig:
    {{- include "tlsConfig" . | nindent 4 }}
  relabelings:
    {{- include "relabelings" . | nindent 4 }}
  metricRelabelings:
    {{- include "relabelings" . | nindent 4 }}
x-kubernetes-preserve-unknown-fields: true
{{- end -}}

{{- define "prometheusRule.spec" -}}
description: Groups of alerting and recording rules.
type: object
properties:
  groups:
    type: array
    items:
      type: object
      required: [name]
      properties:
        name:
          type: string
          minLength: 1
        interval:
          {{- include "duration" . | nindent 10 }}
        limit:
          type: integer
        rules:
          type: array
          items:
            type: object
            required: [expr]
            properties:
              alert:
                type: string
              record:
                type: string
              expr:
                {{- include "intOrString" . | nindent 16 }}
              for:
                {{- include "duration" . | nindent 16 }}
              keep_firing_for:
                {{- include "duration" . | nindent 16 }}
              labels:
                {{- include "stringMap" . | nindent 16 }}
              annotations:
                {{- include "stringMap" . | nindent 16 }}
            x-kubernetes-preserve-unknown-fields: true
      x-kubernetes-preserve-unknown-fields: true
    x-kubernetes-list-type: map
    x-kubernetes-list-map-keys: [name]
x-kubernetes-preserve-unknown-fields: true
{{- end -}}
