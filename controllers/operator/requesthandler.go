// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/controllers/notification"
	"github.com/pergola-dev/pergola/source/receiver"
)

// requestHandler handles requests for syncs in every replica of the operator. A replica without the
// lease forwards them through the object.
type requestHandler struct {
	operator *runningOperator
	receiver *receiver.Receiver

	mu           sync.Mutex
	broadcasters map[receiver.Key]*progressBroadcaster
	tokens       map[tokenKey]cachedToken
	destinations map[receiver.Key]cachedDestinations
}

// tokenKey names a Secret of a receiver.
type tokenKey struct{ namespace, secret string }

type cachedToken struct {
	value  []byte
	readAt time.Time
}

type cachedDestinations struct {
	generation   int64
	readAt       time.Time
	destinations []notification.Destination
	// problems list the destinations that cannot be used.
	problems []string
}

// secretCacheTTL is how long the data of a Secret is cached.
const secretCacheTTL = 5 * time.Minute

func newRequestHandler(p *runningOperator) *requestHandler {
	d := &requestHandler{operator: p, broadcasters: map[receiver.Key]*progressBroadcaster{}, tokens: map[tokenKey]cachedToken{}, destinations: map[receiver.Key]cachedDestinations{}}
	d.receiver = receiver.New(receiver.Options{Requester: d, Proxies: p.role.Serving.ReceiverProxies, Log: logr.FromSlogHandler(p.role.Log.Handler())})
	return d
}

func (d *requestHandler) broadcasterOf(key receiver.Key) *progressBroadcaster {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.broadcasters[key] == nil {
		d.broadcasters[key] = &progressBroadcaster{}
	}
	return d.broadcasters[key]
}

// Receiver implements receiver.Requester. Only an existing receiver costs an API request, at most
// one per secretCacheTTL.
func (d *requestHandler) Receiver(ctx context.Context, namespace, name, entry string) (receiver.Target, bool) {
	l, err := d.operator.landscapeOf(receiver.Key{Namespace: namespace, Name: name})
	if err != nil || l == nil {
		return receiver.Target{}, false
	}
	i := slices.IndexFunc(l.Spec.Receivers, func(r landscapev1alpha1.Receiver) bool { return r.Name == entry })
	if i < 0 {
		return receiver.Target{}, false
	}
	r := l.Spec.Receivers[i]
	value, ok := d.receiverToken(ctx, tokenKey{namespace, r.SecretRef.Name})
	target := receiver.Target{Type: r.Type, Token: value}
	if l.Spec.Source != nil && l.Spec.Source.Ref != nil {
		target.Ref = *l.Spec.Source.Ref
	}
	return target, ok
}

