package plan

import (
	"regexp"
	"strings"
)

var (
	// collection is a secret name before a list or an object in a text, also one in a text inside a text.
	collection = regexp.MustCompile(`([A-Za-z][A-Za-z0-9_.-]*)\\*["']?\s*[:=]\s*([\[{])`)
	// heading is a name alone on its line: its value is in the lines that follow, deeper or as items of a list.
	heading = regexp.MustCompile(`^([ \t]*(?:- +)*)["']?([A-Za-z][A-Za-z0-9_. -]*)["']?[ \t]*:[ \t]*(?:[|>][-+0-9]*[ \t]*)?\r?$`)
	equals  = `\\*["']?\s*[:=]\s*`
	word    = `\\*["']?([A-Za-z][A-Za-z0-9_.-]*)\\*["']?`
	scalar  = `(\\*"(?:[^"\\]|\\[^"])*\\*"|'[^']*'|[^\s,}]+)`
	// namedValue is an item with a name and a value; valueNamed is one in the other order.
	namedValue = regexp.MustCompile(`(?i)(\b(?:name|key)` + equals + word + `\s*,?\s*\\*["']?value` + equals + `)` + scalar)
	valueNamed = regexp.MustCompile(`(?i)(\bvalue` + equals + `)` + scalar + `(\s*,?\s*\\*["']?(?:name|key)` + equals + word + `)`)
	// element is one of XML.
	element = regexp.MustCompile(`(<([A-Za-z][A-Za-z0-9_.:-]*)(?:\s[^<>]*)?>)([^<]+)(</)`)
	// urlSignature signs a URL.
	urlSignature = regexp.MustCompile(`(?i)([?&](?:sig|signature|x-amz-signature|x-goog-signature)=)([^&\s"'\\]+)`)
	// keyID begins all ids of access keys of AWS.
	keyID = regexp.MustCompile(`\b(?:AKIA|ASIA)[A-Z0-9]{16}\b`)
	// flagWord is a flag whose value is the next word.
	flagWord = regexp.MustCompile(`(^|[\s"'\[,])(--?[A-Za-z][A-Za-z0-9_.-]*)([ \t]+|["'][ \t]*,?[ \t]*["'])("[^"]*"|'[^']*'|[^\s"'\\-][^\s"'\\]*)`)
	// userFlag is that of curl and others; a user and group by number is none.
	userFlag = regexp.MustCompile(`((?:^|\s)(?:-u|--user|--proxy-user)[ =]*["']?)([^\s:"'=/-][^\s:"'/]*:[^\s"']+)`)
	numbers  = regexp.MustCompile(`^[0-9]+(:[0-9]+)*$`)
	// client is a program that takes a password after -p.
	client       = regexp.MustCompile(`(?:^|[\s/"'])(?:mysql[a-z_]*|mariadb[a-z-]*|mongo[a-z]*|sshpass)\b`)
	passwordFlag = regexp.MustCompile(`(^|\s)(-p ?)("[^"]*"|'[^']*'|[^\s"'=-][^\s"']*)`)
	// shortFlag is -p with its value as an argument of its own; flags in words, numbers and ports are none.
	shortFlag = regexp.MustCompile(`^-p([^=\s]*[^A-Za-z=\s:-][^=\s]*)$`)
)

// forms masks what is secret by what stands before it.
func (m Masking) forms(s string) string {
	s = m.replace(keyID, s, func(g []string) (string, string, string) { return "", g[0], "" })
	s = m.replace(urlSignature, s, func(g []string) (string, string, string) { return g[1], unmasked(g[2]), rest(g[2]) })
	s = m.replace(element, s, func(g []string) (string, string, string) {
		if !isSecretKey(g[2]) || strings.TrimSpace(g[3]) == "" || unmasked(g[3]) == "" {
			return g[0], "", ""
		}
		return g[1], g[3], g[4]
	})
	s = m.replace(userFlag, s, func(g []string) (string, string, string) {
		if numbers.MatchString(g[2]) {
			return g[0], "", ""
		}
		return g[1], g[2], ""
	})
	s = m.replace(flagWord, s, func(g []string) (string, string, string) {
		if !isSecretKey(g[2]) || isPath(g[4]) || unmasked(g[4]) == "" {
			return g[0], "", ""
		}
		return g[1] + g[2] + g[3], strings.Trim(g[4], `"'`), ""
	})
	if client.MatchString(s) {
		s = m.replace(passwordFlag, s, func(g []string) (string, string, string) { return g[1] + g[2], unmasked(g[3]), rest(g[3]) })
	}
	return s
}

// unmasked is a value that is not masked yet; rest is one that is.
func unmasked(v string) string {
	if strings.HasPrefix(strings.Trim(v, `\"'`), strings.TrimSuffix(Mask, ")")) || variable.MatchString(v) {
		return ""
	}
	return v
}

func rest(v string) string { return strings.TrimPrefix(v, unmasked(v)) }

// unread masks what is below secret names in a text that is neither JSON nor YAML: rather too much.
func (m Masking) unread(s string) string {
	s = m.headings(s)
	s = m.replace(namedValue, s, func(g []string) (string, string, string) {
		if !isSecretKey(g[2]) || unmasked(g[3]) == "" {
			return g[0], "", ""
		}
		return g[1], strings.Trim(g[3], `\"'`), ""
	})
	s = m.replace(valueNamed, s, func(g []string) (string, string, string) {
		if !isSecretKey(g[4]) || unmasked(g[2]) == "" {
			return g[0], "", ""
		}
		return g[1], strings.Trim(g[2], `\"'`), g[3]
	})
	var out strings.Builder
	for {
		at := collection.FindStringSubmatchIndex(s)
		if at == nil {
			break
		}
		begin := at[4]
		if !isSecretKey(s[at[2]:at[3]]) {
			out.WriteString(s[:at[5]])
			s = s[at[5]:]
			continue
		}
		end := begin + valueEnd(s[begin:])
		out.WriteString(s[:begin])
		out.WriteString(m.mask(s[begin:end]))
		s = s[end:]
	}
	out.WriteString(s)
	return out.String()
}

// headings masks the lines that belong to a secret name alone on its line.
func (m Masking) headings(s string) string {
	lines := strings.Split(s, "\n")
	var out []string
	for i := 0; i < len(lines); i++ {
		out = append(out, lines[i])
		g := heading.FindStringSubmatch(lines[i])
		if g == nil || !isSecretKey(g[2]) {
			continue
		}
		end := i + 1
		for end < len(lines) && belongs(lines[end], len(g[1])) {
			end++
		}
		if hidden := strings.Join(lines[i+1:end], "\n"); strings.TrimSpace(hidden) != "" && !isMask(strings.TrimSpace(hidden)) {
			out = append(out, strings.Repeat(" ", len(g[1])+2)+m.mask(hidden))
			i = end - 1
		}
	}
	return strings.Join(out, "\n")
}

// belongs is true for a line of the value of a name with this indent.
func belongs(line string, indent int) bool {
	text := strings.TrimLeft(line, " \t")
	depth := len(line) - len(text)
	return strings.TrimSpace(text) == "" || depth > indent || depth == indent && strings.HasPrefix(text, "- ")
}
