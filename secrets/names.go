// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strings"
)

// LabelUseDataForName is on a Secret whose data is copied when the named request is fulfilled for
// the first time (migration of a landscape).
const LabelUseDataForName = labelUseDataForName

// Labels of generated Secrets (pkg/utils/secrets/manager/manager.go).
const (
	labelName               = "name"
	labelManagedBy          = "managed-by"
	labelManagerIdentity    = "manager-identity"
	labelChecksumConfig     = "checksum-of-config"
	labelChecksumSigningCA  = "checksum-of-signing-ca"
	labelBundleFor          = "bundle-for"
	labelPersist            = "persist"
	labelRotationInitiation = "last-rotation-initiation-time"
	labelIssuedAt           = "issued-at-time"
	labelValidUntil         = "valid-until-time"
	labelRenewPercentage    = "renew-after-validity-percentage"
	labelUseDataForName     = "secrets-manager-use-data-for-name"
	labelRole               = "role"
	labelGarbageCollectable = "resources.gardener.cloud/garbage-collectable-reference"
	valueSecretsManager     = "secrets-manager"
	valueTrue               = "true"
	bundleSuffix            = "-bundle"
	maxLabelValue           = 63
	configHashLength        = 8
	rotationHashLength      = 5
	clientCAWithHashedName  = "ca-client"
)

func sha256Hex(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

// objectName is `<name>[-<8 hex of config and signing CA>][-<5 hex of the rotation>]`.
func objectName(name string, labels map[string]string, withoutHash bool) string {
	if infix := labels[labelChecksumConfig] + labels[labelChecksumSigningCA]; infix != "" && !withoutHash {
		name += "-" + sha256Hex(infix)[:configHashLength]
	}
	if suffix := labels[labelRotationInitiation]; suffix != "" {
		name += "-" + sha256Hex(suffix)[:rotationHashLength]
	}
	return name
}

// dataChecksum is SHA-256 over the SHA-256 of each value, in key order (pkg/utils:
// ComputeSecretChecksum).
func dataChecksum(data map[string]Value) string {
	var b strings.Builder
	for _, key := range slices.Sorted(maps.Keys(data)) {
		sum := sha256.Sum256(data[key].bytes)
		b.WriteString(hex.EncodeToString(sum[:]))
	}
	return sha256Hex(b.String())
}

// labelChecksum truncates a checksum to the 63 characters of a label value.
func labelChecksum(sum string) string { return sum[:min(len(sum), maxLabelValue)] }
