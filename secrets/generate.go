// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
)

// Ref names the Secrets that fulfil a request.
type Ref struct {
	// Name is the name of the request.
	Name string
	// Namespace and Secret name the current Secret.
	Namespace, Secret string
	// Bundle names the Secret with the current and old certificate or key; it is empty for kinds
	// without one.
	Bundle string
	// Checksum is the checksum of the current Secret's data.
	Checksum string
}

// Generate finds or generates the secret of the request. Requests that it refers to (CA, key) must
// be fulfilled before.
func (m *Manager) Generate(ctx context.Context, c Config) (Ref, error) {
	ref, err := m.generate(ctx, c)
	if err != nil {
		m.mu.Lock()
		m.failedRequests[c.Name] = true
		m.mu.Unlock()
		return Ref{}, fmt.Errorf("secret %q in namespace %s: %w", c.Name, m.namespace, err)
	}
	return ref, nil
}

func (m *Manager) generate(ctx context.Context, c Config) (Ref, error) {
	if err := c.Validate(); err != nil {
		return Ref{}, err
	}
	if err := m.loadExisting(ctx); err != nil {
		return Ref{}, err
	}
	lock := m.lockOf(c.Name)
	lock.Lock()
	defer lock.Unlock()

	p, err := m.planSecret(c)
	if err != nil {
		return Ref{}, err
	}
	if p.derived {
		return m.ensureDerived(ctx, c, p)
	}
	e := &fulfilledRequest{config: c}
	if e.current, err = m.ensureSecret(ctx, p); err != nil {
		return Ref{}, err
	}
	if e.old, err = m.oldRecord(c, e.current); err != nil {
		return Ref{}, err
	}
	if e.bundle, err = m.ensureBundle(ctx, e); err != nil {
		return Ref{}, err
	}
	return m.recordFulfilled(e), nil
}

// recordFulfilled records the request as done.
func (m *Manager) recordFulfilled(e *fulfilledRequest) Ref {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.entries[e.config.Name] = e
	delete(m.failedRequests, e.config.Name)
	return m.refOf(e)
}

func (m *Manager) refOf(e *fulfilledRequest) Ref {
	ref := Ref{Name: e.config.Name, Namespace: m.namespace, Secret: e.current.name, Checksum: dataChecksum(e.current.data)}
	if e.bundle != nil {
		ref.Bundle = e.bundle.name
	}
	return ref
}

func (m *Manager) lockOf(name string) *sync.Mutex {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.locks[name] == nil {
		m.locks[name] = &sync.Mutex{}
	}
	return m.locks[name]
}

func (m *Manager) entryOf(name string) (*fulfilledRequest, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e, ok := m.entries[name]
	return e, ok
}

// ensureSecret returns the Secret of a plan: known, generated, or created by another process
// meanwhile.
func (m *Manager) ensureSecret(ctx context.Context, p *secretPlan) (*secretRecord, error) {
	r := m.cachedRecord(p.config.Name, p.objectName)
	if r == nil {
		created, err := m.createSecret(ctx, p)
		if err != nil {
			return nil, err
		}
		r = created
	}
	want, err := m.lifetimeLabels(p, r)
	if err != nil {
		return nil, err
	}
	return m.reconcileLabels(ctx, r, want)
}

func (m *Manager) createSecret(ctx context.Context, p *secretPlan) (*secretRecord, error) {
	data, err := m.initialData(ctx, p)
	if err != nil {
		return nil, err
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: m.namespace, Name: p.objectName, Labels: maps.Clone(p.labels)},
		Type:       corev1.SecretTypeOpaque,
		Immutable:  ptr.To(true),
		Data:       make(map[string][]byte, len(data)),
	}
	for key, value := range data {
		secret.Data[key] = value.bytes
	}
	if data[keyTLSCert].Len() > 0 && data[keyTLSKey].Len() > 0 {
		secret.Type = corev1.SecretTypeTLS
	}
	if !p.derived {
		fresh, err := m.lifetimeLabels(p, &secretRecord{data: data})
		if err != nil {
			return nil, err
		}
		secret.Labels = fresh
	}

	made, err := m.store.Create(ctx, secret)
	if apierrors.IsAlreadyExists(err) {
		return m.adoptSecret(ctx, p)
	}
	if err != nil {
		return nil, redact(fmt.Errorf("creating Secret %s: %w", p.objectName, err), data)
	}
	r := newSecretRecord(made)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.cacheRecord(r)
	return r, nil
}

