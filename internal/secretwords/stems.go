package secretwords

import "strings"

// stems are in every name that IsSecret knows, in lower case, by their first letter.
var stems = func() (out ['z' + 1][]string) {
	for _, s := range []string{"pass", "pwd", "pw", "token", "secret", "key", "cred", "webhookurl", "webhook_url", "webhook-url", "webhook.url",
		"stringdata", "kty", "connectionstring", "connection_string", "connection-string", "connection.string", "kubeconfig", "docker", "serviceaccount",
		"service_account", "service-account", "service.account", "psk", "masterauth", "auth"} {
		out[s[0]] = append(out[s[0]], s)
	}
	return out
}()

// Stem is the next of the stems in a text, in any case.
func Stem(s string, from int) (begin, end int, ok bool) {
	for i := from; i < len(s); i++ {
		c := s[i] | 0x20
		if c > 'z' || stems[c] == nil {
			continue
		}
		for _, t := range stems[c] {
			if len(s)-i >= len(t) && strings.EqualFold(s[i:i+len(t)], t) {
				return i, i + len(t), true
			}
		}
	}
	return 0, 0, false
}

// NextName is the next word of a text with a stem in it, without dashes and points around it.
func NextName(s string, from int) (begin, end int, ok bool) {
	begin, end, ok = Stem(s, from)
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
