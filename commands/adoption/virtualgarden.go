// SPDX-License-Identifier: Apache-2.0

package adoption

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/landscape"
)

// apiServerName is the name of the Service and the Deployment of the virtual garden's API server.
const apiServerName = "virtual-garden-kube-apiserver"

// checkExposure reports how clients reach the virtual garden's API server: by the gateway, or by
// its own load balancer, which the takeover removes.
func (a *Adopter) checkExposure(ctx context.Context, r *Report) error {
	live, err := readLive(ctx, a.Converger.Cluster(landscape.Runtime), apply.Ref{APIVersion: "v1", Kind: "Service", Namespace: "garden", Name: apiServerName})
	if err != nil || live == nil {
		return err
	}
	f := Finding{Level: LevelNoAction, Area: AreaExposure, Cluster: landscape.Runtime, Objects: []string{apply.RefOf(live).String()}, Text: "it is a ClusterIP: clients connect through the gateway"}
	if kind := stringField(live, "spec", "type"); kind != "" && kind != "ClusterIP" {
		f.Level, f.Text = LevelRestarts, fmt.Sprintf("it is a %s, and becomes a ClusterIP behind the gateway of istio: clients that use its address lose access", kind)
		f.Advice = "lower the TTL of the API server's names now, and point them to Service virtual-garden-istio-ingress/istio-ingressgateway once it has an address (docs/howto/migrate-from-gardener.md)"
	}
	r.add(f)
	return nil
}

// gardenAPIService is the APIService by which the virtual garden serves Shoots and Seeds. It refers
// to gardener-apiserver, or is local for CRDs.
const gardenAPIService = "v1beta1.core.gardener.cloud"

// checkGardenAPI reports a change of the Gardener API's server. gardener-apiserver and CRDs store
// their objects under different etcd prefixes, so neither finds objects of the other.
func (a *Adopter) checkGardenAPI(ctx context.Context, r *Report) error {
	virtual := a.Converger.Cluster(landscape.Virtual)
	if virtual == nil {
		return nil
	}
	live, err := readLive(ctx, virtual, apply.Ref{APIVersion: "apiregistration.k8s.io/v1", Kind: "APIService", Name: gardenAPIService})
	if err != nil || live == nil {
		return err
	}
	wanted := false
	for _, place := range a.Converger.RenderedObjects() {
		for _, o := range place.Bundle.Objects {
			wanted = wanted || place.Cluster == landscape.Virtual && o.GetKind() == "APIService" && o.GetName() == gardenAPIService
		}
	}
	if f, differs := compareAPI(stringField(live, "spec", "service", "name"), wanted); differs {
		f.Objects = []string{apply.RefOf(live).String()}
		r.add(f)
	}
	return nil
}

// compareAPI reports whether the Gardener API's objects would be lost. service is the current
// server; it is "" for CRDs.
func compareAPI(service string, aggregated bool) (f Finding, differs bool) {
	f = Finding{Level: LevelBlocks, Area: AreaGarden, Cluster: landscape.Virtual}
	switch {
	case service != "" && !aggregated:
		f.Text, f.Advice = service+" serves Seeds, Shoots and all other kinds of Gardener, but the landscape has definitions for them: no existing object would be found", "set spec.gardenAPI: aggregated in landscape.yaml"
	case service == "" && aggregated:
		f.Text, f.Advice = "definitions serve Seeds, Shoots and all other kinds of Gardener, but the landscape has gardener-apiserver for them: no existing object would be found", "set spec.gardenAPI: crd in landscape.yaml"
	default:
		return f, false
	}
	return f, true
}

// virtualGardenIdentity is how clients and seeds identify a virtual garden.
type virtualGardenIdentity struct {
	// cluster is the cluster identity that Gardener assigned, or "".
	cluster string
	// address is the cluster IP of Service kubernetes.
	address string
	// issuer is the issuer of its tokens.
	issuer string
}