// adoptSecret takes over a Secret that already exists under the name: another process created it,
// or it was restored.
func (m *Manager) adoptSecret(ctx context.Context, p *secretPlan) (*secretRecord, error) {
	found, err := m.store.Get(ctx, m.namespace, p.objectName)
	if err != nil {
		return nil, fmt.Errorf("reading Secret %s, which another program created: %w", p.objectName, err)
	}
	r := newSecretRecord(found)
	if other := r.labels[labelManagerIdentity]; other != "" && other != m.identity {
		return nil, fmt.Errorf("the Secret %s belongs to secrets manager %s: one of the two requests needs another name", p.objectName, other)
	}
	if err := p.validateData(r.data); err != nil {
		return nil, fmt.Errorf("the Secret %s exists and cannot be used: %w; delete it or rename it", p.objectName, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.cacheRecord(r)
	return r, nil
}

// initialData copies the data of a Secret that is labelled for it (migration of a landscape), or
// generates data.
func (m *Manager) initialData(ctx context.Context, p *secretPlan) (map[string]Value, error) {
	if !p.bundle && !p.derived {
		selector := labels.SelectorFromSet(labels.Set{labelUseDataForName: p.config.Name})
		given, err := m.store.List(ctx, m.namespace, selector)
		if err != nil {
			return nil, fmt.Errorf("looking for Secrets with label %s: %w", selector, err)
		}
		if len(given) > 1 {
			return nil, fmt.Errorf("%d Secrets have label %s (%s, %s …): keep it on only one of them", len(given), selector, given[0].Name, given[1].Name)
		}
		if len(given) == 1 {
			data := newSecretRecord(&given[0]).data
			if err := p.validateData(data); err != nil {
				return nil, fmt.Errorf("the Secret %s with label %s cannot be used: %w", given[0].Name, selector, err)
			}
			return data, nil
		}
	}
	data, err := p.generate(m.clock.Now())
	if err != nil {
		return nil, redact(err, data)
	}
	return data, nil
}

// lifetimeLabels adds the issue time and the end of validity to the labels of a plan.
func (m *Manager) lifetimeLabels(p *secretPlan, r *secretRecord) (map[string]string, error) {
	want := maps.Clone(p.labels)
	issued := m.clock.Now()
	if r.labels[labelIssuedAt] != "" {
		var err error
		if issued, err = parseUnixLabel(r.labels, labelIssuedAt); err != nil {
			return nil, err
		}
	}
	key := map[Kind]string{KindCA: keyCACert, KindCertificate: keyTLSCert}[p.config.Kind]
	switch {
	case key != "" && !p.bundle:
		certificate, err := decodeCertificate(r.data[key].bytes)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
		issued = certificate.NotBefore
		want[labelValidUntil] = formatUnixTime(certificate.NotAfter)
	case p.config.Validity != nil && !p.bundle:
		want[labelValidUntil] = formatUnixTime(issued.Add(p.config.Validity.Duration))
	}
	want[labelIssuedAt] = formatUnixTime(issued)
	if n := p.config.RenewAfterValidityPercentage; n > 0 && !p.bundle {
		want[labelRenewPercentage] = strconv.Itoa(n)
	}
	return want, nil
}

// reconcileLabels patches labels that differ; it does not touch foreign labels.
func (m *Manager) reconcileLabels(ctx context.Context, r *secretRecord, want map[string]string) (*secretRecord, error) {
	differs := !r.immutable
	for key, value := range want {
		if got, ok := r.labels[key]; !ok || got != value {
			differs = true
		}
	}
	if !differs {
		return r, nil
	}
	patched, err := m.store.Patch(ctx, m.namespace, r.name, want)
	if err != nil {
		return nil, redact(fmt.Errorf("labelling Secret %s: %w", r.name, err), r.data)
	}
	out := newSecretRecord(patched)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.cacheRecord(out)
	return out, nil
}

// oldRecord returns the secret that the current one replaces, if the request retains it.
func (m *Manager) oldRecord(c Config, current *secretRecord) (*secretRecord, error) {
	if c.Rotation != KeepOld || c.IgnoreOldSecrets {
		return nil, nil
	}
	now := m.clock.Now()
	if c.IgnoreOldSecretsAfter != nil {
		issued, err := parseUnixLabel(current.labels, labelIssuedAt)
		if err != nil {
			return nil, err
		}
		if now.Sub(issued) >= c.IgnoreOldSecretsAfter.Duration {
			return nil, nil
		}
	}
	m.mu.Lock()
	old := newestRecord(m.existingRecords[c.Name], current.name)
	m.mu.Unlock()
	if old == nil || isExpired(old, now) {
		return nil, nil
	}
	return old, nil
}

// isExpired reports whether a secret is past its validity. No one accepts signatures of an expired
// CA.
func isExpired(r *secretRecord, now time.Time) bool {
	until, err := parseUnixLabel(r.labels, labelValidUntil)
	return err == nil && now.After(until)
}

// ensureDerived creates a Secret that is named by a hash of its content. The resource manager
// garbage-collects it when nothing refers to it, as in upstream.
func (m *Manager) ensureDerived(ctx context.Context, c Config, p *secretPlan) (Ref, error) {
	data, err := p.generate(m.clock.Now())
	if err != nil {
		return Ref{}, err
	}
	p.objectName = c.Name + "-" + dataChecksum(data)[:configHashLength]
	p.labels = map[string]string{labelRole: c.Name, labelGarbageCollectable: valueTrue}
	maps.Copy(p.labels, c.Labels)
	p.generate = func(time.Time) (map[string]Value, error) { return data, nil }

	r := m.cachedRecord(p.labels[labelName], p.objectName)
	if r == nil {
		found, err := m.store.Get(ctx, m.namespace, p.objectName)
		switch {
		case err == nil:
			r = newSecretRecord(found)
		case !apierrors.IsNotFound(err):
			return Ref{}, fmt.Errorf("reading Secret %s: %w", p.objectName, err)
		default:
			if r, err = m.createSecret(ctx, p); err != nil {
				return Ref{}, err
			}
		}
	}
	if dataChecksum(r.data) != dataChecksum(data) {
		return Ref{}, errors.New("the Secret " + p.objectName + " exists with other content: delete it or rename it")
	}
	if r, err = m.reconcileLabels(ctx, r, p.labels); err != nil {
		return Ref{}, err
	}
	return m.recordFulfilled(&fulfilledRequest{config: c, current: r}), nil
}
