// SPDX-License-Identifier: Apache-2.0

package extensions

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/pergola-dev/pergola/hack/local/living/kinds"
	"github.com/pergola-dev/pergola/hack/local/living/queue"
)

const (
	apiGroup = "extensions.gardener.cloud"
	manager  = "pergola-local-extensions"

	annotationOperation       = "gardener.cloud/operation"
	annotationFail            = "local.pergola.dev/fail"
	annotationCodes           = "local.pergola.dev/fail-codes"
	annotationSlow            = "local.pergola.dev/slow"
	annotationOlderGeneration = "local.pergola.dev/older-generation"

	// retryDelay is the delay before a failed object is retried.
	retryDelay = time.Second
)

// resources are the resources that the player reconciles.
var resources = []string{
	"infrastructures", "controlplanes", "networks", "operatingsystemconfigs", "workers", "backupbuckets", "backupentries", "dnsrecords",
	"extensions", "containerruntimes", "bastions", "selfhostedshootexposures",
}

// operationTypes maps the requests that an extension executes to the type of lastOperation.
var operationTypes = map[string]string{"reconcile": "Reconcile", "migrate": "Migrate", "restore": "Restore"}

// Options configure a Player.
type Options struct {
	Client dynamic.Interface
	// Clock is the real clock if nil.
	Clock clock.WithTicker
	// Log is the default logger if nil.
	Log *slog.Logger
}

// Player reconciles all extension objects of a cluster.
type Player struct{ Options }

// New returns a Player; Run starts it.
func New(options Options) *Player {
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	if options.Log == nil {
		options.Log = slog.Default()
	}
	options.Log = options.Log.With("controller", "extensions")
	return &Player{options}
}

// Run reconciles until the context ends. Kinds may be added and removed meanwhile.
func (p *Player) Run(ctx context.Context) error {
	var all sync.WaitGroup
	for _, plural := range resources {
		resource := schema.GroupVersionResource{Group: apiGroup, Version: "v1alpha1", Resource: plural}
		var kind *kinds.Watcher
		work := queue.New(p.Clock, p.Log, func(ctx context.Context, key string) (time.Duration, error) {
			live := kind.Get(key)
			if live == nil {
				return 0, nil
			}
			// The cached object may be older than the player's last write, which would be repeated.
			namespace, name, err := cache.SplitMetaNamespaceKey(key)
			if err != nil {
				return 0, err
			}
			live, err = p.Client.Resource(resource).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
			if err == nil {
				return p.reconcile(ctx, resource, live)
			}
			if apierrors.IsNotFound(err) {
				return 0, nil
			}
			return 0, fmt.Errorf("reading %s %s: %w", plural, key, err)
		})
		kind = kinds.New(p.Client, resource, p.Clock, p.Log, func(object *unstructured.Unstructured) { work.AddObject(object) })
		all.Go(func() { kind.Run(ctx) })
		all.Go(func() { work.Run(ctx) })
	}
	all.Wait()
	return nil
}

// reconcile executes the next step for an object.
func (p *Player) reconcile(ctx context.Context, resource schema.GroupVersionResource, live *unstructured.Unstructured) (time.Duration, error) {
	finalizer := apiGroup + "/" + strings.ToLower(live.GetKind())
	held := slices.Contains(live.GetFinalizers(), finalizer)
	if live.GetDeletionTimestamp() != nil {
		if !held {
			return 0, nil
		}
		if message, fails := live.GetAnnotations()[annotationFail]; fails {
			return retryDelay, p.reportError(ctx, resource, live, "Delete", message)
		}
		return 0, p.patchFinalizers(ctx, resource, live, slices.DeleteFunc(live.GetFinalizers(), func(f string) bool { return f == finalizer }))
	}
	annotation := live.GetAnnotations()[annotationOperation]
	kind, asked := operationTypes[annotation]
	if !asked {
		if annotation != "" || !slices.Contains([]string{"Processing", "Error"}, nestedString(live, "status", "lastOperation", "state")) {
			return 0, nil // no request, or not an operation of extensions
		}
		return p.completeOperation(ctx, resource, live, nestedString(live, "status", "lastOperation", "type"))
	}
	if !held {
		if err := p.patchFinalizers(ctx, resource, live, append(live.GetFinalizers(), finalizer)); err != nil {
			return 0, err
		}
	}
	if kind == "Reconcile" && nestedString(live, "status", "lastOperation", "state") != "Succeeded" && slices.Contains([]string{"", "Create"}, nestedString(live, "status", "lastOperation", "type")) {
		kind = "Create"
	}
	// If the player ends between the two writes, it finds the request again.
	err := p.patchStatus(ctx, resource, live, map[string]any{"lastOperation": p.lastOperation(kind, "Processing", 10, fmt.Sprintf("%s of %s is played by the local cluster", kind, live.GetKind()))})
	if err != nil {
		return 0, err
	}
	return 0, p.patchObject(ctx, resource, live, map[string]any{"metadata": map[string]any{"annotations": map[string]any{annotationOperation: nil}}}, "")
}

