// SPDX-License-Identifier: Apache-2.0

package secretwords

import "strings"

// stems, in lower case and by first letter: each name that IsSecret accepts contains one.
var stems = func() (out ['z' + 1][]string) {
	for _, s := range []string{"pass", "pwd", "pw", "token", "secret", "key", "cred", "webhookurl", "webhook_url", "webhook-url", "webhook.url",
		"stringdata", "kty", "connectionstring", "connection_string", "connection-string", "connection.string", "kubeconfig", "docker", "serviceaccount",
		"service_account", "service-account", "service.account", "psk", "masterauth", "auth",
		"salt", "erlangcookie", "erlang_cookie", "hmac", "securejson", "slack_api_url", "slackapiurl", "slack-api-url", "slack_config", "sonar.login", "sonarlogin", "sonar_login", "community", "pin", "otp"} {
		out[s[0]] = append(out[s[0]], s)
	}
	return out
}()

// isWordBoundaryNeeded reports whether a stem is part of too many words to count inside one.
func isWordBoundaryNeeded(stem string) bool { return stem == "pin" || stem == "otp" }

// NextStem returns the next stem in a text, in any case.
func NextStem(s string, from int) (begin, end int, ok bool) {
	for i := from; i+1 < len(s); i++ {
		c := s[i] | 0x20
		if c > 'z' || stems[c] == nil {
			continue
		}
		for _, t := range stems[c] {
			if s[i+1]|0x20 == t[1]|0x20 && len(s)-i >= len(t) && strings.EqualFold(s[i:i+len(t)], t) && (!isWordBoundaryNeeded(t) || hasWordBoundary(s, i, i+len(t))) {
				return i, i + len(t), true
			}
		}
	}
	return 0, 0, false
}

// hasWordBoundary reports whether a word has no letters around it, or only letters of the other
// case: userPin, pinCode, TOTP.
func hasWordBoundary(s string, begin, end int) bool {
	before := begin == 0 || !isLetter(s[begin-1]) || isUpper(s[begin]) && !isUpper(s[begin-1]) || s[begin-1]|0x20 == 't'
	return before && (end == len(s) || !isLetter(s[end]) || isUpper(s[end]) || strings.HasPrefix(strings.ToLower(s[end:min(len(s), end+6)]), "code") ||
		strings.HasPrefix(strings.ToLower(s[end:min(len(s), end+6)]), "secret"))
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

func isUpper(c byte) bool { return c >= 'A' && c <= 'Z' }

// NextCandidate returns the next word that contains a stem, without leading and trailing dashes and
// dots.
func NextCandidate(s string, from int) (begin, end int, ok bool) {
	begin, end, ok = NextStem(s, from)
	if !ok {
		return 0, 0, false
	}
	for begin > from && isNameByte(s[begin-1]) {
		begin--
	}
	for end < len(s) && isNameByte(s[end]) {
		end++
	}
	for begin < end && (s[begin] == '-' || s[begin] == '.') {
		begin++
	}
	for end > begin && (s[end-1] == '-' || s[end-1] == '.') {
		end--
	}
	return begin, end, true
}

func isNameByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-' || c == '.'
}
