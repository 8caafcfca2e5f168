// SPDX-License-Identifier: Apache-2.0

package networkpolicy

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"
)

func key(namespace, name string) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: name}
}

func read[T any](t testing.TB, text string) *T {
	t.Helper()
	o := new(T)
	require.NoError(t, yaml.UnmarshalStrict([]byte(text), o))
	return o
}

// indexFixture fills an index as watches do.
type indexFixture struct {
	namespaces map[string]string // labels as k=v,...; terminating namespaces have terminating
	pods       string            // namespace: label label, ...
	service    string
	controller *IngressControllerSelector
	ingress    string
	handled    string
}

func (w indexFixture) index(t testing.TB) (*index, types.NamespacedName) {
	t.Helper()
	var handled []labels.Selector
	if w.handled != "" {
		selector, err := labels.Parse(w.handled)
		require.NoError(t, err)
		handled = append(handled, selector)
	}
	x := newIndex(handled, w.controller, 0)
	for name, text := range w.namespaces {
		set, err := labels.ConvertSelectorToLabelsMap(strings.TrimPrefix(text, "terminating"))
		require.NoError(t, err)
		x.setNamespace(name, &namespace{labels: set, terminating: strings.HasPrefix(text, "terminating")})
	}
	for i, part := range strings.Split(w.pods, ",") {
		ns, text, ok := strings.Cut(strings.TrimSpace(part), ": ")
		if !ok {
			continue
		}
		set := labels.Set{}
		for _, label := range strings.Fields(text) {
			set[labelPrefix+label] = labelAllowed
		}
		x.setPod(key(ns, fmt.Sprint("pod-", i)), set)
	}
	service := read[corev1.Service](t, w.service)
	k := key(service.Namespace, service.Name)
	x.setService(k, readServiceTraffic(service))
	if w.ingress != "" {
		x.setIngress(key(service.Namespace, "ingress"), readIngress(read[networkingv1.Ingress](t, w.ingress)))
	}
	return x, k
}

const resourceManager = `
apiVersion: v1
kind: Service
metadata: {name: gardener-resource-manager, namespace: a, annotations: {%s}}
spec:
  selector: {app: gardener-resource-manager}
  ports: [{name: server, port: 443, protocol: TCP, targetPort: 10250}]
`

type documentedCase struct {
	indexFixture
	annotations string
	want        string
}

