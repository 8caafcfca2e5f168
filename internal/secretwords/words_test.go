// SPDX-License-Identifier: Apache-2.0

package secretwords

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestHasSecretWord(t *testing.T) {
	for _, name := range []string{"password", "DB_PW", "pw: x", "adminpw", "userPwd", "passphrase", "api-key", "apiToken", "accountkey", "hmacKey",
		"connection-string", "connectionString", "webhookURL", ".dockercfg", ".dockerconfigjson", "serviceAccountJSON", "cred", "credentials", "JWT_SECRET", "client_secret", "PRIVATE KEY"} {
		assert.True(t, HasSecretWord(name), name)
	}
	for _, name := range []string{"name", "version: 1.34.1", "upward", "image", "zones", "replicas: 3", "app.kubernetes.io/name", "powerful"} {
		assert.False(t, HasSecretWord(name), name)
	}
}
