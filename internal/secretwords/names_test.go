// SPDX-License-Identifier: Apache-2.0

package secretwords

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestSecrecyOf(t *testing.T) {
	for _, name := range []string{"pass", "pwd", "passwd", "dbPass", "DB_PASS", "PW", "DB_PW", "dbPw", "CREDS", "credentials", "encryption-key", "ENCRYPTION_KEY",
		"SIGNING_KEY", "private key", "SLACK_WEBHOOK_URL", "passwords", "tokens", "apiKeys", "secret", "secrets", "JWT_SECRET", "AccountKey",
		"pin", "userPin", "SIM_PIN", "pinCode", "pin-value", "so-pin", "otp", "ADMIN_OTP", "totp_secret", "passcode", "passwordCommand", "jwt.secret", "password_sha256_hex", "secureJsonData"} {
		assert.True(t, IsSecret(name), name)
	}
	for _, name := range []string{"secretRef", "secretName", "tokenRequest", "passthrough", "keySize", "bypass", "existingSecret", "imagePullSecrets",
		"tlsSecret", "EXISTING_SECRET", "maxTokens", "key", "keys", "publicKey", "compass", "wpw3", "url", "proxy_pass", "credentialsRef",
		"pinned", "spin", "mapping", "opinion", "laptop", "option", "encrypt", "community", "ingress.tls.secret", "hmac", "salt"} {
		assert.False(t, IsSecret(name), name)
	}
}

// TestListedNamesAreFound checks that each listed name has a stem, and that In accepts it, too.
func TestListedNamesAreFound(t *testing.T) {
	for _, name := range slices.Concat(secretKeys, referringKeys) {
		assert.True(t, IsSecret(name), name)
		assert.True(t, IsSecret("a_"+strings.ToUpper(name)+"_2"), name)
		assert.True(t, HasSecretWord(name+": x"), name)
		begin, end, ok := NextCandidate("a "+name+": x", 0)
		assert.True(t, ok, name)
		assert.Equal(t, name, ("a " + name + ": x")[begin:end])
	}
}
