{{/* The API calls of the three parts go to the same server: same rates, same log threshold. */}}
{{- define "vpa.clientFlags" -}}
- --kube-api-qps=200
- --kube-api-burst=250
{{- end -}}

{{/* --feature-gates, in the order of their names. */}}
{{- define "vpa.featureGates" -}}
{{- with .Values.featureGates -}}
{{- $gates := list -}}
{{- range $gate, $on := . -}}
{{- $gates = append $gates (printf "%s=%t" $gate $on) -}}
{{- end -}}
- --feature-gates={{ join "," $gates }}
{{- end -}}
{{- end -}}

{{- define "vpa.livenessProbe" -}}
failureThreshold: 3
httpGet:
  path: /health-check
  port: metrics
  scheme: HTTP
initialDelaySeconds: 120
periodSeconds: 60
successThreshold: 1
timeoutSeconds: 30
{{- end -}}

{{- define "vpa.namespaceEnv" -}}
- name: NAMESPACE
  valueFrom:
    fieldRef:
      fieldPath: metadata.namespace
{{- end -}}

{{/* Pods reach the API server of the cluster they run in, and its DNS. */}}
{{- define "vpa.podLabels" -}}
app: {{ . }}
gardener.cloud/role: vpa
networking.gardener.cloud/to-dns: allowed
networking.gardener.cloud/to-runtime-apiserver: allowed
{{- end -}}

{{/* What goes with each Deployment: its account and its disruption budget. */}}
{{- define "vpa.companions" -}}
---
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ .name }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    gardener.cloud/role: vpa
automountServiceAccountToken: false
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ .name }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    gardener.cloud/role: vpa
spec:
  maxUnavailable: 1
  selector:
    matchLabels:
      app: {{ .name }}
  unhealthyPodEvictionPolicy: AlwaysAllow
{{- end -}}

{{/* Requests are scaled, and never by the part that computes them (see recommender.yaml). */}}
{{- define "vpa.autoscaler" -}}
---
apiVersion: autoscaling.k8s.io/v1
kind: VerticalPodAutoscaler
metadata:
  name: {{ .name }}
  namespace: {{ .root.Release.Namespace }}
spec:
  targetRef:
    apiVersion: apps/v1
    kind: Deployment
    name: {{ .name }}
  updatePolicy:
    updateMode: InPlaceOrRecreate
  resourcePolicy:
    containerPolicies:
    - containerName: {{ .container }}
      controlledValues: RequestsOnly
    - containerName: '*'
      mode: "Off"
{{- end -}}

{{- define "vpa.scrapeAnnotation" -}}
networking.resources.gardener.cloud/from-all-{{ .root.Values.scrapeTargets }}-scrape-targets-allowed-ports: '[{"protocol":"TCP","port":{{ .port }}}]'
{{- end -}}

{{/* Names of roles: "source" is the cluster the parts run in, as opposed to one they serve from outside. */}}
{{- define "vpa.rbacName" -}}
gardener.cloud:vpa:source:{{ . }}
{{- end -}}

{{/* The Prometheus that scrapes a part; "labels" are those of its Service. */}}
{{- define "vpa.serviceMonitor" -}}
{{- with .root.Values.prometheus }}
---
apiVersion: monitoring.coreos.com/v1
kind: ServiceMonitor
metadata:
  name: {{ . }}-{{ $.name }}
  namespace: {{ $.root.Release.Namespace }}
  labels:
    prometheus: {{ . }}
spec:
  selector:
    matchLabels:
      {{- toYaml $.labels | nindent 6 }}
  namespaceSelector: {}
  endpoints:
  - port: metrics
    relabelings:
    - action: replace
      replacement: {{ $.name }}
      targetLabel: job
    # The admission controller's pods have further ports.
    - action: keep
      regex: metrics
      sourceLabels: [__meta_kubernetes_pod_container_port_name]
    - action: labelmap
      regex: __meta_kubernetes_pod_label_(.+)
{{- end }}
{{- end -}}