// documentedCases are those of upstream's documentation (docs/concepts/resource-manager.md): names,
// labels and specs.
func documentedCases() map[string]documentedCase {
	return map[string]documentedCase{
		"in one namespace": {indexFixture: indexFixture{pods: "a: gardener-resource-manager-tcp-10250"}, want: `
- {metadata: {name: egress-to-gardener-resource-manager-tcp-10250, namespace: a}, spec: {
    podSelector: {matchLabels: {networking.resources.gardener.cloud/to-gardener-resource-manager-tcp-10250: allowed}},
    egress: [{to: [{podSelector: {matchLabels: {app: gardener-resource-manager}}}], ports: [{port: 10250, protocol: TCP}]}], policyTypes: [Egress]}}
- {metadata: {name: ingress-to-gardener-resource-manager-tcp-10250, namespace: a}, spec: {
    podSelector: {matchLabels: {app: gardener-resource-manager}},
    ingress: [{from: [{podSelector: {matchLabels: {networking.resources.gardener.cloud/to-gardener-resource-manager-tcp-10250: allowed}}}], ports: [{port: 10250, protocol: TCP}]}],
    policyTypes: [Ingress]}}
`},
		"from another namespace": {
			indexFixture: indexFixture{pods: "b: a-gardener-resource-manager-tcp-10250"},
			annotations:  `networking.resources.gardener.cloud/namespace-selectors: '[{"matchLabels":{"kubernetes.io/metadata.name":"b"}}]'`,
			want: `
- {metadata: {name: ingress-to-gardener-resource-manager-tcp-10250-from-b, namespace: a}, spec: {
    podSelector: {matchLabels: {app: gardener-resource-manager}},
    ingress: [{from: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: b}},
      podSelector: {matchLabels: {networking.resources.gardener.cloud/to-a-gardener-resource-manager-tcp-10250: allowed}}}], ports: [{port: 10250, protocol: TCP}]}],
    policyTypes: [Ingress]}}
- {metadata: {name: egress-to-a-gardener-resource-manager-tcp-10250, namespace: b}, spec: {
    podSelector: {matchLabels: {networking.resources.gardener.cloud/to-a-gardener-resource-manager-tcp-10250: allowed}},
    egress: [{to: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: a}}, podSelector: {matchLabels: {app: gardener-resource-manager}}}], ports: [{port: 10250, protocol: TCP}]}],
    policyTypes: [Egress]}}
`},
		"through the ingress controller": {
			indexFixture: indexFixture{
				controller: &IngressControllerSelector{Namespace: "default", PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{"foo": "bar"}}},
				ingress:    `{metadata: {namespace: a}, spec: {rules: [{host: grm, http: {paths: [{backend: {service: {name: gardener-resource-manager, port: {number: 443}}}, path: /, pathType: Prefix}]}}]}}`,
			},
			want: `
- {metadata: {name: ingress-to-gardener-resource-manager-tcp-10250-from-ingress-controller, namespace: a}, spec: {
    podSelector: {matchLabels: {app: gardener-resource-manager}},
    ingress: [{from: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: default}}, podSelector: {matchLabels: {foo: bar}}}], ports: [{port: 10250, protocol: TCP}]}],
    policyTypes: [Ingress]}}
- {metadata: {name: egress-to-a-gardener-resource-manager-tcp-10250-from-ingress-controller, namespace: default}, spec: {
    podSelector: {matchLabels: {foo: bar}},
    egress: [{to: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: a}}, podSelector: {matchLabels: {app: gardener-resource-manager}}}], ports: [{port: 10250, protocol: TCP}]}],
    policyTypes: [Egress]}}
`},
		"from everywhere to one port": {
			annotations: `networking.resources.gardener.cloud/from-world-to-ports: '[{"port":10250,"protocol":"TCP"}]'`,
			want: `
- {metadata: {name: ingress-to-gardener-resource-manager-from-world, namespace: a}, spec: {
    podSelector: {matchLabels: {app: gardener-resource-manager}}, ingress: [{ports: [{port: 10250, protocol: TCP}]}], policyTypes: [Ingress]}}
`},
		"from everywhere to all ports": {
			annotations: `networking.resources.gardener.cloud/from-world-to-ports: '[]'`,
			want: `
- {metadata: {name: ingress-to-gardener-resource-manager-from-world, namespace: a}, spec: {
    podSelector: {matchLabels: {app: gardener-resource-manager}}, ingress: [{}], policyTypes: [Ingress]}}
`},
		"by an alias": {
			indexFixture: indexFixture{pods: "a: all-bars"},
			annotations:  `networking.resources.gardener.cloud/from-all-bars-allowed-ports: '[{"port":"metrics"}]'`,
			want: `
- {metadata: {name: ingress-to-gardener-resource-manager-tcp-metrics-via-all-bars, namespace: a}, spec: {
    podSelector: {matchLabels: {app: gardener-resource-manager}},
    ingress: [{from: [{podSelector: {matchLabels: {networking.resources.gardener.cloud/to-all-bars: allowed}}}], ports: [{port: metrics, protocol: TCP}]}], policyTypes: [Ingress]}}
- {metadata: {name: egress-to-gardener-resource-manager-tcp-metrics-via-all-bars, namespace: a}, spec: {
    podSelector: {matchLabels: {networking.resources.gardener.cloud/to-all-bars: allowed}},
    egress: [{to: [{podSelector: {matchLabels: {app: gardener-resource-manager}}}], ports: [{port: metrics, protocol: TCP}]}], policyTypes: [Egress]}}
`},
	}
}

