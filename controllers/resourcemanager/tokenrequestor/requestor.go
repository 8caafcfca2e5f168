// SPDX-License-Identifier: Apache-2.0

package tokenrequestor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	resourcesv1alpha1 "github.com/pergola-dev/pergola/api/resources/v1alpha1"
)

// ControllerName is upstream's name of the controller in logs and metrics.
const ControllerName = "token-requestor"

// Values of the label resources.gardener.cloud/class, which selects the responsible component.
const (
	// ClassShoot is for gardener-resource-manager.
	ClassShoot = "shoot"
	// ClassGarden is for gardenlet and gardener-operator.
	ClassGarden = "garden"
	// ClassAll selects all Secrets, with and without a class.
	ClassAll = "*"
)

// AudienceGardener is an audience that the API servers of shoots and of the virtual garden accept.
// Upstream requests it always for class shoot, and for class garden in gardener-operator but not in
// gardenlet.
const AudienceGardener = "gardener"

// minRetryPause and maxRetryPause bound the pauses after failures. At its renewal, a token has a
// fifth of its lifetime left.
const minRetryPause, maxRetryPause = time.Second, 2 * time.Minute

// Options are the options of the token requestor.
type Options struct {
	// Source has the Secrets; Target has the ServiceAccounts; the default is the cluster of the
	// manager.
	Source, Target *rest.Config
	// Class is the class of the Secrets; the default is shoot, * selects all.
	Class string
	// Namespaces are the namespaces of the Secrets; none means all.
	Namespaces []string
	// TargetNamespace overrides the annotated namespace of all ServiceAccounts; a gardenlet sets it
	// to that of its seed.
	TargetNamespace string
	// Audiences are the audiences of the tokens; none means the defaults of the target's API
	// server. See AudienceGardener.
	Audiences []string
	// CABundle is for Secrets that ask for one; the default is that of Target. A CA file is read
	// each time.
	CABundle []byte
	// Workers is the number of Secrets reconciled concurrently; the default is 5.
	Workers int
	// Clock is the real one by default.
	Clock clock.WithTicker
	// Jitter extends a duration by up to the given fraction; the default is wait.Jitter.
	Jitter func(time.Duration, float64) time.Duration
	// Metrics registers the metrics of this package; the default is the registry of
	// controller-runtime.
	Metrics prometheus.Registerer
	// Event publishes an event about a Secret, which has no data here; it may be nil.
	Event func(secret *corev1.Secret, reason, message string)
}

func (o *Options) setDefaults(mgr manager.Manager) {
	if o.Source == nil {
		o.Source = mgr.GetConfig()
	}
	if o.Target == nil {
		o.Target = mgr.GetConfig()
	}
	if o.Class == "" {
		o.Class = ClassShoot
	}
	if o.Workers <= 0 {
		o.Workers = 5
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Jitter == nil {
		o.Jitter = wait.Jitter
	}
	if o.Metrics == nil {
		o.Metrics = metrics.Registry
	}
}

// selector returns the labels of the Secrets.
func (o *Options) selector() labels.Set {
	set := labels.Set{resourcesv1alpha1.LabelPurpose: resourcesv1alpha1.LabelPurposeTokenRequestor}
	if o.Class != ClassAll {
		set[resourcesv1alpha1.LabelClass] = o.Class
	}
	return set
}

// caBundle returns the CA bundle for Secrets that ask for one, or nil if there is none.
func (o *Options) caBundle() ([]byte, error) {
	switch {
	case len(o.CABundle) > 0:
		return o.CABundle, nil
	case len(o.Target.CAData) > 0:
		return o.Target.CAData, nil
	case o.Target.CAFile == "":
		return nil, nil
	}
	raw, err := os.ReadFile(o.Target.CAFile)
	if err != nil {
		return nil, fmt.Errorf("reading the CA bundle of the target cluster: %w", err)
	}
	return raw, nil
}

// requestor reconciles the Secrets.
type requestor struct {
	options        Options
	source, target kubernetes.Interface
	accounts       *accountWatcher
	metrics        *requestorMetrics

	mu sync.Mutex
	// renewedAt is when this process last wrote a token to a Secret.
	renewedAt map[types.NamespacedName]time.Time
}

// Add adds a token requestor to a manager.
func Add(mgr manager.Manager, o Options) error {
	o.setDefaults(mgr)
	r, err := newRequestor(o)
	if err != nil {
		return err
	}
	secrets, err := metadata.NewForConfig(o.Source)
	if err != nil {
		return fmt.Errorf("creating the metadata client of the token requestor: %w", err)
	}
	ctrl, err := controller.New(ControllerName, mgr, controller.Options{
		Reconciler:              r,
		MaxConcurrentReconciles: o.Workers,
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](minRetryPause, maxRetryPause),
		NewQueue: func(name string, limiter workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
			return workqueue.NewTypedRateLimitingQueueWithConfig(limiter, workqueue.TypedRateLimitingQueueConfig[reconcile.Request]{Name: name, Clock: o.Clock})
		},
	})
	if err != nil {
		return fmt.Errorf("adding the token requestor: %w", err)
	}
	return ctrl.Watch(source.Func(func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		changed := func(secret types.NamespacedName) { queue.Add(reconcile.Request{NamespacedName: secret}) }
		r.accounts.start(ctx, changed)
		return watchSecrets(ctx, secrets, o.Namespaces, o.selector(), changed)
	}))
}

func newRequestor(o Options) (*requestor, error) {
	r := &requestor{options: o, renewedAt: map[types.NamespacedName]time.Time{}}
	var errSource, errTarget, errAccounts, errMetrics error
	r.source, errSource = kubernetes.NewForConfig(o.Source)
	r.target, errTarget = kubernetes.NewForConfig(o.Target)
	r.accounts, errAccounts = newAccountWatcher(o.Target)
	r.metrics, errMetrics = newMetrics(o.Metrics, o.Class)
	if err := errors.Join(errSource, errTarget, errAccounts, errMetrics); err != nil {
		return nil, fmt.Errorf("preparing the token requestor: %w", err)
	}
	return r, nil
}
