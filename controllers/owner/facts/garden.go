// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"context"
	"encoding/base64"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/render"
)

// The Service of the virtual garden's gateway. The name of its namespace is the key of the address
// fact.
const (
	gatewayNamespace = "virtual-garden-istio-ingress"
	gatewayService   = "istio-ingressgateway"
)

// gardenFacts updates the facts of a Garden that change while its flow runs.
func gardenFacts(ctx context.Context, s Source, facts render.Facts) (render.Facts, error) {
	addresses, err := addressFacts(ctx, s)
	if err != nil {
		return facts, err
	}
	gateway, err := gatewayAddress(ctx, s)
	if err != nil {
		return facts, err
	}
	facts.Seeds = seedFacts(ctx, s, facts.Seeds)
	for name, value := range map[string]string{gatewayNamespace: gateway, render.FactTerminalHost: terminalHost(s, facts.Seeds)} {
		if value == "" {
			continue
		}
		if addresses == nil {
			addresses = map[string]string{}
		}
		addresses[name] = value
	}
	facts.Addresses = addresses
	facts.Extensions, err = bucketFacts(ctx, s)
	return facts, err
}

// gatewayAddress returns the address of the virtual garden's load balancer, or "" until it has one.
func gatewayAddress(ctx context.Context, s Source) (string, error) {
	ref := apply.Ref{APIVersion: "v1", Kind: "Service", Namespace: gatewayNamespace, Name: gatewayService}
	service, err := s.Local.Get(ctx, ref)
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", s.Local.Explain(ref, "read", err)
	}
	return loadBalancerAddress(service), nil
}

// roleWildcardCertificate is on the Secret with the certificate for all names under the ingress
// domains (upstream's).
const roleWildcardCertificate = "garden-cert"

// wildcardCertificate finds the certificate that a user has put beside the control plane, or nil if
// there is none. Two are an error, because the choice would be arbitrary.
func wildcardCertificate(secrets []corev1.Secret) (*render.WildcardCertificateFact, error) {
	var found *render.WildcardCertificateFact
	for _, s := range secrets {
		if s.Labels["gardener.cloud/role"] != roleWildcardCertificate || s.DeletionTimestamp != nil {
			continue
		}
		if found != nil {
			return nil, fmt.Errorf("two Secrets of namespace %s have the label gardener.cloud/role=%s: %s and %s; leave it on one", s.Namespace, roleWildcardCertificate, found.Name, s.Name)
		}
		found = &render.WildcardCertificateFact{Name: s.Name, Checksum: render.ChecksumOf(s.Data), CABundle: base64.StdEncoding.EncodeToString(s.Data["ca.crt"])}
	}
	return found, nil
}

// loadBalancerAddress returns the address for DNS: the last one, as in upstream, and its IP address
// rather than its hostname.
func loadBalancerAddress(service *unstructured.Unstructured) string {
	ingress, _, _ := unstructured.NestedSlice(service.Object, "status", "loadBalancer", "ingress")
	if len(ingress) == 0 {
		return ""
	}
	last, _ := ingress[len(ingress)-1].(map[string]any)
	if ip, _ := last["ip"].(string); ip != "" {
		return ip
	}
	name, _ := last["hostname"].(string)
	return name
}

// bucketFacts returns credentials and provider status of the Garden's BackupBuckets, which entries
// need. Other status fields change often and feed nothing.
func bucketFacts(ctx context.Context, s Source) (map[string]map[string]any, error) {
	gvk := schema.GroupVersionKind{Group: "extensions.gardener.cloud", Version: "v1alpha1", Kind: "BackupBucket"}
	list, err := s.Local.List(ctx, gvk, "", labels.Everything())
	if apply.IsUnserved(err) {
		return nil, nil
	}
	if err != nil {
		return nil, s.Local.Explain(apply.Ref{APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind}, "list", err)
	}
	out := map[string]map[string]any{}
	for _, bucket := range list {
		if class, _, _ := unstructured.NestedString(bucket.Object, "spec", "class"); class != garden {
			continue
		}
		said := map[string]any{}
		for _, field := range []string{"generatedSecretRef", "providerStatus"} {
			if value, has, _ := unstructured.NestedMap(bucket.Object, "status", field); has {
				said[field] = value
			}
		}
		if len(said) > 0 {
			out["backupbucket/"+bucket.GetName()] = said
		}
	}
	return out, nil
}
