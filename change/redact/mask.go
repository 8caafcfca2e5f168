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

// Mask stands in place of a value that may not be shown. Its length says nothing about the value.
const Mask = "(hidden)"

// Masking makes changes of secret values visible without the values: by hashes with a key, which
// say nothing to anybody without the key, however few values are possible. The zero value gives no
// hashes.
type Masking struct{ key []byte }

// NewMasking takes a key that two runs share where their hashes have to agree. Without one it makes
// a new random key, so that hashes compare within one diff only.
func NewMasking(key []byte) Masking {
	if len(key) == 0 {
		key = make([]byte, sha256.Size)
		_, _ = rand.Read(key) // never fails: the program ends before
	}
	return Masking{key: key}
}

// hashLength of hashes in characters: enough that two values of one diff do not share one by
// chance.
const hashLength = 10

// hash stands for a value; it is empty without a key and for what is not there.
func (m Masking) hash(v any) string {
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

// mask is what stands for a value inside another one that is shown.
func (m Masking) mask(v any) string {
	if hash := m.hash(v); hash != "" {
		return strings.TrimSuffix(Mask, ")") + " " + hash + ")"
	}
	return Mask
}

// isMask is true for what mask gives.
func isMask(v any) bool {
	text, ok := v.(string)
	return ok && (text == Mask || strings.HasPrefix(text, strings.TrimSuffix(Mask, ")")+" ") && len(text) == len(Mask)+1+hashLength)
}

// decoded is the value of a key of a Secret as the one who reads it gets it, so that the same value
// elsewhere has the same hash.
func decoded(v any) any {
	if text, ok := v.(string); ok {
		if raw, err := base64.StdEncoding.DecodeString(text); err == nil {
			return string(raw)
		}
	}
	return v
}

// isEncrypted is true for a value as SOPS leaves it in a file.
func isEncrypted(v any) bool {
	text, ok := decoded(v).(string)
	return ok && strings.HasPrefix(text, "ENC[") && strings.HasSuffix(text, "]")
}
