{{- define "prometheus.spec" -}}
description: Prometheus servers, and which monitors, rules and scrape configurations they take up.
type: object
properties:
  {{- include "podFields" . | nindent 2 }}
  shards:
    type: integer
    format: int32
  scrapeInterval:
    default: 30s
    {{- include "duration" . | nindent 4 }}
  scrapeTimeout:
    {{- include "duration" . | nindent 4 }}
  evaluationInterval:
    default: 30s
    {{- include "duration" . | nindent 4 }}
  retention:
    description: How long samples are kept.
    {{- include "duration" . | nindent 4 }}
  retentionSize:
    description: How large the database may get; the oldest samples go first.
    type: string
    pattern: (^0|([0-9]*[.])?[0-9]+((K|M|G|T|E|P)i?)?B)$
  externalLabels:
    description: Added to what leaves this server, alerts for example.
    {{- include "stringMap" . | nindent 4 }}
  reloadStrategy:
    type: string
    enum: [HTTP, ProcessSignal]
  {{- range list "podMonitor" "probe" "rule" "scrapeConfig" "serviceMonitor" }}
  {{ . }}Selector:
    {{- include "labelSelector" $ | nindent 4 }}
  {{ . }}NamespaceSelector:
    description: The namespaces to look into; all when empty, its own when not set.
    {{- include "labelSelector" $ | nindent 4 }}
  {{- end }}
  additionalScrapeConfigs:
    description: The Secret with scrape configurations as Prometheus itself reads them.
    {{- include "keyRef" . | nindent 4 }}
  arbitraryFSAccessThroughSMs:
    type: object
    properties:
      deny:
        type: boolean
  rules:
    {{- include "open" . | nindent 4 }}
  web:
    type: object
    properties:
      maxConnections:
        type: integer
        format: int32
        minimum: 0
    x-kubernetes-preserve-unknown-fields: true
  alerting:
    type: object
    required: [alertmanagers]
    properties:
      alertmanagers:
        type: array
        items:
          description: A Service whose Alertmanagers get the alerts.
          type: object
          required: [name, port]
          properties:
            name:
              type: string
              minLength: 1
            namespace:
              type: string
              minLength: 1
            port:
              {{- include "intOrString" . | nindent 14 }}
            scheme:
              type: string
              enum: [http, https, HTTP, HTTPS]
            alertRelabelings:
              {{- include "relabelings" . | nindent 14 }}
            relabelings:
              {{- include "relabelings" . | nindent 14 }}
          x-kubernetes-preserve-unknown-fields: true
x-kubernetes-preserve-unknown-fields: true
{{- end -}}

{{- define "alertmanager.spec" -}}
description: Alertmanagers, and which AlertmanagerConfigs they take up.
type: object
properties:
  {{- include "podFields" . | nindent 2 }}
  retention:
    default: 120h
    type: string
    pattern: ^(0|(([0-9]+)h)?(([0-9]+)m)?(([0-9]+)s)?(([0-9]+)ms)?)$
  configSecret:
    description: The Secret with the base configuration; alertmanager-NAME when it is not set.
    type: string
  alertmanagerConfigSelector:
    {{- include "labelSelector" . | nindent 4 }}
  alertmanagerConfigNamespaceSelector:
    {{- include "labelSelector" . | nindent 4 }}
  alertmanagerConfigMatcherStrategy:
    type: object
    properties:
      type:
        description: Whether routes and inhibitions of an AlertmanagerConfig are for alerts of its namespace only.
        type: string
        default: OnNamespace
        enum: [OnNamespace, OnNamespaceExceptForAlertmanagerNamespace, None]
  forceEnableClusterMode:
    type: boolean
x-kubernetes-preserve-unknown-fields: true
{{- end -}}

{{- define "workload.status" -}}
type: object
properties:
  {{- range list "replicas" "updatedReplicas" "availableReplicas" "unavailableReplicas" "shards" }}
  {{ . }}:
    type: integer
    format: int32
  {{- end }}
  paused:
    type: boolean
  selector:
    type: string
  conditions:
    type: array
    items:
      type: object
      required: [lastTransitionTime, status, type]
      properties:
        type:
          type: string
          minLength: 1
        status:
          type: string
          minLength: 1
        lastTransitionTime:
          type: string
          format: date-time
        reason:
          type: string
        message:
          type: string
        observedGeneration:
          type: integer
          format: int64
    x-kubernetes-list-type: map
    x-kubernetes-list-map-keys: [type]
x-kubernetes-preserve-unknown-fields: true
{{- end -}}
