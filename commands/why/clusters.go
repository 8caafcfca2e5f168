// SPDX-License-Identifier: Apache-2.0

package why

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/controllers/conventions"
	"github.com/pergola-dev/pergola/controllers/owner"
	"github.com/pergola-dev/pergola/landscapes"
	"github.com/pergola-dev/pergola/render"
)

// ObjectReader reads an object of a cluster; it is nil if the object or its kind does not exist.
type ObjectReader func(ctx context.Context, cluster string, ref change.Ref) (*unstructured.Unstructured, error)

// ReachableClusters returns the reachable clusters of a landscape in the order of names, with the
// Shoots in them. Connections are opened on demand.
func ReachableClusters(l *landscapes.Landscape, names []string, configs map[string]*rest.Config) ([]string, ObjectReader, error) {
	reachable := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return configs[name] == nil })
	shoots, err := render.SeedsOfShoots(l)
	if err != nil {
		return nil, nil, err
	}
	of := map[string]render.Owner{}
	for name, seed := range shoots {
		namespace, shoot, _ := strings.Cut(name, "/")
		o := render.Owner{Kind: owner.Shoot, Namespace: namespace, Name: shoot}
		if configs[seed] != nil {
			of[render.ShootCluster(o)] = o
			reachable = append(reachable, render.ShootCluster(o))
		}
	}
	return reachable, func(ctx context.Context, cluster string, ref change.Ref) (*unstructured.Unstructured, error) {
		config := configs[cluster]
		if o, is := of[cluster]; is {
			target, err := shootConfig(ctx, l, o, configs[shoots[o.Namespace+"/"+o.Name]])
			if err != nil {
				return nil, err
			}
			config = target
		}
		object, err := getObject(ctx, cluster, config, ref)
		if err != nil {
			return nil, fmt.Errorf("read %s on cluster %s: %w", ref, cluster, err)
		}
		return object, nil
	}, nil
}

// shootConfig returns the access to a Shoot's API server through its seed; an error if it does not
// run.
func shootConfig(ctx context.Context, l *landscapes.Landscape, shoot render.Owner, seed *rest.Config) (*rest.Config, error) {
	inputs, err := render.Owners(l, render.WithTime(time.Now()), render.WithOwnerKinds(owner.Shoot))
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(inputs, func(in render.Input) bool { return in.Owner.String() == shoot.String() })
	if i < 0 {
		return nil, fmt.Errorf("%s has no control plane", shoot)
	}
	local, err := conventions.NewCluster("its seed", seed, apply.ClusterOptions{})
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, local.Close)
	return owner.ShootAccess(ctx, owner.Owner{Input: inputs[i], Local: local})
}

// getObject reads an object, or nil if the object or its kind does not exist.
func getObject(ctx context.Context, cluster string, config *rest.Config, ref change.Ref) (*unstructured.Unstructured, error) {
	config = rest.CopyConfig(config)
	config.Timeout = 20 * time.Second
	apply.ReportUnreachable(config, cluster)
	found, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	mapping, err := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(found)).RESTMapping(ref.GroupKind(), ref.GVK().Version)
	if meta.IsNoMatchError(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	object, err := client.Resource(mapping.Resource).Namespace(ref.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("its kubeconfig names a file that does not exist: %w", err)
	}
	return object, err
}