func TestPoliciesAreThoseOfUpstream(t *testing.T) {
	namespaces := map[string]string{"a": "kubernetes.io/metadata.name=a", "b": "kubernetes.io/metadata.name=b,role=client", "default": "kubernetes.io/metadata.name=default"}
	for name, c := range documentedCases() {
		t.Run(name, func(t *testing.T) {
			c.namespaces, c.service = namespaces, fmt.Sprintf(resourceManager, c.annotations)
			x, service := c.index(t)
			p := x.planFor(service)
			assert.Empty(t, p.problems)
			want := read[[]networkingv1.NetworkPolicy](t, c.want)
			require.Len(t, p.wanted, len(*want), "%v", p.wanted.keys())
			for _, w := range *want {
				got := p.wanted[key(w.Namespace, w.Name)]
				require.NotNil(t, got, "%s is not among %v", w.Name, p.wanted.keys())
				assert.True(t, apiequality.Semantic.DeepEqual(w.Spec, got.Spec), "want %+v\nhave %+v", w.Spec, got.Spec)
				assert.Equal(t, map[string]string{"networking.resources.gardener.cloud/service-name": "gardener-resource-manager", "networking.resources.gardener.cloud/service-namespace": "a"}, got.Labels)
				assert.NotEmpty(t, got.Annotations["gardener.cloud/description"])
			}
		})
	}
}

