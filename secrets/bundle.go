// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"bytes"
	"context"
	"slices"
	"time"

	"github.com/pergola-dev/pergola/secrets/internal/upstreamhash"
)

// ensureBundle creates the Secret with the current and old certificate of a CA, or the current and
// old private key. So clients trust signatures of both. Its name depends on its content.
func (m *Manager) ensureBundle(ctx context.Context, e *fulfilledRequest) (*secretRecord, error) {
	var dataKey, bundleKey string
	switch e.config.Kind {
	case KindCA:
		dataKey, bundleKey = keyCACert, keyBundleCert
	case KindRSAPrivateKey:
		dataKey, bundleKey = keyRSAPrivateKey, keyBundleKeys
	default:
		return nil, nil
	}
	parts := [][]byte{e.current.data[dataKey].bytes}
	if e.old != nil {
		parts = append(parts, e.old.data[dataKey].bytes)
	}
	name := e.config.Name + bundleSuffix

	p := &secretPlan{config: e.config, bundle: true}
	p.config.Name = name
	p.generate = func(time.Time) (map[string]Value, error) {
		return map[string]Value{bundleKey: {slices.Concat(withNewlines(parts)...)}}, nil
	}
	var hashed any = &upstreamhash.CertificateBundleSecretConfig{Name: name, CertificatePEMs: parts}
	if bundleKey == keyBundleKeys {
		hashed = &upstreamhash.RSAPrivateKeyBundleSecretConfig{Name: name, PrivateKeyPEMs: parts}
	}
	var err error
	if p.labels, err = m.labelsFor(name, hashed, ""); err != nil {
		return nil, err
	}
	p.labels[labelBundleFor] = e.config.Name
	p.objectName = objectName(name, p.labels, false)
	return m.ensureSecret(ctx, p)
}

// withNewlines ends every part with a line break: adopted data may lack it, and the next PEM block
// would be lost.
func withNewlines(parts [][]byte) [][]byte {
	out := make([][]byte, len(parts))
	for i, part := range parts {
		out[i] = slices.Clip(part)
		if !bytes.HasSuffix(part, []byte("\n")) {
			out[i] = append(out[i], '\n')
		}
	}
	return out
}
