// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
)

const (
	// defaultRenewPercentage is the share of a secret's validity after which it is renewed.
	defaultRenewPercentage = 80
	// renewBefore is the latest renewal time before the end of validity. It does not apply to
	// secrets with a shorter validity, which upstream renews with every reconciliation.
	renewBefore = 10 * 24 * time.Hour
)

// Manager generates the secrets of one identity in one namespace, for one reconciliation: it lists
// existing Secrets once and records requests. It is safe for concurrent use.
type Manager struct {
	store     Store
	namespace string
	identity  string
	clock     clock.PassiveClock

	rotationTimes   map[string]time.Time
	staticCANames   bool
	caAutoRotation  []string
	certificateBits int
	defaultKeyBits  int

	loadMutex sync.Mutex // held while listing Secrets

	mu              sync.Mutex // guards everything below
	loaded          bool
	existingRecords map[string][]*secretRecord // by the name of the request
	// rotationTexts has last-rotation-initiation-time by the name of the request.
	rotationTexts  map[string]string
	entries        map[string]*fulfilledRequest // fulfilled requests by name
	locks          map[string]*sync.Mutex       // one holder at a time for each name
	failedRequests map[string]bool              // requests that were not fulfilled
}

// secretRecord is the cached state of a Secret.
type secretRecord struct {
	name      string
	uid       types.UID
	created   time.Time
	immutable bool
	labels    map[string]string
	data      map[string]Value
}

// fulfilledRequest is a fulfilled request.
type fulfilledRequest struct {
	config  Config
	current *secretRecord
	old     *secretRecord
	bundle  *secretRecord
}

// Option configures a Manager.
type Option func(*Manager)

// WithRotationTimes sets when the rotation of a secret was last initiated, by request name; another
// time creates another secret. Zero times are ignored.
func WithRotationTimes(times map[string]time.Time) Option {
	return func(m *Manager) { m.rotationTimes = times }
}

// WithStaticCANames omits the hash from the names of CAs, except ca-client. Shoots use it, because
// extensions refer to `ca` and similar CAs by name.
func WithStaticCANames() Option { return func(m *Manager) { m.staticCANames = true } }

// WithCAAutoRotation renews the named CAs like other secrets. Without it a CA is rotated only on
// request, or after it expired. It is for CAs whose clients learn of a new CA automatically.
// (Upstream renews all CAs of a Garden, even those whose rotation needs an operator.)
func WithCAAutoRotation(names ...string) Option {
	return func(m *Manager) { m.caAutoRotation = append(m.caAutoRotation, names...) }
}

// WithKeyBits sets the size of the RSA keys of certificates, and of keys whose request has no size.
// It is for tests.
func WithKeyBits(bits int) Option {
	return func(m *Manager) { m.certificateBits, m.defaultKeyBits = bits, bits }
}

// New returns a manager. The identity separates the secrets of several managers in one namespace;
// upstream's are gardener-operator and gardenlet. Nothing is read before the first request.
func New(store Store, namespace, identity string, clk clock.PassiveClock, opts ...Option) *Manager {
	m := &Manager{
		store: store, namespace: namespace, identity: identity, clock: clk,
		certificateBits: certificateBits, defaultKeyBits: defaultKeyBits,
		existingRecords: map[string][]*secretRecord{}, rotationTexts: map[string]string{},
		entries: map[string]*fulfilledRequest{}, locks: map[string]*sync.Mutex{}, failedRequests: map[string]bool{},
	}
	for _, opt := range opts {
		opt(m)
	}
	return m
}

func (m *Manager) selector() labels.Selector {
	return labels.SelectorFromSet(labels.Set{labelManagedBy: valueSecretsManager, labelManagerIdentity: m.identity})
}