func TestWantedPolicies(t *testing.T) {
	namespaces := map[string]string{"a": "kind=home", "b": "kind=other", "c": "kind=other", "d": "terminating", "e": "kind=third"}
	const pairs = `ingress-to-web-tcp-8080 egress-to-web-tcp-8080`
	for name, c := range map[string]struct {
		indexFixture
		annotations map[string]string
		spec        string
		want        string // names, in namespace a unless said
		problem     string
	}{
		"nobody has the label":           {indexFixture: indexFixture{pods: "a: web-tcp-80 web-udp-8080, b: web-tcp-8080"}},
		"somebody has it":                {indexFixture: indexFixture{pods: "a: web-tcp-8080"}, want: pairs},
		"two ports to one":               {indexFixture: indexFixture{pods: "a: web-tcp-8080"}, spec: `{selector: {app: web}, ports: [{name: a, port: 80, targetPort: 8080}, {name: b, port: 81, targetPort: 8080}]}`, want: pairs},
		"named port and other protocol":  {indexFixture: indexFixture{pods: "a: web-udp-dns"}, spec: `{selector: {app: web}, ports: [{port: 53, protocol: UDP, targetPort: dns}]}`, want: "ingress-to-web-udp-dns egress-to-web-udp-dns"},
		"no selector":                    {indexFixture: indexFixture{pods: "a: web-tcp-8080"}, spec: `{ports: [{port: 80, targetPort: 8080}]}`},
		"the namespace is not handled":   {indexFixture: indexFixture{pods: "a: web-tcp-8080", handled: "kind=other"}},
		"not handled, nor told of":       {indexFixture: indexFixture{pods: "a: web-tcp-8080", handled: "kind=other"}, annotations: map[string]string{AnnotationPodSelector: `{`}},
		"the namespace is handled":       {indexFixture: indexFixture{pods: "a: web-tcp-8080", handled: "kind in (x,home)"}, want: pairs},
		"others are not selected":        {indexFixture: indexFixture{pods: "e: a-web-tcp-8080"}, annotations: map[string]string{AnnotationNamespaceSelectors: `[{"matchLabels":{"kind":"other"}}]`}},
		"selectors are alternatives":     {indexFixture: indexFixture{pods: "e: a-web-tcp-8080"}, annotations: map[string]string{AnnotationNamespaceSelectors: `[{"matchLabels":{"kind":"other"}},{"matchLabels":{"kind":"third"}}]`}, want: "ingress-to-web-tcp-8080-from-e e/egress-to-a-web-tcp-8080"},
		"not by the label of their own":  {indexFixture: indexFixture{pods: "b: web-tcp-8080, a: a-web-tcp-8080"}, annotations: map[string]string{AnnotationNamespaceSelectors: `[{}]`}},
		"two others":                     {indexFixture: indexFixture{pods: "b: a-web-tcp-8080, c: a-web-tcp-8080, a: web-tcp-8080"}, annotations: map[string]string{AnnotationNamespaceSelectors: `[{}]`}, want: pairs + " ingress-to-web-tcp-8080-from-b b/egress-to-a-web-tcp-8080 ingress-to-web-tcp-8080-from-c c/egress-to-a-web-tcp-8080"},
		"alias of the namespace":         {indexFixture: indexFixture{pods: "b: all-webs-web-tcp-8080, c: a-web-tcp-8080, a: web-tcp-8080"}, annotations: map[string]string{AnnotationNamespaceSelectors: `[{}]`, AnnotationNamespaceAlias: "all-webs"}, want: pairs + " ingress-to-web-tcp-8080-from-b b/egress-to-a-web-tcp-8080"},
		"alias of both":                  {indexFixture: indexFixture{pods: "b: all-webs-scrape"}, annotations: map[string]string{AnnotationNamespaceSelectors: `[{}]`, AnnotationNamespaceAlias: "all-webs", AnnotationFromPrefix + "scrape" + AnnotationFromSuffix: `[{"port":1,"protocol":"UDP"}]`}, want: "ingress-to-web-udp-1-via-scrape-from-b b/egress-to-a-web-udp-1-via-scrape"},
		"two aliases and two ports":      {indexFixture: indexFixture{pods: "a: x y"}, annotations: map[string]string{AnnotationFromPrefix + "x" + AnnotationFromSuffix: `[{"port":1},{"port":"two"}]`, AnnotationFromPrefix + "y" + AnnotationFromSuffix: `[{"port":1}]`}, want: "ingress-to-web-tcp-1-via-x egress-to-web-tcp-1-via-x ingress-to-web-tcp-two-via-x egress-to-web-tcp-two-via-x ingress-to-web-tcp-1-via-y egress-to-web-tcp-1-via-y"},
		"an alias without port":          {indexFixture: indexFixture{pods: "a: x web-tcp-8080"}, annotations: map[string]string{AnnotationFromPrefix + "x" + AnnotationFromSuffix: `[{"protocol":"TCP"}]`}, want: pairs, problem: "entry 1 has no port"},
		"an alias that is no list":       {indexFixture: indexFixture{pods: "a: x web-tcp-8080"}, annotations: map[string]string{AnnotationFromPrefix + "x" + AnnotationFromSuffix: `8080`}, want: pairs, problem: `want a list such as [{"protocol":"TCP","port":8080}]`},
		"selectors that cannot be read":  {indexFixture: indexFixture{pods: "a: web-tcp-8080"}, annotations: map[string]string{AnnotationNamespaceSelectors: `{}`}, want: pairs, problem: AnnotationNamespaceSelectors},
		"a selector that is none":        {indexFixture: indexFixture{pods: "a: web-tcp-8080, b: a-web-tcp-8080"}, annotations: map[string]string{AnnotationNamespaceSelectors: `[{"matchLabels":{"kind":"other"}},{"matchExpressions":[{"key":"x","operator":"Is"}]}]`}, want: pairs + " ingress-to-web-tcp-8080-from-b b/egress-to-a-web-tcp-8080", problem: "selector 2"},
		"world that cannot be read":      {indexFixture: indexFixture{pods: "a: web-tcp-8080"}, annotations: map[string]string{AnnotationFromWorld: ``}, want: pairs, problem: AnnotationFromWorld},
		"pods by an annotation":          {indexFixture: indexFixture{pods: "a: web-tcp-8080"}, spec: `{ports: [{port: 80, targetPort: 8080}]}`, annotations: map[string]string{AnnotationPodSelector: `{"matchLabels":{"app":"all"}}`}, want: pairs},
		"pods that cannot be read":       {indexFixture: indexFixture{pods: "a: web-tcp-8080"}, annotations: map[string]string{AnnotationPodSelector: `{"matchExpressions":[{"key":"app","operator":"Invalid"}]}`}, problem: AnnotationPodSelector},
		"an ingress without controller":  {indexFixture: indexFixture{ingress: `{metadata: {namespace: a}, spec: {rules: [{http: {paths: [{backend: {service: {name: web, port: {number: 80}}}}]}}]}}`}},
		"an ingress to a port by name":   {indexFixture: indexFixture{controller: &IngressControllerSelector{Namespace: "a"}, ingress: `{metadata: {namespace: a}, spec: {rules: [{}, {http: {paths: [{backend: {resource: {kind: X, name: z}}}, {backend: {service: {name: web, port: {name: two}}}}]}}]}}`}, spec: `{selector: {app: web}, ports: [{name: one, port: 80, targetPort: 8080}, {name: two, port: 81, targetPort: 8081}]}`, want: "ingress-to-web-tcp-8081-from-ingress-controller egress-to-web-tcp-8081-from-ingress-controller"},
		"an ingress to no port":          {indexFixture: indexFixture{controller: &IngressControllerSelector{Namespace: "a"}, ingress: `{metadata: {namespace: a}, spec: {rules: [{http: {paths: [{backend: {service: {name: web, port: {number: 8080}}}}]}}]}}`}},
		"an ingress to another service":  {indexFixture: indexFixture{controller: &IngressControllerSelector{Namespace: "a"}, ingress: `{metadata: {namespace: a}, spec: {rules: [{http: {paths: [{backend: {service: {name: xyz, port: {number: 80}}}}]}}]}}`}},
		"clients in one that terminates": {indexFixture: indexFixture{pods: "d: a-web-tcp-8080"}, annotations: map[string]string{AnnotationNamespaceSelectors: `[{}]`}, want: "ingress-to-web-tcp-8080-from-d d/egress-to-a-web-tcp-8080"},
	} {
		t.Run(name, func(t *testing.T) {
			c.namespaces, c.service = namespaces, serviceText(t, c.annotations, c.spec)
			x, service := c.index(t)
			p := x.planFor(service)
			want := []types.NamespacedName{}
			for _, text := range strings.Fields(c.want) {
				namespace, name, ok := strings.Cut(text, "/")
				if !ok {
					namespace, name = "a", text
				}
				want = append(want, key(namespace, name))
			}
			assert.ElementsMatch(t, want, p.wanted.keys())
			if c.problem == "" {
				assert.Empty(t, p.problems)
			} else if assert.Len(t, p.problems, 1) {
				assert.Contains(t, p.problems[0].text, c.problem)
			}
		})
	}
}

