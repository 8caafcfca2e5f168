// SPDX-License-Identifier: Apache-2.0

package addresses

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestRedactUserInfo(t *testing.T) {
	for text, want := range map[string]string{
		"cluster at https://u:hunter2@127.0.0.1:1 does not answer":             "cluster at https://127.0.0.1:1 does not answer",
		`invalid 'proxy-url' "http://u:ab/hunter2@127.0.0.1:2" for cluster`:    `invalid 'proxy-url' "http://127.0.0.1:2" for cluster`,
		`Get "https://u:***@h:1/api": could not parse: socks5://u:a@b:c@h`:     `Get "https://h:1/api": could not parse: socks5://h`,
		"https://ghp_hunter2@host/path and https://host:443/a, mail a@b.org":   "https://host/path and https://host:443/a, mail a@b.org",
		"https://host:6443/version: dial tcp 10.0.0.1:6443: refused by a@host": "https://host:6443/version: dial tcp 10.0.0.1:6443: refused by a@host",
	} {
		assert.Equal(t, want, RedactUserInfo(text))
	}
}

func TestRedactError(t *testing.T) {
	cause := errors.New("https://u:hunter2@host")
	err := RedactError(fmt.Errorf("asking: %w", cause))
	assert.EqualError(t, err, "asking: https://host")
	assert.ErrorIs(t, err, cause)
	assert.NoError(t, RedactError(nil))
	plain := errors.New("plain")
	assert.Same(t, plain, RedactError(plain))
}
