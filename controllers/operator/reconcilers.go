// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/discovery"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/controllers/accesstokens"
	"github.com/pergola-dev/pergola/source"
	"github.com/pergola-dev/pergola/source/receiver"
)

// waitForLandscapeKind waits until the runtime cluster serves Landscapes.
func (p *runningOperator) waitForLandscapeKind(ctx context.Context) error {
	api, err := discovery.NewDiscoveryClientForConfig(p.role.Config)
	if err != nil {
		return fmt.Errorf("creating a client for the API of the runtime cluster: %w", err)
	}
	version := landscapev1alpha1.SchemeGroupVersion.String()
	told := ""
	for {
		_, err := api.ServerResourcesForGroupVersionWithContext(ctx, version)
		switch {
		case err == nil, apierrors.IsForbidden(err):
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		}
		why := fmt.Sprintf("cannot read the API resources of the runtime cluster: %v", err)
		if apierrors.IsNotFound(err) {
			why = fmt.Sprintf("the runtime cluster has no CustomResourceDefinition of Landscapes (%s): run pergola install", version)
		}
		p.setNotWorkingReason(why)
		if why != told {
			p.role.Log.Error(why)
			told = why
		}
		if !p.sleep(ctx, leaseRetryInterval) {
			return ctx.Err()
		}
	}
}

// runReconcilers runs a syncer for each Landscape until the context ends.
func (p *runningOperator) runReconcilers(ctx context.Context) error {
	informer, err := p.mgr.GetCache().GetInformer(ctx, &landscapev1alpha1.Landscape{})
	if err != nil {
		return fmt.Errorf("watching Landscapes: %w", err)
	}
	changed := func(o any) {
		if d, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
			o = d.Obj
		}
		if l, ok := o.(*landscapev1alpha1.Landscape); ok {
			p.wakeReconcilers(ctx, client.ObjectKeyFromObject(l))
		}
	}
	handle, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: changed, DeleteFunc: changed,
		UpdateFunc: func(_, next any) { changed(next) },
	})
	if err != nil {
		return fmt.Errorf("watching Landscapes: %w", err)
	}
	<-ctx.Done()
	_ = informer.RemoveEventHandler(handle) // the cache ends, too
	p.mu.Lock()
	all := make([]*runningReconciler, 0, len(p.reconcilers))
	for _, s := range p.reconcilers {
		all = append(all, s)
	}
	p.mu.Unlock()
	for _, s := range all {
		<-s.done
	}
	for key, store := range p.validationCaches {
		if err := store.Save(); err != nil {
			p.role.Log.Info("cannot save the results of validation", "landscape", key.String(), "error", err)
		}
	}
	return nil
}

// wakeReconcilers wakes or starts the syncer of a Landscape, and wakes its dependents.
func (p *runningOperator) wakeReconcilers(ctx context.Context, key receiver.Key) {
	l, err := p.landscapeOf(key)
	p.mu.Lock()
	s := p.reconcilers[key]
	if s == nil && err == nil && l != nil && ctx.Err() == nil {
		s = p.startReconciler(ctx, key)
	}
	var wake []*runningReconciler
	if s != nil {
		wake = append(wake, s)
	}
	for other, r := range p.reconcilers {
		if other.Namespace == key.Namespace && other != key {
			wake = append(wake, r)
		}
	}
	p.mu.Unlock()
	for _, r := range wake {
		if r == s || p.hasDependency(r.reconciler.key, key) {
			r.reconciler.requestStep()
		}
	}
}

func (p *runningOperator) hasDependency(dependent, key receiver.Key) bool {
	l, err := p.landscapeOf(dependent)
	return err == nil && l != nil && slices.Contains(l.Spec.DependsOn, landscapev1alpha1.Dependency{Name: key.Name})
}

// startReconciler starts a syncer; the lock is held.
func (p *runningOperator) startReconciler(ctx context.Context, key receiver.Key) *runningReconciler {
	outer := ctx
	ctx, cancel := context.WithCancel(ctx)
	s := &landscapeReconciler{operator: p, key: key, broadcaster: p.requestHandler.broadcasterOf(key), stepRequests: make(chan struct{}, 1), callbacks: make(chan func()), shared: sharedResources{tokens: &accesstokens.Requester{Clock: p.role.Clock, Log: p.role.Log}}, status: &statusWriter{client: p.client, apiReader: p.mgr.GetAPIReader(), holdsLease: p.hasLease, clock: p.role.Clock, log: p.role.Log}}
	r := &runningReconciler{reconciler: s, stop: cancel, done: make(chan struct{})}
	p.reconcilers[key] = r
	go func() {
		defer close(r.done)
		defer cancel()
		s.runUntilDeleted(ctx)
		if ctx.Err() != nil {
			return
		}
		// The object no longer exists, but may already be recreated.
		p.mu.Lock()
		delete(p.reconcilers, key)
		var twins []*runningReconciler
		if p.nameOwners[key.Name] == key.Namespace {
			delete(p.nameOwners, key.Name)
			for other, r := range p.reconcilers {
				if other.Name == key.Name {
					twins = append(twins, r)
				}
			}
		}
		p.mu.Unlock()
		for _, r := range twins {
			r.reconciler.requestStep()
		}
		p.metrics.deleteSeries(key)
		p.notifier.Forget(key)
		if l, err := p.landscapeOf(key); err == nil && l != nil {
			p.wakeReconcilers(outer, key) // the outer context does not end with this syncer
		}
	}()
	return r
}