func serviceText(t testing.TB, annotations map[string]string, spec string) string {
	if spec == "" {
		spec = `{selector: {app: web}, ports: [{port: 80, targetPort: 8080}]}`
	}
	text, err := yaml.Marshal(map[string]any{"metadata": map[string]any{"name": "web", "namespace": "a", "annotations": annotations}})
	require.NoError(t, err)
	return string(text) + "spec: " + spec
}

// TestLongLabelsEndInAHash: the hashes come from sha256sum of `to-` and the rest, as upstream's.
func TestLongLabelsEndInAHash(t *testing.T) {
	for what, want := range map[string]string{
		"web-tcp-8080": "to-web-tcp-8080",
		"garden-" + strings.Repeat("x", 45) + "-tcp-443":                 "to-garden-" + strings.Repeat("x", 45) + "-tcp-443",
		"garden-" + strings.Repeat("x", 46) + "-tcp-443":                 "to-garden-" + strings.Repeat("x", 46) + "--1361b",
		"shoot--foo--bar-very-long-service-name-of-somebody-tcp-10250":   "to-shoot--foo--bar-very-long-service-name-of-somebody-tcp-10250",
		"shoot--foo--bar-very-long-service-name-of-somebody-tcp-metrics": "to-shoot--foo--bar-very-long-service-name-of-somebody-tcp-acbab",
	} {
		assert.Equal(t, "networking.resources.gardener.cloud/"+want, ClientLabel(what))
	}
}
