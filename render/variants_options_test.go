// SPDX-License-Identifier: Apache-2.0

package render

import (
	"maps"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
)

// everyOption sets all options of a Garden, and the feature gates that are off elsewhere.
var everyOption = variant{
	name:      "every option",
	gardenAPI: landscapev1alpha1.GardenAPIAggregated,
	gates:     &landscapev1alpha1.FeatureGates{BackupEntryForGarden: ptr.To(false), RemoveVali: ptr.To(true), VictoriaLogsBackend: ptr.To(true)},
	changes: []change{
		{"Garden", "spec.runtimeCluster.settings", parseYAML(`
loadBalancerServices:
  annotations: {example.org/class: public}
  externalTrafficPolicy: Local
  proxyProtocol: {allowed: true}
persistentVolumeClaimAutoscaler: {enabled: true}
topologyAwareRouting: {enabled: true}
verticalPodAutoscaler:
  enabled: true
  featureGates: {InPlace: true}
  maxAllowed: {cpu: "8", memory: 32Gi}
`)},
		{"Garden", "spec.runtimeCluster.volume", parseYAML(`minimumSize: 20Gi`)},
		{"Garden", "spec.runtimeCluster.ingress.domains", []any{
			parseYAML(`{name: ingress.runtime-garden.local.gardener.cloud, provider: primary}`), parseYAML(`{name: ingress.example.org, provider: primary}`),
		}},
		{"Garden", "spec.virtualCluster.controlPlane", parseYAML(`highAvailability: {}`)},
		{"Garden", "spec.virtualCluster.dns.domains", []any{
			parseYAML(`{name: virtual-garden.local.gardener.cloud, provider: primary}`), parseYAML(`{name: garden.example.org, provider: primary}`),
		}},
		{"Garden", "spec.virtualCluster.etcd", parseYAML(`
main:
  autoscaling: {minAllowed: {cpu: "2", memory: 6Gi}}
  backup:
    provider: local
    region: local
    bucketName: backups/garden
    providerConfig: {kind: Any}
    secretRef: {name: virtual-garden-etcd-main-backup-local}
  storage: {capacity: 30Gi, className: fast}
events:
  autoscaling: {minAllowed: {memory: 500Mi}}
  storage: {capacity: 5Gi, className: fast}
`)},
		{"Garden", "spec.virtualCluster.kubernetes", parseYAML(`
version: 1.36.0
kubeAPIServer:
  admissionPlugins:
  - name: PodSecurity
    config:
      apiVersion: pod-security.admission.config.k8s.io/v1
      kind: PodSecurityConfiguration
      defaults: {enforce: baseline, enforce-version: latest}
      exemptions: {namespaces: [garden]}
  - {name: AlwaysPullImages}
  - {name: ValidatingAdmissionWebhook, kubeconfigSecretName: calls}
  - {name: LimitRanger, disabled: true}
  apiAudiences: [garden]
  auditConfig: {auditPolicy: {configMapRef: {name: audit}}}
  auditWebhook: {kubeconfigSecretName: calls, batchMaxSize: 50, version: audit.k8s.io/v1}
  authentication: {webhook: {kubeconfigSecretName: calls, cacheTTL: 30m, version: v1}}
  autoscaling: {minAllowed: {cpu: "1", memory: 3Gi}}
  defaultNotReadyTolerationSeconds: 60
  defaultUnreachableTolerationSeconds: 90
  encryptionConfig: {resources: [configmaps, certificates.example.org], provider: {type: secretbox}}
  eventTTL: 90m
  featureGates: {CBORServingAndStorage: true}
  logging: {verbosity: 3, httpAccessVerbosity: 3}
  requests: {maxNonMutatingInflight: 800, maxMutatingInflight: 300}
  resourcesToStoreInETCDEvents:
  - {group: coordination.k8s.io, resource: leases}
  - {group: events.k8s.io, resource: events}
  runtimeConfig: {apps/v1: true, policy/v1: true}
  serviceAccountConfig:
    issuer: https://gardener.garden.example.org
    acceptedIssuers: [https://before.example.org]
    extendTokenExpiration: false
    maxTokenExpiration: 1080h
  sni: {secretName: names, domainPatterns: [api.example.org, "*.garden.example.org"]}
  structuredAuthentication: {configMapName: authentication}
  structuredAuthorization: {configMapName: authorization, kubeconfigs: [{authorizerName: mine, secretName: calls}]}
  tlsMinVersion: VersionTLS13
  watchCacheSizes: {resources: [{resource: secrets, size: 500}, {apiGroup: apps, resource: deployments, size: 0}]}
kubeControllerManager:
  certificateSigningDuration: 24h
  featureGates: {MutableCSINodeAllocatableCount: true}
`)},
		{"Garden", "spec.virtualCluster.gardener", parseYAML(`
clusterIdentity: local
gardenerAPIServer:
  admissionPlugins:
  - name: ShootDNSRewriting
    config: {apiVersion: shootdnsrewriting.admission.gardener.cloud/v1alpha1, kind: Configuration, commonSuffixes: [foo.example.com]}
  - {name: ShootQuotaValidator, disabled: true}
  - {name: ValidatingAdmissionWebhook, kubeconfigSecretName: calls}
  auditConfig: {auditPolicy: {configMapRef: {name: audit}}}
  auditWebhook: {kubeconfigSecretName: calls, batchMaxSize: 50}
  encryptionConfig: {resources: [shoots.core.gardener.cloud], provider: {type: secretbox}}
  featureGates: {InPlaceNodeUpdates: true}
  goAwayChance: 0.001
  logging: {verbosity: 4, httpAccessVerbosity: 2}
  requests: {maxNonMutatingInflight: 400, maxMutatingInflight: 200}
  shootAdminKubeconfigMaxExpiration: 24h
  watchCacheSizes: {resources: [{apiGroup: core.gardener.cloud, resource: shoots, size: 500}]}
gardenerAdmissionController:
  logLevel: debug
  resourceAdmissionConfiguration:
    operationMode: log
    limits:
    - {apiGroups: [core.gardener.cloud], apiVersions: ["*"], resources: [shoots], size: 100k}
    - {apiGroups: [core.gardener.cloud], apiVersions: ["*"], resources: [projects], count: 200}
    unrestrictedSubjects: [{kind: Group, name: "gardener.cloud:system:seeds", apiGroup: rbac.authorization.k8s.io}]
gardenerControllerManager:
  logLevel: debug
  featureGates: {VersionClassificationLifecycle: true}
  defaultProjectQuotas:
  - config: {apiVersion: v1, kind: ResourceQuota, spec: {hard: {count/shoots.core.gardener.cloud: "100"}}}
    projectSelector: {matchLabels: {size: large}}
gardenerDashboard:
  logLevel: debug
  enableTokenLogin: false
  assetsConfigMapRef: {name: assets}
  frontendConfigMapRef: {name: frontend}
  domain: {name: dashboard.example.org, provider: primary}
  gitHub: {organisation: example, repository: tickets, secretRef: {name: github}, pollInterval: 30m}
  oidcConfig:
    clientIDPublic: public
    issuerURL: https://login.example.org
    sessionLifetime: 8h
    additionalScopes: [profile]
    secretRef: {name: oidc}
  propagateCAFromSNI: true
  terminal: {container: {image: "busybox:1.37", description: For a look around.}, allowedHosts: ["*.seed.example.org"]}
  tlsSecretName: names
gardenerDiscoveryServer:
  domain: {name: discovery.example.org, provider: primary}
  tlsSecretName: names
gardenerResourceManager: {additionalTargetNamespaces: [extra]}
gardenerScheduler:
  logLevel: error
  featureGates: {VersionClassificationLifecycle: true}
  strategy: MinimalDistance
`)},
	},
	external: []landscapev1alpha1.ExternalObject{{Kind: "Secret", Namespace: "garden", Name: "*"}},
	files: map[string]string{"garden/objects.yaml": `
apiVersion: v1
kind: ConfigMap
metadata: {name: audit, namespace: garden}
data:
  policy: |
    apiVersion: audit.k8s.io/v1
    kind: Policy
    rules: [{level: Metadata}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: authentication, namespace: garden}
data:
  config.yaml: |
    apiVersion: apiserver.config.k8s.io/v1
    kind: AuthenticationConfiguration
    jwt:
    - issuer: {url: "https://login.example.org", audiences: [public]}
      claimMappings: {username: {claim: sub, prefix: "login:"}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: authorization, namespace: garden}
data:
  config.yaml: |
    apiVersion: apiserver.config.k8s.io/v1beta1
    kind: AuthorizationConfiguration
    authorizers:
    - name: mine
      type: Webhook
      webhook:
        authorizedTTL: 5m
        cacheAuthorizedRequests: false
        failurePolicy: NoOpinion
        matchConditionSubjectAccessReviewVersion: v1
        matchConditions: [{expression: "request.user == 'someone'"}]
        subjectAccessReviewVersion: v1
        timeout: 3s
        unauthorizedTTL: 30s
---
apiVersion: v1
kind: ConfigMap
metadata: {name: assets, namespace: garden}
binaryData: {logo.svg: PHN2Zy8+}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: frontend, namespace: garden}
data: {frontend-config.yaml: "landingPageUrl: https://example.org\nbranding: {productName: Some}\n"}
`},
}

