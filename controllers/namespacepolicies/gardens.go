// SPDX-License-Identifier: Apache-2.0

package namespacepolicies

import (
	"context"
	"fmt"
	"log/slog"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	operatorv1alpha1 "github.com/pergola-dev/pergola/api/operator/v1alpha1"
)

// FollowGarden passes the networks of the cluster's Garden to the controller until ctx ends. It
// calls Set only once the Gardens are listed.
func FollowGarden(ctx context.Context, config *rest.Config, c *Controller, log *slog.Logger) error {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("a client for Gardens: %w", err)
	}
	gardens := dynamicinformer.NewFilteredDynamicInformer(client, operatorv1alpha1.SchemeGroupVersion.WithResource("gardens"), "", 0, cache.Indexers{}, nil).Informer()
	if err := gardens.SetTransform(dropManagedFields); err != nil {
		return fmt.Errorf("watching Gardens: %w", err)
	}
	var telling sync.Mutex // makes Set calls follow the order of reads
	tell := func(any) {
		telling.Lock()
		defer telling.Unlock()
		garden := oldestGarden(gardens.GetStore().List())
		if garden == nil {
			c.SetNetworks(nil)
			return
		}
		networks, err := NetworksOfGarden(garden)
		if err != nil {
			log.Error("network policies of namespaces stay unchanged", "error", err)
			return
		}
		c.SetNetworks(networks)
	}
	registration, err := gardens.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: tell, UpdateFunc: func(_, next any) { tell(next) }, DeleteFunc: tell})
	if err != nil {
		return fmt.Errorf("watching Gardens: %w", err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		gardens.RunWithContext(ctx)
	}()
	if cache.WaitForCacheSync(ctx.Done(), registration.HasSynced) {
		tell(nil) // also if no Garden exists
	}
	<-done
	return nil
}

// oldestGarden returns the oldest Garden: admission rejects others.
func oldestGarden(list []any) *unstructured.Unstructured {
	var out *unstructured.Unstructured
	for _, item := range list {
		garden, ok := item.(*unstructured.Unstructured)
		if !ok {
			continue
		}
		if out == nil {
			out = garden
			continue
		}
		a, b := garden.GetCreationTimestamp(), out.GetCreationTimestamp()
		if a.Before(&b) || a.Equal(&b) && garden.GetName() < out.GetName() {
			out = garden
		}
	}
	return out
}