// dependencyCycle returns the path by which a Landscape depends on itself, or "" if there is none.
func (p *runningOperator) dependencyCycle(from *landscapev1alpha1.Landscape) string {
	var walk func(l *landscapev1alpha1.Landscape, way []string) string
	walk = func(l *landscapev1alpha1.Landscape, way []string) string {
		for _, d := range l.Spec.DependsOn {
			if d.Name == from.Name {
				return strings.Join(append(way, d.Name), " → ")
			}
			if slices.Contains(way, d.Name) {
				continue // a cycle of others
			}
			next, err := p.landscapeOf(receiver.Key{Namespace: from.Namespace, Name: d.Name})
			if err != nil || next == nil {
				continue
			}
			if found := walk(next, append(slices.Clone(way), d.Name)); found != "" {
				return found
			}
		}
		return ""
	}
	return walk(from, []string{from.Name})
}

// conflictingNameOwner returns a Landscape of the same name in another namespace that owns the
// name, or "" for none. Inventories have the name alone. So the first owner stays the owner while
// it exists.
func (p *runningOperator) conflictingNameOwner(l *landscapev1alpha1.Landscape) string {
	list := &landscapev1alpha1.LandscapeList{}
	if err := p.cacheReader.List(context.Background(), list); err != nil { // from the cache
		return ""
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	holder := p.nameOwners[l.Name]
	if holder == "" {
		first := l
		for i := range list.Items {
			if o := &list.Items[i]; o.Name == l.Name && hasNamePrecedence(o, first) {
				first = o
			}
		}
		if holder = first.Namespace; holder == l.Namespace {
			p.nameOwners[l.Name] = holder
		}
	}
	if holder == l.Namespace {
		return ""
	}
	return holder + "/" + l.Name
}

// hasNamePrecedence reports which of two Landscapes of one name is synced: one with a history, else
// the older one.
func hasNamePrecedence(a, b *landscapev1alpha1.Landscape) bool {
	if begun := len(a.Status.History) > 0; begun != (len(b.Status.History) > 0) {
		return begun
	}
	if !a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return a.CreationTimestamp.Before(&b.CreationTimestamp)
	}
	return a.Namespace < b.Namespace
}

// sourceID changes when the source has to be reopened.
func sourceID(l *landscapev1alpha1.Landscape) string {
	s := l.Spec.Source.DeepCopy()
	s.Interval, s.Path = nil, ""
	return jsonDigest(s)
}

// specID changes when the same revision has to be applied again.
type specID struct{ approvalsDigest, otherDigest string }

// specOf returns the specID of an object, without fields about schedule and notifications.
func specOf(l *landscapev1alpha1.Landscape) specID {
	s := l.Spec.DeepCopy()
	approvals := jsonDigest(s.Approved)
	s.Approved = nil
	s.Suspend, s.Suspension, s.Interval, s.RetryInterval, s.Windows, s.DependsOn, s.Receivers, s.Notifications = false, nil, nil, nil, nil, nil, nil, nil
	s.Source.Interval = nil
	return specID{approvalsDigest: approvals, otherDigest: jsonDigest(s)}
}

func jsonDigest(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprintf("%p", v) // not reachable: every caller's value can be marshalled
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// openRemote opens the source of a Landscape with the data of its Secrets.
func (p *runningOperator) openRemote(l *landscapev1alpha1.Landscape, with sourceSecrets) (remote source.Remote, err error) {
	spec, options := l.Spec.Source, p.remoteOptions(l, with.Keys)
	if spec.SecretRef != nil {
		if options.Credentials, err = source.CredentialsOf(spec.URL, with.Login); err != nil {
			return nil, fmt.Errorf("spec.source.secretRef: %w", err)
		}
	}
	if spec.ProxySecretRef != nil {
		if options.Proxy, err = source.ProxyOf(with.Proxy); err != nil {
			return nil, fmt.Errorf("spec.source.proxySecretRef: %w", err)
		}
	}
	remote, err = source.NewRemote(options)
	return remote, prefixSourceField(err)
}

// openCache opens the cache of a Landscape's source. It needs no credentials, but verifies
// signatures. The spec's reference does not matter for an applied revision, so a wrong one is
// ignored. keeps is the revision to maintain, whose tag has the signature.
func (p *runningOperator) openCache(l *landscapev1alpha1.Landscape, keys map[string][]byte, keeps string) (source.Remote, error) {
	options := p.remoteOptions(l, keys)
	options.Offline, options.Ref = true, landscapev1alpha1.Reference{}
	if v := options.Verify; v != nil && v.Mode != "" && v.Mode != landscapev1alpha1.VerifyHEAD {
		if kept, err := source.ParseRevision(keeps); err == nil {
			options.Ref.Tag = kept.Name
		}
	}
	return source.NewRemote(options)
}

// prefixSourceField prefixes an error with the field of the object.
func prefixSourceField(err error) error {
	e, ok := errors.AsType[*source.Error](err)
	if !ok || e.Field == "" {
		return err
	}
	out := *e
	out.Message = "spec.source." + e.Message
	return &out
}

// remoteOptions returns the options of a source without credentials and proxy.
func (p *runningOperator) remoteOptions(l *landscapev1alpha1.Landscape, keys map[string][]byte) source.Options {
	spec := l.Spec.Source
	options := source.Options{URL: spec.URL, Submodules: spec.Submodules, Insecure: spec.Insecure, AppliedRevision: l.Status.LastAppliedRevision, Clock: p.role.Clock}
	if spec.Ref != nil {
		options.Ref = *spec.Ref
	}
	if spec.Timeout != nil {
		options.Timeout = spec.Timeout.Duration
	}
	if p.role.CacheDir != "" {
		options.Dir = filepath.Join(p.role.CacheDir, "sources", l.Namespace, l.Name)
	}
	if v := spec.Verify; v != nil {
		options.Verify = &source.Verification{Mode: v.Mode, Keys: keys}
	}
	return options
}
