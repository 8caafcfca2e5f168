// SPDX-License-Identifier: Apache-2.0

package landscape

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	operatorv1alpha1 "github.com/pergola-dev/pergola/api/operator/v1alpha1"
	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/access"
	"github.com/pergola-dev/pergola/controllers/owner"
	"github.com/pergola-dev/pergola/internal/addresses"
	"github.com/pergola-dev/pergola/landscapes"
)

// IsDerived reports whether the runtime cluster contains the access to a cluster: the virtual
// garden, unless configured otherwise.
func (a Access) IsDerived(l *landscapes.Landscape, name string) bool {
	declared, _ := declaredAccess(l.Config.Spec.Clusters, name)
	return name == Virtual && a.KubeconfigByCluster[name] == "" && declared == (landscapev1alpha1.ClusterAccess{})
}

// VirtualGardenConfig returns the access to the virtual garden of a runtime cluster, for a command
// line. It makes no request, and the virtual garden need not exist yet.
func VirtualGardenConfig(l *landscapes.Landscape, of *rest.Config, clk clock.PassiveClock) (*rest.Config, error) {
	of = rest.CopyConfig(of)
	apply.ReportUnreachable(of, Runtime)
	read, err := access.NewSecretReader(of)
	if err != nil {
		return nil, fmt.Errorf("cluster %s: %w", Virtual, addresses.RedactError(err))
	}
	source := access.VirtualGardenSource(read, clk)
	source.Proxy = of.Proxy
	source.ExternalURL = func(ctx context.Context) (string, error) { return landscapeGardenAddress(ctx, l, of) }
	config := access.LazyConfig(source)
	if garden, _, err := l.Garden(); err == nil && garden != nil {
		if address := externalAddress(garden); address != "" {
			config.Host = address
		}
	}
	config.UserAgent = "pergola"
	return config, nil
}

// externalAddress returns the external address of a Garden's API, or "" if it has no domain.
func externalAddress(garden *operatorv1alpha1.Garden) string {
	for _, domain := range garden.Spec.VirtualCluster.DNS.Domains {
		return "https://api." + domain.Name
	}
	return ""
}

// landscapeGardenAddress returns the external address of the landscape's Garden. If another
// landscape has the Garden, it reads the one in the runtime cluster.
func landscapeGardenAddress(ctx context.Context, l *landscapes.Landscape, of *rest.Config) (string, error) {
	garden, _, err := l.Garden()
	if err != nil {
		return "", fmt.Errorf("reading the Garden: %w", err)
	}
	if garden == nil {
		return GardenAddress(ctx, of)
	}
	return requireAddress(garden)
}

func requireAddress(garden *operatorv1alpha1.Garden) (string, error) {
	if address := externalAddress(garden); address != "" {
		return address, nil
	}
	return "", errors.New("the Garden has no domain: set spec.virtualCluster.dns.domains")
}

// GardenAddress returns the external address of the Garden in a runtime cluster.
func GardenAddress(ctx context.Context, of *rest.Config) (string, error) {
	client, err := dynamic.NewForConfig(of)
	if err != nil {
		return "", addresses.RedactError(err)
	}
	list, err := client.Resource(operatorv1alpha1.SchemeGroupVersion.WithResource("gardens")).List(ctx, metav1.ListOptions{})
	if err != nil {
		return "", fmt.Errorf("reading the Garden of the runtime cluster, for its address: %w", addresses.RedactError(err))
	}
	if len(list.Items) == 0 {
		return "", errors.New("the runtime cluster has no Garden with its address: give --kubeconfig virtual=PATH")
	}
	garden := &operatorv1alpha1.Garden{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(list.Items[0].Object, garden); err != nil {
		return "", fmt.Errorf("reading the Garden of the runtime cluster: %w", err)
	}
	return requireAddress(garden)
}

// isVirtualPending reports whether a cluster is a virtual garden without access, because its Garden
// has not been reconciled yet.
func (c *Converger) isVirtualPending(ctx context.Context, name string) bool {
	return name == Virtual && c.connections.clusters[name] != nil && !access.HasCredentials(ctx, c.connections.clusters[name].RESTConfig())
}

// hasVirtualObjects reports whether the landscape has, or had, objects in a virtual garden.
func (c *Converger) hasVirtualObjects(ctx context.Context, d *declarations) bool {
	if d.count() > 0 {
		return true
	}
	for _, o := range c.members.all {
		if o.ObjectCluster == c.connections.clusters[Virtual] || o.Input.Owner.Kind == owner.Garden {
			return true
		}
	}
	entries, err := c.declarationInventory(Virtual).Load(ctx)
	return err != nil || len(entries) > 0
}