// checkIdentity compares the live virtual garden with Git if there is no Garden to compare.
func (a *Adopter) checkIdentity(ctx context.Context, r *Report) error {
	virtual := a.Converger.Cluster(landscape.Virtual)
	if r.Garden != "" || virtual == nil {
		return nil
	}
	declared, err := a.Converger.DefaultedGarden()
	if err != nil {
		return err
	}
	known, err := readLive(ctx, virtual, apply.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "kube-system", Name: "cluster-identity"})
	if err != nil {
		return err
	}
	service, err := readLive(ctx, virtual, apply.Ref{APIVersion: "v1", Kind: "Service", Namespace: "default", Name: "kubernetes"})
	if err != nil {
		return err
	}
	lives := virtualGardenIdentity{cluster: stringField(known, "data", "cluster-identity"), address: stringField(service, "spec", "clusterIP")}
	client, err := clientOf(virtual)
	if err != nil {
		return err
	}
	said := struct {
		Issuer string `json:"issuer"`
	}{}
	raw, err := client.Discovery().RESTClient().Get().AbsPath("/.well-known/openid-configuration").DoRaw(ctx)
	// an unpublished issuer is not compared
	if err == nil && json.Unmarshal(raw, &said) == nil {
		lives.issuer = said.Issuer
	}
	r.add(compareIdentity(lives, declared, a.renderedIssuers())...)
	return nil
}

// renderedIssuers returns the token issuers that the rendered API server accepts; the first one is
// its own.
func (a *Adopter) renderedIssuers() []string {
	for _, place := range a.Converger.RenderedObjects() {
		for _, o := range place.Bundle.Objects {
			if o.GetKind() == "Deployment" && o.GetName() == apiServerName {
				return flagValues(o.Unstructured, "--service-account-issuer=")
			}
		}
	}
	return nil
}

// flagValues returns the values of a flag in the containers of a Deployment.
func flagValues(deployment *unstructured.Unstructured, flag string) []string {
	var out []string
	containers, _, _ := unstructured.NestedSlice(deployment.Object, "spec", "template", "spec", "containers")
	for _, raw := range containers {
		container, _ := raw.(map[string]any)
		for _, field := range []string{"command", "args"} {
			list, _, _ := unstructured.NestedStringSlice(container, field)
			for _, arg := range list {
				if len(arg) > len(flag) && arg[:len(flag)] == flag {
					out = append(out, arg[len(flag):])
				}
			}
		}
	}
	return out
}

// compareIdentity reports differences by which clients would no longer recognize a virtual garden.
func compareIdentity(lives virtualGardenIdentity, garden map[string]any, issuers []string) []Finding {
	var out []Finding
	blocks := func(text, do string) {
		out = append(out, Finding{Level: LevelBlocks, Area: AreaGarden, Cluster: landscape.Virtual, Text: text, Advice: do})
	}
	cluster, _, _ := unstructured.NestedString(garden, "spec", "virtualCluster", "gardener", "clusterIdentity")
	if lives.cluster != "" && lives.cluster != cluster {
		blocks(fmt.Sprintf("the identity of the virtual garden is %q, but the landscape declares %q: Seeds, Shoots and the objects of extensions carry the live one", lives.cluster, cluster),
			"write the live value into spec.virtualCluster.gardener.clusterIdentity")
	}
	ranges, _, _ := unstructured.NestedStringSlice(garden, "spec", "virtualCluster", "networking", "services")
	if address, err := netip.ParseAddr(lives.address); err == nil && len(ranges) > 0 && !slices.ContainsFunc(ranges, func(text string) bool {
		prefix, err := netip.ParsePrefix(text)
		return err == nil && prefix.Contains(address)
	}) {
		blocks(fmt.Sprintf("Service kubernetes of the virtual garden has address %s, which is in none of the declared ranges (%v): other Services have such addresses, too", address, ranges),
			"write the live range into spec.virtualCluster.networking.services")
	}
	switch {
	case lives.issuer == "" || len(issuers) == 0 || lives.issuer == issuers[0]:
	case slices.Contains(issuers, lives.issuer):
		out = append(out, Finding{Level: LevelChanges, Area: AreaGarden, Cluster: landscape.Virtual, Text: fmt.Sprintf("%s issues tokens from now on; tokens of %s stay valid", issuers[0], lives.issuer)})
	default:
		blocks(fmt.Sprintf("tokens name issuer %s, but the rendered API server accepts only %v", lives.issuer, issuers),
			"declare it under spec.virtualCluster.kubernetes.kubeAPIServer.serviceAccountConfig, as issuer or in acceptedIssuers")
	}
	return out
}
