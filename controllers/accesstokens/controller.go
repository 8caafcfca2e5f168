// SPDX-License-Identifier: Apache-2.0

package accesstokens

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/pergola-dev/pergola/controllers/access"
	"github.com/pergola-dev/pergola/controllers/resourcemanager/tokenrequestor"
)

// isResponsible reports whether the API server answers and no resource manager requests the tokens;
// an error means unknown.
func (w *controlPlaneWorker) isResponsible(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(logr.NewContext(ctx, logr.Discard()), 10*time.Second)
	defer cancel()
	target, err := discovery.NewDiscoveryClientForConfig(w.Target)
	if err != nil {
		return false, err
	}
	if _, err := target.RESTClient().Get().AbsPath("/healthz").DoRaw(ctx); err != nil {
		return false, err
	}
	managed, err := w.hasReadyManager(ctx)
	return !managed, err
}

// hasReadyManager reports whether a gardener-resource-manager requests the tokens: one of its pods
// is ready and not played. A pod that is not ready may be waiting for its own token.
func (w *controlPlaneWorker) hasReadyManager(ctx context.Context) (bool, error) {
	local, err := kubernetes.NewForConfig(w.Local)
	if err != nil {
		return false, err
	}
	deployment, err := local.AppsV1().Deployments(w.Namespace).Get(ctx, w.ResourceManager, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return access.HasMatchingPod(ctx, w.Local, deployment, access.IsPodReadyAndServing)
}

// errControllerOutdated ends the controller when a resource manager takes over, or when the CAs of
// the API server change, which Secrets may request.
var errControllerOutdated = errors.New("a resource manager took over, or the CAs of the API server changed")

// runController runs the controller until ctx ends, or errControllerOutdated ends it.
func (k *Requester) runController(ctx context.Context, w *controlPlaneWorker) error {
	bundle, err := access.CABundle(ctx, w.Target)
	if err != nil {
		return fmt.Errorf("reading the CAs of the API server: %w", err)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	log := logr.FromSlogHandler(k.log().Handler())
	local := rest.CopyConfig(w.Local)
	local.WarningHandler = rest.NoWarnings{} // the default handler needs a global logger
	mgr, err := manager.New(local, manager.Options{
		Logger: log, Metrics: server.Options{BindAddress: "0"}, HealthProbeBindAddress: "0", GracefulShutdownTimeout: ptr.To(2 * time.Second),
		// Each control plane has a controller of this name.
		Controller: config.Controller{SkipNameValidation: ptr.To(true)},
	})
	if err != nil {
		return fmt.Errorf("preparing the token requests: %w", err)
	}
	err = tokenrequestor.Add(mgr, tokenrequestor.Options{
		Source: w.Local, Target: w.Target, Namespaces: []string{w.Namespace}, Audiences: []string{tokenrequestor.AudienceGardener}, CABundle: bundle, Clock: k.clock(),
	})
	if err != nil {
		return err
	}
	go func() {
		tick := k.clock().NewTicker(takeoverCheckInterval)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C():
			}
			managed, err := w.hasReadyManager(ctx)
			now, bundleErr := access.CABundle(ctx, w.Target)
			if err == nil && managed || bundleErr == nil && !bytes.Equal(now, bundle) {
				cancel(errControllerOutdated)
			}
		}
	}()
	if err := mgr.Start(ctx); err != nil {
		return err
	}
	if errors.Is(context.Cause(ctx), errControllerOutdated) {
		return nil
	}
	return ctx.Err()
}