// parseYAML decodes YAML as part of an object.
func parseYAML(text string) map[string]any {
	var out map[string]any
	if err := yaml.Unmarshal([]byte(text), &out); err != nil {
		panic(err)
	}
	return wholeNumbers(out).(map[string]any)
}

// wholeNumbers converts to integers where possible, as in unstructured objects.
func wholeNumbers(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for key := range v {
			v[key] = wholeNumbers(v[key])
		}
	case []any:
		for i := range v {
			v[i] = wholeNumbers(v[i])
		}
	case float64:
		if whole := int64(v); float64(whole) == v {
			return whole
		}
	}
	return value
}

// TestEveryOption: new fields of the Garden must be added to the variant.
func TestEveryOption(t *testing.T) {
	text, err := os.ReadFile("../api/crds/operator.gardener.cloud_gardens.yaml")
	require.NoError(t, err)
	schema, found, err := unstructured.NestedMap(parseYAML(string(text)), "spec")
	require.NoError(t, err)
	require.True(t, found)
	version := schema["versions"].([]any)[0].(map[string]any)
	spec, found, err := unstructured.NestedMap(version, "schema", "openAPIV3Schema", "properties", "spec")
	require.NoError(t, err)
	require.True(t, found)

	const gardener, kubernetes = "spec.virtualCluster.gardener.", "spec.virtualCluster.kubernetes."
	for _, in := range renderedVariants[everyOption.name](t).inputs {
		if in.Owner.Kind == "garden" {
			var missing []string
			unsetFields(spec, in.Objects["garden"]["spec"], "spec", &missing)
			assert.ElementsMatch(t, []string{
				"spec.dns.providers.providerConfig", // nothing reads its content
				"spec.extensions", "spec.resources", // the variant with extensions has them
				// for parts that are not deployed
				"spec.runtimeCluster.ingress.controller.providerConfig", "spec.runtimeCluster.networking.blockCIDRs",
				// the subject is a group
				gardener + "gardenerAdmissionController.resourceAdmissionConfiguration.unrestrictedSubjects.namespace",
				// labels select, too
				gardener + "gardenerControllerManager.defaultProjectQuotas.projectSelector.matchExpressions",
				// No effect, as upstream: sizes are dynamic, and the virtual cluster has no nodes.
				gardener + "gardenerAPIServer.watchCacheSizes.default", kubernetes + "kubeAPIServer.watchCacheSizes.default",
				// set by the structured authentication
				kubernetes + "kubeAPIServer.enableAnonymousAuthentication",
				kubernetes + "kubeControllerManager.nodeCIDRMaskSize", kubernetes + "kubeControllerManager.nodeCIDRMaskSizeIPv6",
				kubernetes + "kubeControllerManager.nodeMonitorGracePeriod", kubernetes + "kubeControllerManager.podEvictionTimeout",
				kubernetes + "kubeControllerManager.horizontalPodAutoscaler",
				// disabling it renders less
				"spec.virtualCluster.gardener.gardenerDashboard.ingress",
				// needs a genuine certificate
				"spec.virtualCluster.gardener.gardenerDashboard.oidcConfig.certificateAuthoritySecretRef",
			}, missing)
		}
	}
}

// partlyUsedTypes are fields with Kubernetes types that a Garden uses in part.
var partlyUsedTypes = []string{"configMapRef", "config"}

// unsetFields collects the fields of a schema that a value does not set; items of a list are
// merged.
func unsetFields(schema map[string]any, value any, path string, missing *[]string) {
	if items, is := schema["items"].(map[string]any); is {
		together := map[string]any{}
		list, _ := value.([]any)
		for _, item := range list {
			if fields, is := item.(map[string]any); is {
				maps.Copy(together, fields)
			}
		}
		unsetFields(items, together, path, missing)
		return
	}
	properties, _ := schema["properties"].(map[string]any)
	fields, _ := value.(map[string]any)
	for name, property := range properties {
		if _, said := fields[name]; !said {
			*missing = append(*missing, path+"."+name)
			continue
		}
		if !slices.Contains(partlyUsedTypes, name) {
			unsetFields(property.(map[string]any), fields[name], path+"."+name, missing)
		}
	}
}
