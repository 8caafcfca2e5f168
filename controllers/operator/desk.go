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

// desk handles requests for syncs in every replica of the operator. A replica without the lease
// forwards them through the object.
type desk struct {
	parts   *parts
	handler *receiver.Receiver

	mu    sync.Mutex
	hubs  map[receiver.Key]*hub
	known map[tokenKey]token
	sinks map[receiver.Key]sink
}

// tokenKey names a Secret of a receiver.
type tokenKey struct{ namespace, secret string }

type token struct {
	value []byte
	read  time.Time
}

type sink struct {
	generation int64
	read       time.Time
	to         []notification.Destination
	// problems list the destinations that cannot be used.
	problems []string
}

// secretsFor is how long the data of a Secret is cached.
const secretsFor = 5 * time.Minute

func newDesk(p *parts) *desk {
	d := &desk{parts: p, hubs: map[receiver.Key]*hub{}, known: map[tokenKey]token{}, sinks: map[receiver.Key]sink{}}
	d.handler = receiver.New(receiver.Options{Requester: d, Proxies: p.role.Serve.ReceiverProxies, Log: logr.FromSlogHandler(p.role.Log.Handler())})
	return d
}

func (d *desk) hubOf(key receiver.Key) *hub {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.hubs[key] == nil {
		d.hubs[key] = &hub{}
	}
	return d.hubs[key]
}

// Receiver implements receiver.Requester. Only an existing receiver costs an API request, at most
// one per secretsFor.
func (d *desk) Receiver(ctx context.Context, namespace, name, entry string) (receiver.Target, bool) {
	l, err := d.parts.landscapeOf(receiver.Key{Namespace: namespace, Name: name})
	if err != nil || l == nil {
		return receiver.Target{}, false
	}
	i := slices.IndexFunc(l.Spec.Receivers, func(r landscapev1alpha1.Receiver) bool { return r.Name == entry })
	if i < 0 {
		return receiver.Target{}, false
	}
	r := l.Spec.Receivers[i]
	value, ok := d.token(ctx, tokenKey{namespace, r.SecretRef.Name})
	target := receiver.Target{Type: r.Type, Token: value}
	if l.Spec.Source != nil && l.Spec.Source.Ref != nil {
		target.Ref = *l.Spec.Source.Ref
	}
	return target, ok
}

// token reads the Secret of a receiver, existing or not, at most once per secretsFor.
func (d *desk) token(ctx context.Context, key tokenKey) ([]byte, bool) {
	now := d.parts.role.Clock.Now()
	d.mu.Lock()
	known, ok := d.known[key]
	d.mu.Unlock()
	if ok && now.Sub(known.read) < secretsFor {
		return known.value, len(known.value) > 0
	}
	data, err := secrets{client: d.parts.client, namespace: key.namespace}.data(ctx, &landscapev1alpha1.LocalSecretReference{Name: key.secret}, "spec.receivers")
	if err != nil {
		d.parts.role.Log.Error("a receiver has no token", "namespace", key.namespace, "error", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	value := bytes.TrimSpace(data["token"]) // files end with a newline
	d.known[key] = token{value: value, read: now}
	return value, len(value) > 0
}

// Request implements receiver.Requester.
func (d *desk) Request(ctx context.Context, key receiver.Key, push receiver.Push) {
	d.parts.mu.Lock()
	r, working := d.parts.syncers[key], d.parts.lease != nil
	d.parts.mu.Unlock()
	d.parts.role.Log.Info("a sync is asked for", "landscape", key.String(), "ref", push.Ref, "commit", push.Commit, "by", push.By)
	if working {
		if r != nil {
			r.syncer.do(func() { r.syncer.asks.askedPoll = true })
		}
		return
	}
	l, err := d.parts.landscapeOf(key)
	if err != nil || l == nil {
		return
	}
	before := l.DeepCopy()
	setAnnotation(l, landscapev1alpha1.AnnotationSyncRequested, d.parts.role.Clock.Now().UTC().Format(time.RFC3339Nano))
	if err := d.parts.client.Patch(ctx, l, client.MergeFrom(before)); err != nil {
		d.parts.role.Log.Error("the request for a sync cannot be passed on to the instance that works", "landscape", key.String(), "error", err)
	}
}

// Follow implements receiver.Requester.
func (d *desk) Follow(ctx context.Context, key receiver.Key, commit string) (<-chan receiver.Progress, error) {
	d.parts.mu.Lock()
	r, working := d.parts.syncers[key], d.parts.lease != nil
	d.parts.mu.Unlock()
	if !working || r == nil {
		return d.followElsewhere(ctx, key, commit)
	}
	lines := d.hubOf(key).follow(ctx, commit)
	r.syncer.do(func() { r.syncer.catchUp(commit) })
	return lines, nil
}

// followElsewhere follows a sync of another replica.
func (d *desk) followElsewhere(ctx context.Context, key receiver.Key, commit string) (<-chan receiver.Progress, error) {
	get := func(context.Context) (*landscapev1alpha1.Landscape, error) { return d.parts.landscapeOf(key) }
	if commit != "" {
		return FollowObject(ctx, d.parts.role.Clock, get, commit), nil
	}
	now, err := get(ctx)
	if err != nil || now == nil {
		return nil, fmt.Errorf("the Landscape %s cannot be read", key)
	}
	return followNext(ctx, d.parts.role.Clock, get, now), nil
}

// destinations returns the notification destinations of a Landscape. It logs their errors; the
// status shows them from then on.
func (p *parts) destinations(l *landscapev1alpha1.Landscape) []notification.Destination {
	d, key, now := p.desk, client.ObjectKeyFromObject(l), p.role.Clock.Now()
	d.mu.Lock()
	known, ok := d.sinks[key]
	d.mu.Unlock()
	if ok && known.generation == l.Generation && now.Sub(known.read) < secretsFor {
		return known.to
	}
	to, problems := notification.Destinations(sourceURL(l), l.Spec.Notifications, func(name string) (map[string][]byte, error) {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		return p.secretsOf(l).data(ctx, &landscapev1alpha1.LocalSecretReference{Name: name}, "spec.notifications")
	})
	var texts []string
	for _, err := range problems {
		texts = append(texts, "spec.notifications: "+err.Error())
		p.role.Log.Error("somebody cannot be told", "landscape", key.String(), "error", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.sinks[key] = sink{generation: l.Generation, read: now, to: to, problems: texts}
	return to
}

// sourceURL returns the URL of a Landscape's source, empty for none.
func sourceURL(l *landscapev1alpha1.Landscape) string {
	if l.Spec.Source == nil {
		return ""
	}
	return l.Spec.Source.URL
}

// untold lists unusable destinations as of the last notification. It makes no request.
func (p *parts) untold(key receiver.Key) []string {
	p.desk.mu.Lock()
	defer p.desk.mu.Unlock()
	return p.desk.sinks[key].problems
}

func setAnnotation(l *landscapev1alpha1.Landscape, key, value string) {
	if l.Annotations == nil {
		l.Annotations = map[string]string{}
	}
	l.Annotations[key] = value
}