// completeOperation ends an operation in progress, with an error or successfully.
func (p *Player) completeOperation(ctx context.Context, resource schema.GroupVersionResource, live *unstructured.Unstructured, kind string) (time.Duration, error) {
	if slow := live.GetAnnotations()[annotationSlow]; slow != "" && nestedString(live, "status", "lastOperation", "state") == "Processing" {
		duration, err := time.ParseDuration(slow)
		if err != nil {
			return retryDelay, p.reportError(ctx, resource, live, kind, "annotation "+annotationSlow+": "+err.Error())
		}
		begun, _ := time.Parse(time.RFC3339, nestedString(live, "status", "lastOperation", "lastUpdateTime"))
		if left := duration - p.Clock.Since(begun); left > 0 {
			return left, nil
		}
	}
	if message, fails := live.GetAnnotations()[annotationFail]; fails {
		return retryDelay, p.reportError(ctx, resource, live, kind, message)
	}
	missing, err := p.missingSecret(ctx, live)
	if err != nil {
		return 0, err
	}
	if missing != "" {
		return retryDelay, p.reportError(ctx, resource, live, kind, missing)
	}
	status, err := p.kindStatus(ctx, live)
	if err != nil {
		return 0, err
	}
	status["observedGeneration"] = live.GetGeneration()
	if live.GetAnnotations()[annotationOlderGeneration] != "" {
		status["observedGeneration"] = live.GetGeneration() - 1
	}
	status["lastError"] = nil
	status["lastOperation"] = p.lastOperation(kind, "Succeeded", 100, fmt.Sprintf("%s of %s was played by the local cluster", kind, live.GetKind()))
	if _, has, _ := unstructured.NestedFieldNoCopy(live.Object, "status", "state"); !has {
		status["state"] = map[string]any{"played": string(live.GetUID())}
	}
	return 0, p.patchStatus(ctx, resource, live, status)
}

// missingSecret names the missing Secret that an object refers to; it is empty if there is none.
func (p *Player) missingSecret(ctx context.Context, live *unstructured.Unstructured) (string, error) {
	name := nestedString(live, "spec", "secretRef", "name")
	if name == "" {
		return "", nil
	}
	namespace := nestedString(live, "spec", "secretRef", "namespace")
	if namespace == "" {
		namespace = live.GetNamespace()
	}
	_, err := p.Client.Resource(secretsResource).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return fmt.Sprintf("secret %s/%s not found", namespace, name), nil
	}
	if err != nil {
		return "", fmt.Errorf("reading Secret %s/%s: %w", namespace, name, err)
	}
	return "", nil
}

// reportError reports an error, but the same error only once.
func (p *Player) reportError(ctx context.Context, resource schema.GroupVersionResource, live *unstructured.Unstructured, kind, message string) error {
	codes := strings.Fields(live.GetAnnotations()[annotationCodes])
	seen, _, _ := unstructured.NestedInt64(live.Object, "status", "observedGeneration")
	had, _, _ := unstructured.NestedStringSlice(live.Object, "status", "lastError", "codes")
	if nestedString(live, "status", "lastOperation", "state") == "Error" && nestedString(live, "status", "lastOperation", "type") == kind &&
		nestedString(live, "status", "lastError", "description") == message && slices.Equal(codes, had) && seen == live.GetGeneration() {
		return nil
	}
	failure := map[string]any{"description": message, "lastUpdateTime": p.now(), "codes": nil}
	if len(codes) > 0 {
		failure["codes"] = codes
	}
	return p.patchStatus(ctx, resource, live, map[string]any{
		"observedGeneration": live.GetGeneration(), "lastError": failure, "lastOperation": p.lastOperation(kind, "Error", 50, message),
	})
}

func (p *Player) lastOperation(kind, state string, progress int, description string) map[string]any {
	return map[string]any{"type": kind, "state": state, "progress": progress, "description": description, "lastUpdateTime": p.now()}
}

func (p *Player) now() string { return p.Clock.Now().UTC().Format(time.RFC3339) }

func (p *Player) patchFinalizers(ctx context.Context, resource schema.GroupVersionResource, live *unstructured.Unstructured, all []string) error {
	return p.patchObject(ctx, resource, live, map[string]any{"metadata": map[string]any{"resourceVersion": live.GetResourceVersion(), "finalizers": all}}, "")
}

func (p *Player) patchStatus(ctx context.Context, resource schema.GroupVersionResource, live *unstructured.Unstructured, status map[string]any) error {
	return p.patchObject(ctx, resource, live, map[string]any{"status": status}, "status")
}

// patchObject changes an object. It ignores objects that no longer exist or have changed: an event
// follows.
func (p *Player) patchObject(ctx context.Context, resource schema.GroupVersionResource, live *unstructured.Unstructured, change map[string]any, sub string) error {
	body, err := json.Marshal(change)
	if err != nil {
		return fmt.Errorf("encoding a change of %s: %w", live.GetName(), err)
	}
	var path []string
	if sub != "" {
		path = []string{sub}
	}
	_, err = p.Client.Resource(resource).Namespace(live.GetNamespace()).Patch(ctx, live.GetName(), types.MergePatchType, body, metav1.PatchOptions{FieldManager: manager}, path...)
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("answering %s %s/%s: %w", live.GetKind(), live.GetNamespace(), live.GetName(), err)
	}
	return nil
}

func nestedString(live *unstructured.Unstructured, path ...string) string {
	value, _, _ := unstructured.NestedString(live.Object, path...)
	return value
}