// loadExisting lists the existing Secrets, once.
func (m *Manager) loadExisting(ctx context.Context) error {
	m.loadMutex.Lock()
	defer m.loadMutex.Unlock()
	if m.isLoaded() {
		return nil
	}
	list, err := m.store.List(ctx, m.namespace, m.selector())
	if err != nil {
		return fmt.Errorf("listing the generated secrets of %s in namespace %s: %w", m.identity, m.namespace, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range list {
		m.cacheRecord(newSecretRecord(&list[i]))
	}
	if err := m.decideRotations(); err != nil {
		return err
	}
	m.loaded = true
	return nil
}

func (m *Manager) isLoaded() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.loaded
}

// cacheRecord adds or replaces a record. The caller holds mu.
func (m *Manager) cacheRecord(r *secretRecord) {
	name := r.labels[labelName]
	for i, known := range m.existingRecords[name] {
		if known.name == r.name {
			m.existingRecords[name][i] = r
			return
		}
	}
	m.existingRecords[name] = append(m.existingRecords[name], r)
}

// cachedRecord returns the record of an object name, or nil if it is not known.
func (m *Manager) cachedRecord(name, object string) *secretRecord {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range m.existingRecords[name] {
		if r.name == object {
			return r
		}
	}
	return nil
}

// decideRotations takes the rotation of each name from its newest secret, sets it again for due
// renewals, and overrides both with the given times. A CA that is rotated only on request is also
// replaced after it expired. No one accepts its signatures then, so no client needs to learn of the
// new CA first.
func (m *Manager) decideRotations() error {
	now := m.clock.Now()
	replaced := map[string]time.Time{}
	for name, records := range m.existingRecords {
		newest := newestRecord(records, "")
		m.rotationTexts[name] = newest.labels[labelRotationInitiation]
		if isCA(newest.data) && !slices.Contains(m.caAutoRotation, name) {
			replaced[name] = rotationTime(newest)
			if isExpired(newest, now) {
				m.rotationTexts[name], replaced[name] = formatUnixTime(now), now
			}
			continue
		}
		due, err := isRenewalDue(newest.labels, now)
		if err != nil {
			return fmt.Errorf("secret %s/%s: %w", m.namespace, newest.name, err)
		}
		if due {
			m.rotationTexts[name] = formatUnixTime(now)
		}
	}
	for name, t := range m.rotationTimes {
		// The caller who sets the times does not know of a CA that was replaced since.
		if !t.IsZero() && !t.Before(replaced[name].Truncate(time.Second)) {
			m.rotationTexts[name] = formatUnixTime(t)
		}
	}
	return nil
}

// rotationTime is when the rotation that created a secret was initiated; it is zero for the first
// secret.
func rotationTime(r *secretRecord) time.Time {
	t, err := parseUnixLabel(r.labels, labelRotationInitiation)
	if err != nil {
		return time.Time{}
	}
	return t
}

// isRenewalDue reports whether a secret needs renewal, by its labels.
func isRenewalDue(l map[string]string, now time.Time) (bool, error) {
	if l[labelIssuedAt] == "" || l[labelValidUntil] == "" {
		return false, nil
	}
	issued, err := parseUnixLabel(l, labelIssuedAt)
	if err != nil {
		return false, err
	}
	until, err := parseUnixLabel(l, labelValidUntil)
	if err != nil {
		return false, err
	}
	percentage := int64(defaultRenewPercentage)
	if text := l[labelRenewPercentage]; text != "" {
		if percentage, err = strconv.ParseInt(text, 10, 64); err != nil {
			return false, fmt.Errorf("label %s is not a number: %q", labelRenewPercentage, text)
		}
	}
	validity := until.Sub(issued)
	due := issued.Add(validity / 100 * time.Duration(percentage))
	if latest := until.Add(-renewBefore); validity > renewBefore && latest.Before(due) {
		due = latest
	}
	return now.After(due), nil
}

func parseUnixLabel(l map[string]string, key string) (time.Time, error) {
	n, err := strconv.ParseInt(l[key], 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("label %s is not a Unix time: %q", key, l[key])
	}
	return time.Unix(n, 0), nil
}

func formatUnixTime(t time.Time) string { return strconv.FormatInt(t.Unix(), 10) }

// newestRecord returns the record created last, ignoring one object.
func newestRecord(records []*secretRecord, except string) *secretRecord {
	var newest *secretRecord
	for _, r := range records {
		if r.name != except && (newest == nil || newest.compare(r) < 0) {
			newest = r
		}
	}
	return newest
}

// compare orders by age. Creation times have seconds, so the ties are broken by rotation, issue
// time and name.
func (r *secretRecord) compare(other *secretRecord) int {
	number := func(r *secretRecord, key string) int64 {
		n, _ := strconv.ParseInt(r.labels[key], 10, 64)
		return n
	}
	return cmp.Or(
		r.created.Compare(other.created),
		cmp.Compare(number(r, labelRotationInitiation), number(other, labelRotationInitiation)),
		cmp.Compare(number(r, labelIssuedAt), number(other, labelIssuedAt)),
		cmp.Compare(r.name, other.name),
	)
}

func isCA(data map[string]Value) bool {
	return data[keyCACert].Len() > 0 && data[keyCAKey].Len() > 0
}

func newSecretRecord(s *corev1.Secret) *secretRecord {
	data := make(map[string]Value, len(s.Data))
	for key, value := range s.Data {
		data[key] = NewValue(value)
	}
	return &secretRecord{
		name: s.Name, uid: s.UID, created: s.CreationTimestamp.Time,
		immutable: s.Immutable != nil && *s.Immutable, labels: s.Labels, data: data,
	}
}

// String identifies the manager. A Manager holds secret values, so no verb may print its fields.
func (m *Manager) String() string {
	return fmt.Sprintf("secrets manager %s/%s", m.namespace, m.identity)
}

// Format implements fmt.Formatter with String, for every verb.
func (m *Manager) Format(s fmt.State, _ rune) { _, _ = s.Write([]byte(m.String())) }
