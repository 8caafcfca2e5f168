// SPDX-License-Identifier: Apache-2.0

package networkpolicy

import (
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

const (
	// ControllerName is the name of the controller in logs and metrics.
	ControllerName = "networkpolicy"
	// FieldManager owns what the controller writes.
	FieldManager = "pergola-networkpolicy"

	// defaultWorkers is upstream's number of Services that are reconciled concurrently.
	defaultWorkers = 5
	// defaultLingerPeriod is how long policies stay after their last client.
	defaultLingerPeriod = time.Minute
)

// Options are the options of the controller. Workers, NamespaceSelectors and
// IngressControllerSelector are those of upstream's configuration
// (pkg/apis/config/resourcemanager/v1alpha1, NetworkPolicyControllerConfig).
type Options struct {
	// Target is the cluster with the Services; the default is that of the manager. Its scheme must
	// include core/v1 and networking.k8s.io/v1, and its cache all namespaces. CacheByObject saves
	// memory there.
	Target cluster.Cluster
	// Workers is the number of Services reconciled concurrently; the default is 5.
	Workers int
	// NamespaceSelectors select the namespaces whose Services get policies: one of them must match.
	// None means all.
	NamespaceSelectors []metav1.LabelSelector
	// IngressControllerSelector selects the pods that may reach the backends of Ingresses; nil
	// ignores Ingresses.
	IngressControllerSelector *IngressControllerSelector
	// LingerPeriod is how long policies stay after the last pod with their label: replacing a pod
	// does not recreate them. The default is 1 minute; a negative value means none, as in upstream.
	LingerPeriod time.Duration
	// Clock is the real one by default.
	Clock clock.WithDelayedExecution
}

// IngressControllerSelector selects the pods of the ingress controller.
type IngressControllerSelector struct {
	// Namespace is where the pods run.
	Namespace string `json:"namespace"`
	// PodSelector matches their labels.
	PodSelector metav1.LabelSelector `json:"podSelector"`
}

// Add adds the controller to a manager. It sends no request before the manager starts.
func Add(mgr manager.Manager, o Options) error {
	if o.Target == nil {
		o.Target = mgr
	}
	if o.Workers <= 0 {
		o.Workers = defaultWorkers
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	switch {
	case o.LingerPeriod == 0:
		o.LingerPeriod = defaultLingerPeriod
	case o.LingerPeriod < 0:
		o.LingerPeriod = 0
	}
	var handled []labels.Selector
	for i := range o.NamespaceSelectors {
		selector, err := metav1.LabelSelectorAsSelector(&o.NamespaceSelectors[i])
		if err != nil {
			return fmt.Errorf("network policies: selector %d of namespaces: %w", i+1, err)
		}
		handled = append(handled, selector)
	}
	if s := o.IngressControllerSelector; s != nil {
		if s.Namespace == "" {
			return errors.New("network policies: the selector of the ingress controller has no namespace")
		}
		if _, err := metav1.LabelSelectorAsSelector(&s.PodSelector); err != nil {
			return fmt.Errorf("network policies: selector of the pods of the ingress controller: %w", err)
		}
	}
	x := newIndex(handled, o.IngressControllerSelector, o.LingerPeriod)
	r := &reconciler{index: x, client: o.Target.GetClient(), events: o.Target.GetEventRecorder(ControllerName + "-controller"), reported: map[types.NamespacedName]map[string]bool{}}
	c, err := controller.New(ControllerName, mgr, controller.Options{MaxConcurrentReconciles: o.Workers, Reconciler: r})
	if err != nil {
		return fmt.Errorf("network policies: %w", err)
	}
	f := &indexFeed{index: x, cache: o.Target.GetCache(), clock: o.Clock, log: mgr.GetLogger().WithValues("controller", ControllerName), onConflict: r.reportConflict}
	if err := c.Watch(f); err != nil {
		return fmt.Errorf("network policies: %w", err)
	}
	return nil
}

// CacheByObject returns options for the cache of the target. Pods and CustomResourceDefinitions,
// read as metadata, keep only their labels; other kinds drop managedFields. Policies keep them:
// they identify the owner of a policy that lost its labels.
func CacheByObject() map[client.Object]cache.ByObject {
	strip := cache.ByObject{Transform: cache.TransformStripManagedFields()}
	labelled := cache.ByObject{Transform: func(in any) (any, error) {
		if m, ok := in.(*metav1.PartialObjectMetadata); ok {
			m.Annotations, m.OwnerReferences, m.ManagedFields, m.Finalizers = nil, nil, nil, nil
		}
		return in, nil
	}}
	return map[client.Object]cache.ByObject{
		&corev1.Service{}: strip, &corev1.Namespace{}: strip, &networkingv1.Ingress{}: strip,
		&corev1.Pod{}: labelled, partialObject("apiextensions.k8s.io/v1", "CustomResourceDefinition"): labelled,
	}
}
