// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"time"

	"sigs.k8s.io/yaml"
)

const (
	providerAESCBC    = "aescbc"
	providerAESGCM    = "aesgcm"
	providerSecretbox = "secretbox"

	keyEncryptionProvider = "provider"
	keyEncryptionName     = "key"
	keyEncryptionSecret   = "secret"
	keyEncryptionEncoding = "encoding"
	keyEncryptionConfig   = "encryption-configuration.yaml"

	encryptionKeyBytes = 32
)

// providerForHash is empty for aescbc, which was once the only provider; so old keys retain their
// names.
func providerForHash(provider string) string {
	if provider == providerAESCBC {
		return ""
	}
	return provider
}

func newEncryptionKey(c Config, now time.Time) (map[string]Value, error) {
	secret := make([]byte, encryptionKeyBytes)
	if _, err := rand.Read(secret); err != nil {
		return nil, fmt.Errorf("reading random bytes: %w", err)
	}
	return map[string]Value{
		keyEncryptionProvider: {[]byte(providerForHash(c.Provider))},
		keyEncryptionName:     {fmt.Appendf(nil, "key%d", now.Unix())},
		keyEncryptionSecret:   {secret},
		// none: the bytes are the key. Otherwise they are its base64 (gardener/gardener#11150).
		keyEncryptionEncoding: {[]byte("none")},
	}, nil
}

// encryptionConfiguration is the API server's file for --encryption-provider-config.
type encryptionConfiguration struct {
	APIVersion string               `json:"apiVersion"`
	Kind       string               `json:"kind"`
	Resources  []encryptedResources `json:"resources"`
}

type encryptedResources struct {
	Resources []string             `json:"resources"`
	Providers []encryptionProvider `json:"providers"`
}

type encryptionProvider struct {
	AESCBC    *encryptionKeys `json:"aescbc,omitempty"`
	AESGCM    *encryptionKeys `json:"aesgcm,omitempty"`
	Secretbox *encryptionKeys `json:"secretbox,omitempty"`
	Identity  *struct{}       `json:"identity,omitempty"`
}

type encryptionKeys struct {
	Keys []encryptionKey `json:"keys"`
}

type encryptionKey struct {
	Name   string `json:"name"`
	Secret string `json:"secret"`
}

// newEncryptionConfiguration encrypts with the first key and decrypts with all. Resources that are
// no longer encrypted are written in plain text and remain readable
// (pkg/component/apiserver/encryptionconfiguration.go).
func newEncryptionConfiguration(c Config, current, old map[string]Value) (map[string]Value, error) {
	keys := []map[string]Value{current}
	if old != nil {
		keys = []map[string]Value{current, old}
		if c.EncryptWithCurrentKey != nil && !*c.EncryptWithCurrentKey {
			slices.Reverse(keys)
		}
	}
	providers, err := encryptionProviders(keys)
	if err != nil {
		return nil, err
	}
	identity := encryptionProvider{Identity: &struct{}{}}
	config := encryptionConfiguration{
		APIVersion: "apiserver.config.k8s.io/v1", Kind: "EncryptionConfiguration",
		Resources: []encryptedResources{{Resources: c.Resources, Providers: append(slices.Clone(providers), identity)}},
	}
	var dropped []string
	for _, r := range c.EncryptedResources {
		if !slices.Contains(c.Resources, r) {
			dropped = append(dropped, r)
		}
	}
	if len(dropped) > 0 {
		slices.Sort(dropped)
		config.Resources = append(config.Resources, encryptedResources{
			Resources: dropped, Providers: append([]encryptionProvider{identity}, providers...),
		})
	}
	raw, err := yaml.Marshal(config)
	if err != nil {
		return nil, errors.New("encoding the encryption configuration failed")
	}
	return map[string]Value{keyEncryptionConfig: {raw}}, nil
}

// encryptionProviders groups neighbouring keys of one provider.
func encryptionProviders(keys []map[string]Value) ([]encryptionProvider, error) {
	var out []encryptionProvider
	previous := ""
	for _, data := range keys {
		secret := string(data[keyEncryptionSecret].bytes)
		if string(data[keyEncryptionEncoding].bytes) == "none" {
			secret = base64.StdEncoding.EncodeToString(data[keyEncryptionSecret].bytes)
		}
		key := encryptionKey{Name: string(data[keyEncryptionName].bytes), Secret: secret}
		provider := textOrDefault(string(data[keyEncryptionProvider].bytes), providerAESCBC)
		if provider != previous {
			out = append(out, encryptionProvider{})
		}
		previous = provider
		slot, err := out[len(out)-1].providerKeys(provider)
		if err != nil {
			return nil, err
		}
		if *slot == nil {
			*slot = &encryptionKeys{}
		}
		(*slot).Keys = append((*slot).Keys, key)
	}
	return out, nil
}

func (p *encryptionProvider) providerKeys(provider string) (**encryptionKeys, error) {
	switch provider {
	case providerAESCBC:
		return &p.AESCBC, nil
	case providerAESGCM:
		return &p.AESGCM, nil
	case providerSecretbox:
		return &p.Secretbox, nil
	}
	return nil, fmt.Errorf("the encryption key is for provider %q, expected aescbc, aesgcm or secretbox", provider)
}
