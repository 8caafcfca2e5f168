{{- define "metadata" -}}
annotations:
  api-approved.kubernetes.io: https://github.com/kubernetes/kubernetes/pull/63797
  controller-gen.kubebuilder.io/version: v0.21.0
  # Without its definition every autoscaler of the cluster would be gone.
  resources.gardener.cloud/keep-object: "true"
{{- end -}}

{{- define "typeMeta" -}}
apiVersion:
  type: string
kind:
  type: string
metadata:
  type: object
{{- end -}}

{{- define "quantity" -}}
anyOf:
- type: integer
- type: string
pattern: ^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$
x-kubernetes-int-or-string: true
{{- end -}}

{{- define "resourceList" -}}
type: object
additionalProperties:
  {{- include "quantity" . | nindent 2 }}
{{- end -}}

{{- define "startupBoost" -}}
type: object
properties:
  cpu:
    description: More CPU while a pod starts; none when unset.
    type: object
    required: [type]
    properties:
      type:
        type: string
        enum: [Factor, Quantity]
      factor:
        description: Multiplies the request, for type Factor.
        type: integer
        format: int32
      quantity:
        description: Request and limit during the boost, for type Quantity.
        {{- include "quantity" . | nindent 8 }}
      durationSeconds:
        description: Seconds that the boost lasts after the pod is ready; 0 by default.
        type: integer
        format: int32
    x-kubernetes-validations:
    - rule: (self.type == 'Factor') == has(self.factor)
      message: factor belongs to type Factor, and only to it
    - rule: (self.type == 'Quantity') == has(self.quantity)
      message: quantity belongs to type Quantity, and only to it
{{- end -}}

{{- define "histogram" -}}
type: object
properties:
  bucketWeights:
    description: Weight by index of the bucket.
    type: object
    x-kubernetes-preserve-unknown-fields: true
  referenceTimestamp:
    type: string
    format: date-time
    nullable: true
  totalWeight:
    type: number
{{- end -}}

{{/* Versions that are not served any more only have to be known, because objects were stored in them. */}}
{{- define "unservedSchema" -}}
openAPIV3Schema:
  type: object
  x-kubernetes-preserve-unknown-fields: true
{{- end -}}
