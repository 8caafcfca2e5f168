// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"crypto/rand"
	"crypto/sha1" //nolint:gosec // htpasswd's {SHA} scheme, as upstream's ingresses expect it
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
)

const (
	keyStaticTokens = "static_tokens.csv"
	keyUsername     = "username"
	keyPassword     = "password"
	keyAuth         = "auth"

	tokenLength           = 128
	defaultPasswordLength = 32
	defaultUsername       = "admin"

	alphanumerics = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
)

// randomText draws n letters and digits, each equally likely.
func randomText(n int) (string, error) {
	const limit = 256 - 256%len(alphanumerics)
	out := make([]byte, 0, n)
	buf := make([]byte, n)
	for len(out) < n {
		if _, err := rand.Read(buf); err != nil {
			return "", fmt.Errorf("reading random bytes: %w", err)
		}
		for _, b := range buf {
			if int(b) < limit && len(out) < n {
				out = append(out, alphanumerics[int(b)%len(alphanumerics)])
			}
		}
	}
	return string(out), nil
}

// newStaticTokens creates the file of kube-apiserver's --token-auth-file, with users ordered by
// name.
func newStaticTokens(c Config) (map[string]Value, error) {
	users := slices.SortedFunc(slices.Values(c.Users), func(a, b User) int { return strings.Compare(a.Username, b.Username) })
	lines := make([]string, 0, len(users))
	for _, u := range users {
		token, err := randomText(tokenLength)
		if err != nil {
			return nil, err
		}
		groups := strings.Join(u.Groups, ",")
		if len(u.Groups) > 1 {
			groups = `"` + groups + `"`
		}
		lines = append(lines, strings.Join([]string{token, u.Username, u.UserID, groups}, ","))
	}
	return map[string]Value{keyStaticTokens: {[]byte(strings.Join(lines, "\n"))}}, nil
}

// tokenOf finds a user's token in the file.
func tokenOf(file Value, username string) (Value, bool) {
	for line := range strings.Lines(string(file.bytes)) {
		fields := strings.SplitN(strings.TrimSpace(line), ",", 4)
		if len(fields) >= 2 && fields[1] == username {
			return NewValue([]byte(fields[0])), true
		}
	}
	return Value{}, false
}

func newBasicAuth(c Config) (map[string]Value, error) {
	password, err := randomText(intOrDefault(c.PasswordLength, defaultPasswordLength))
	if err != nil {
		return nil, err
	}
	username := textOrDefault(c.Username, defaultUsername)
	sum := sha1.Sum([]byte(password)) //nolint:gosec // see the import
	return map[string]Value{
		keyUsername: {[]byte(username)},
		keyPassword: {[]byte(password)},
		keyAuth:     {[]byte(username + ":{SHA}" + base64.StdEncoding.EncodeToString(sum[:]))},
	}, nil
}

func intOrDefault(n, fallback int) int {
	if n != 0 {
		return n
	}
	return fallback
}

func textOrDefault(s, fallback string) string {
	if s != "" {
		return s
	}
	return fallback
}
