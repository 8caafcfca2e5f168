// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"strings"
)

// Mask replaces a value that may not be shown. Its length does not depend on the value.
const Mask = "(hidden)"

// Masking makes changes of secret values visible without the values. It uses keyed hashes, which
// reveal nothing without the key even if few values are possible. The zero value makes no hashes.
type Masking struct{ key []byte }

// NewMasking takes a key that two runs share if their hashes have to match. Without a key it makes
// a random one, so that hashes compare only within one diff.
func NewMasking(key []byte) Masking {
	if len(key) == 0 {
		key = make([]byte, sha256.Size)
		_, _ = rand.Read(key) // never fails; it ends the program instead
	}
	return Masking{key: key}
}

// hashLength is the length of hashes in characters: long enough to avoid collisions in one diff.
const hashLength = 10

// hashValue returns the hash of a value, or "" without a key or a value.
func (m Masking) hashValue(v any) string {
	if len(m.key) == 0 || v == nil {
		return ""
	}
	text, ok := v.(string)
	if !ok {
		raw, err := json.Marshal(v)
		if err != nil {
			return ""
		}
		text = string(raw)
	}
	mac := hmac.New(sha256.New, m.key)
	mac.Write([]byte(text))
	return hex.EncodeToString(mac.Sum(nil))[:hashLength]
}

// replacementFor returns the replacement of a secret value inside a shown one.
func (m Masking) replacementFor(v any) string {
	if hash := m.hashValue(v); hash != "" {
		return strings.TrimSuffix(Mask, ")") + " " + hash + ")"
	}
	return Mask
}

// isMask reports whether v is a result of mask.
func isMask(v any) bool {
	text, ok := v.(string)
	return ok && (text == Mask || strings.HasPrefix(text, strings.TrimSuffix(Mask, ")")+" ") && len(text) == len(Mask)+1+hashLength)
}

// decodeSecretValue returns the decoded value of a key of a Secret, so that the same value
// elsewhere has the same hash.
func decodeSecretValue(v any) any {
	if text, ok := v.(string); ok {
		if raw, err := base64.StdEncoding.DecodeString(text); err == nil {
			return string(raw)
		}
	}
	return v
}

// isEncrypted reports whether a value is encrypted by SOPS.
func isEncrypted(v any) bool {
	text, ok := decodeSecretValue(v).(string)
	return ok && strings.HasPrefix(text, "ENC[") && strings.HasSuffix(text, "]")
}