// receiverToken reads the Secret of a receiver, existing or not, at most once per secretCacheTTL.
func (d *requestHandler) receiverToken(ctx context.Context, key tokenKey) ([]byte, bool) {
	now := d.operator.role.Clock.Now()
	d.mu.Lock()
	known, ok := d.tokens[key]
	d.mu.Unlock()
	if ok && now.Sub(known.readAt) < secretCacheTTL {
		return known.value, len(known.value) > 0
	}
	data, err := secretReader{client: d.operator.client, namespace: key.namespace}.dataOf(ctx, &landscapev1alpha1.LocalSecretReference{Name: key.secret}, "spec.receivers")
	if err != nil {
		d.operator.role.Log.Error("a receiver has no token", "namespace", key.namespace, "error", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	value := bytes.TrimSpace(data["token"]) // files end with a newline
	d.tokens[key] = cachedToken{value: value, readAt: now}
	return value, len(value) > 0
}

// Request implements receiver.Requester.
func (d *requestHandler) Request(ctx context.Context, key receiver.Key, push receiver.Push) {
	d.operator.mu.Lock()
	r, working := d.operator.reconcilers[key], d.operator.lease != nil
	d.operator.mu.Unlock()
	d.operator.role.Log.Info("a sync is requested", "landscape", key.String(), "ref", push.Ref, "commit", push.Commit, "by", push.Pusher)
	if working {
		if r != nil {
			r.reconciler.enqueue(func() { r.reconciler.requests.pollRequested = true })
		}
		return
	}
	l, err := d.operator.landscapeOf(key)
	if err != nil || l == nil {
		return
	}
	before := l.DeepCopy()
	setAnnotation(l, landscapev1alpha1.AnnotationSyncRequested, d.operator.role.Clock.Now().UTC().Format(time.RFC3339Nano))
	if err := d.operator.client.Patch(ctx, l, client.MergeFrom(before)); err != nil {
		d.operator.role.Log.Error("cannot pass the sync request on to the active instance", "landscape", key.String(), "error", err)
	}
}

// Follow implements receiver.Requester.
func (d *requestHandler) Follow(ctx context.Context, key receiver.Key, commit string) (<-chan receiver.Progress, error) {
	d.operator.mu.Lock()
	r, working := d.operator.reconcilers[key], d.operator.lease != nil
	d.operator.mu.Unlock()
	if !working || r == nil {
		return d.followOtherReplica(ctx, key, commit)
	}
	lines := d.broadcasterOf(key).follow(ctx, commit)
	r.reconciler.enqueue(func() { r.reconciler.answerFinishedFollowers(commit) })
	return lines, nil
}

// followOtherReplica follows a sync of another replica.
func (d *requestHandler) followOtherReplica(ctx context.Context, key receiver.Key, commit string) (<-chan receiver.Progress, error) {
	get := func(context.Context) (*landscapev1alpha1.Landscape, error) { return d.operator.landscapeOf(key) }
	if commit != "" {
		return FollowObject(ctx, d.operator.role.Clock, get, commit), nil
	}
	now, err := get(ctx)
	if err != nil || now == nil {
		return nil, fmt.Errorf("cannot read Landscape %s", key)
	}
	return followNext(ctx, d.operator.role.Clock, get, now), nil
}

// destinations returns the notification destinations of a Landscape. It logs their errors; the
// status shows them from then on.
func (p *runningOperator) destinations(l *landscapev1alpha1.Landscape) []notification.Destination {
	d, key, now := p.requestHandler, client.ObjectKeyFromObject(l), p.role.Clock.Now()
	d.mu.Lock()
	known, ok := d.destinations[key]
	d.mu.Unlock()
	if ok && known.generation == l.Generation && now.Sub(known.readAt) < secretCacheTTL {
		return known.destinations
	}
	to, problems := notification.Destinations(sourceURL(l), l.Spec.Notifications, func(name string) (map[string][]byte, error) {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		return p.secretReaderOf(l).dataOf(ctx, &landscapev1alpha1.LocalSecretReference{Name: name}, "spec.notifications")
	})
	var texts []string
	for _, err := range problems {
		texts = append(texts, "spec.notifications: "+err.Error())
		p.role.Log.Error("a notification has no usable destination", "landscape", key.String(), "error", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.destinations[key] = cachedDestinations{generation: l.Generation, readAt: now, destinations: to, problems: texts}
	return to
}

// sourceURL returns the URL of a Landscape's source, or "" for none.
func sourceURL(l *landscapev1alpha1.Landscape) string {
	if l.Spec.Source == nil {
		return ""
	}
	return l.Spec.Source.URL
}

// destinationErrors lists unusable destinations as of the last notification. It makes no request.
func (p *runningOperator) destinationErrors(key receiver.Key) []string {
	p.requestHandler.mu.Lock()
	defer p.requestHandler.mu.Unlock()
	return p.requestHandler.destinations[key].problems
}

func setAnnotation(l *landscapev1alpha1.Landscape, key, value string) {
	if l.Annotations == nil {
		l.Annotations = map[string]string{}
	}
	l.Annotations[key] = value
}
