package plan

import (
	"regexp"
	"strings"
)

// form is a way to write a secret that is told by what it looks like or by what stands around it. Its pattern has a group "secret", which
// is hidden, and may have a group "name", which has to be one of a secret.
type form struct {
	// has are texts, in lower case, of which one is in everything that the pattern finds: most texts have none.
	has     []string
	pattern *regexp.Regexp
	// unless tells that a secret is none after all.
	unless func(secret string) bool
	// secret and name are the numbers of the groups; -1 for a name that the form does not have.
	secret, name int
}

func written(pattern string, has ...string) form {
	p := regexp.MustCompile(pattern)
	return form{has: has, pattern: p, secret: p.SubexpIndex("secret"), name: p.SubexpIndex("name")}
}

func (f form) unlessIt(is func(string) bool) form {
	f.unless = is
	return f
}

const (
	equals = `\\*["']?\s*[:=]\s*`
	word   = `\\*["']?(?P<name>[A-Za-z][A-Za-z0-9_.-]*)\\*["']?`
	scalar = `(?P<secret>\\*"(?:[^"\\]|\\[^"])*\\*"|'[^']*'|[^\s,}]+)`
	// lineEnd is the last word of a line, or one in quotes.
	lineEnd = `(?P<secret>"[^"\n]*"|'[^'\n]*'|[^\s=:{\["'|>&<][^\s]*?)[ \t]*;?[ \t]*\r?$`
	// header is the value of one, up to what ends it in a command or a file.
	header = `(?P<secret>[^\s"',;\\]{4,})`
)

// named is true for a form that only counts with the name of a secret.
func (f form) named() bool { return f.name >= 0 }

// textForms are looked for one after another, the more exact ones first.
var textForms = []form{
	// Keys and tokens that say who gave them out: AWS, GitHub, GitLab, Slack, Google, Stripe, Vault, OpenAI, Hugging Face, SendGrid, npm,
	// PyPI, DigitalOcean; and web tokens.
	written(`\b(?P<secret>(?:AKIA|ASIA)[A-Z0-9]{16})\b`, "akia", "asia"),
	written(`\b(?P<secret>gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,})`, "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"),
	written(`\b(?P<secret>gl(?:pat|rt|dt|ptt|cbt|ft|soat|imt|agent)-[A-Za-z0-9_.-]{12,})`, "gl"),
	written(`\b(?P<secret>xox[abeoprs]-[A-Za-z0-9-]{10,}|xapp-[A-Za-z0-9-]{10,})`, "xox", "xapp-"),
	written(`\b(?P<secret>AIza[A-Za-z0-9_-]{30,}|ya29\.[A-Za-z0-9_-]{20,}|GOCSPX-[A-Za-z0-9_-]{20,})`, "aiza", "ya29.", "gocspx-"),
	written(`\b(?P<secret>[sr]k_(?:live|test)_[A-Za-z0-9]{10,}|whsec_[A-Za-z0-9]{10,}|sk-(?:proj-|ant-)?[A-Za-z0-9_-]{20,}|hf_[A-Za-z0-9]{20,}|SG\.[A-Za-z0-9_-]{15,}\.[A-Za-z0-9_-]{15,}|`+
		`hv[sb]\.[A-Za-z0-9_-]{20,}|npm_[A-Za-z0-9]{20,}|pypi-[A-Za-z0-9_-]{20,}|do[opr]_v1_[a-f0-9]{20,}|dckr_pat_[A-Za-z0-9_-]{10,})`,
		"k_live_", "k_test_", "whsec_", "sk-", "hf_", "sg.", "hvs.", "hvb.", "npm_", "pypi-", "_v1_", "dckr_pat_"),
	written(`\b(?P<secret>eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*)`, "eyj"),
	written(`(?i)hooks\.slack\.com/(?:services|workflows|triggers)/(?P<secret>[^\s"']+)`, "hooks.slack.com"),
	written(`(?i)discord(?:app)?\.com/api/webhooks/(?P<secret>[^\s"']+)`, "api/webhooks"),
	written(`(?i)webhook\.office\.com/webhookb2/(?P<secret>[^\s"']+)`, "webhook.office.com"),
	// Hashes of passwords, which can be guessed: of crypt, htpasswd, LDAP.
	written(`(?P<secret>\$(?:apr1|1|5|6|7|2[abxy]?|y|gy|argon2(?:id|i|d)|scrypt|pbkdf2[a-z0-9-]*)\$[^\s:"']+)`, "$"),
	written(`(?P<secret>\{(?:S?SHA(?:256|384|512)?|S?MD5|CRYPT)\}[A-Za-z0-9+/=$.]{8,})`, "sha", "md5}", "{crypt}"),

	// Credentials in addresses. What looks like a port with a path is one.
	written(`[a-zA-Z][a-zA-Z0-9+.-]*://(?P<secret>[^\s:/?#"'<>@]*:[^\s"'<>]*)@`, "://").unlessIt(portAndPath.MatchString),
	written(`[a-zA-Z][a-zA-Z0-9+.-]*://(?P<secret>[^\s/?#"']*)@`, "://").unlessIt(func(s string) bool { return s == "git" || s == "hg" }),
	written(`(?i)\bjdbc:oracle:[a-z0-9]+:[^\s/@:]*/(?P<secret>[^\s@"']+)@`, "jdbc:oracle"),
	written(`\b[A-Za-z0-9_.-]+:(?P<secret>[^\s@"'/]+)@(?:tcp|udp|unix)\(`, "@tcp(", "@udp(", "@unix("),
	written(`(?i)[?&](?:key|sig|signature|auth|x-amz-signature|x-amz-security-token|x-goog-signature)=(?P<secret>[^&\s"'\\#]+)`, "?", "&"),
	written(`[?&;](?P<name>[A-Za-z][A-Za-z0-9_.-]*)=(?P<secret>[^&\s"'\\#;]+)`, "?", "&", ";"),

	// Headers, in requests and in the configuration of servers.
	written(`(?i)\bauthorization\\*["']?\s*[:=,]?\s*\\*["']?(?:basic|bearer|token|digest|negotiate|apikey|api-key|key|bot)\s+`+header, "authorization"),
	written(`(?i)["']authorization:\s*`+header, "authorization"),
	written(`(?i)\b(?:bearer|basic)\s+(?P<secret>[A-Za-z0-9._~+/=-]{20,})`, "bearer", "basic"),
	written(`(?i)(?:^|[\s"'])(?:set-)?cookie:[ \t]*(?P<secret>[^\s=;"']+=[^\r\n"']+)`, "cookie:"),
	written(`(?i)["'](?P<name>[a-z][a-z0-9-]*):[ \t]+`+header, ":"),
	written(`(?i)\b(?:proxy_set_header|add_header|(?:request)?header[ \t]+\w+)[ \t]+(?P<name>[A-Za-z][A-Za-z0-9_-]*)[ \t]+["']?`+header, "header"),

	// Arguments of programs.
	written(`(?:^|\s)(?:-u ?|--user[ =]|--proxy-user[ =])["']?(?P<secret>[^\s:"'=/-][^\s:"'/]*:[^\s"']+)`, "-u", "user").unlessIt(numbers.MatchString),
	written(`(?:^|[\s"'\[,])(?P<name>--?[A-Za-z][A-Za-z0-9_.-]*)(?:[ \t]+|["'][ \t]*,?[ \t]*["'])(?P<secret>"[^"]*"|'[^']*'|[^\s"'\\-][^\s"'\\]*)`, "-"),
	written(`\bredis-cli\b[^\n|;&]*?\s-a[ \t]*["']?(?P<secret>[^\s"']+)`, "redis-cli"),
	written(`(?m)\becho\s+(?:-n\s+)?["']?[^\s:"'|]+:(?P<secret>[^\s"'|]+)["']?\s*\|[^\n|]*\bchpasswd`, "chpasswd"),
	written(`(?m)\b(?:echo|printf)\s+(?:-n\s+)?(?P<secret>"[^"\n]+"|'[^'\n]+'|[^\s|]+)\s*\|[^\n|]*(?:--password-stdin|--stdin|\bsshpass\b)`, "stdin", "sshpass"),

	// Lines of configuration.
	written(`(?m)^[ \t]*(?P<name>[A-Za-z_][A-Za-z0-9_.-]*)[ \t]+`+lineEnd, "\n"),
	written(`(?m)^[ \t]*(?:ENV|ARG|export|set|setx|setenv)[ \t]+(?P<name>[A-Za-z_][A-Za-z0-9_.-]*)[ \t]+`+lineEnd, "env", "arg", "export", "set"),
	written(`\blogin\s+\S+\s+password\s+(?P<secret>\S+)`, "password"),
	written(`(?i)\buser[ \t]+\S+[ \t]+(?:insecure-)?password[ \t]+(?P<secret>\S+)`, "password"),
	written(`(?m)^[^\s:#]+:(?:[0-9]+|\*):[^:\s]+:[^:\s]+:(?P<secret>[^\s:]+)[ \t]*$`, ":"),
	written(`(?m)^[ \t]*r[ow]community6?[ \t]+(?P<secret>\S+)`, "community"),
	written(`\b(?:PSK|XAUTH|EAP)[ \t]+["'](?P<secret>[^"'\n]+)`, "psk", "xauth", "eap"),
	written(`//[^\s:]+/:_(?:authToken|auth|password)=(?P<secret>\S+)`, ":_"),
	written(`(?m)^[ \t]*_auth[ \t]*=[ \t]*(?P<secret>\S+)`, "_auth"),
	written(`\\*["']auth\\*["'][ \t]*:[ \t]*\\*["'](?P<secret>[A-Za-z0-9+/=]{8,})`, "auth"),
	written(`(?i)\b(?:identified(?:[ \t]+with[ \t]+\S+)?[ \t]+(?:by|as)|password)[ \t]+(?:encrypted[ \t]+)?['"](?P<secret>[^'"\n]+)`, "identified", "password"),
	written(`(?i)\bdefine\(\s*["'](?P<name>[A-Za-z0-9_]+)["']\s*,\s*["'](?P<secret>[^"'\n]*)`, "define("),

	// XML, and items that have a name and a value, in both orders.
	written(`<(?P<name>[A-Za-z][A-Za-z0-9_.:-]*)(?:\s[^<>]*)?>\s*<!\[CDATA\[(?P<secret>(?s:.*?))\]\]>`, "cdata"),
	written(`<(?P<name>[A-Za-z][A-Za-z0-9_.:-]*)(?:\s[^<>]*)?>(?P<secret>[^<]+)</`, "</"),
	written(`(?i)<(?:name|key)>\s*(?P<name>[A-Za-z][A-Za-z0-9_.-]*)\s*</(?:name|key)>\s*<value>(?P<secret>[^<]+)</`, "<value>"),
	written(`(?i)\b(?:name|key)`+equals+word+`\s*,?\s*\\*["']?value`+equals+scalar, "value"),
	written(`(?i)\bvalue`+equals+scalar+`\s*,?\s*\\*["']?(?:name|key)`+equals+word, "value"),

	// A token in the prose of an error: letters and digits mixed, after the word.
	written(`(?i)\b(?:token|password)\s+["']?(?P<secret>[A-Za-z0-9_.-]*[0-9][A-Za-z0-9_.-]*)`, "token", "password").unlessIt(func(s string) bool { return len(s) < 12 }),
}

var (
	numbers     = regexp.MustCompile(`^[0-9]+(:[0-9]+)*$`)
	portAndPath = regexp.MustCompile(`^[^:]*:[0-9]+(?:[/?#]|$)`)
	// client is a program that takes a password after -p.
	client       = regexp.MustCompile(`(?:^|[\s/"'])(?:mysql[a-z_]*|mariadb[a-z-]*|mongo[a-z]*|sshpass)\b`)
	passwordFlag = written(`(?:^|\s)-p ?(?P<secret>"[^"]*"|'[^']*'|[^\s"'=-][^\s"']*)`)
	// shortFlag is -p with its value as an argument of its own; flags in words, numbers and ports are none.
	shortFlag = regexp.MustCompile(`^-p([^=\s]*[^A-Za-z=\s:-][^=\s]*)$`)
	// encodedLines and encodedLine may be base64.
	encodedLines = regexp.MustCompile(`[A-Za-z0-9+/]{16,}(?:\r?\n[ \t]*[A-Za-z0-9+/]{4,})+={0,2}`)
	encodedLine  = regexp.MustCompile(`[A-Za-z0-9+/]{16,}={0,2}`)
	dataURLs     = regexp.MustCompile(`\bdata:[A-Za-z0-9/+.;=-]*,([^\s"']+)`)
)

// forms masks what is secret by its form.
func (m Masking) forms(s string) string {
	lower := strings.ToLower(s)
	names := hasAny(lower, mayName...)
	for _, f := range textForms {
		if f.named() && !names {
			continue
		}
		if len(f.has) == 0 || hasAny(lower, f.has...) {
			s = m.form(f, s)
		}
	}
	if hasAny(lower, "mysql", "mariadb", "mongo", "sshpass") && client.MatchString(s) {
		s = m.form(passwordFlag, s)
	}
	for _, part := range []*regexp.Regexp{encodedLines, encodedLine} {
		s = m.found(part.FindAllStringIndex(s, -1), s, func(g []int) (begin, end int, secret string, ok bool) {
			raw, decodes := decodedText(s[g[0]:g[1]])
			return g[0], g[1], raw, decodes && CleanText(raw) != raw
		})
	}
	if !strings.Contains(lower, "data:") {
		return s
	}
	return m.found(dataURLs.FindAllStringSubmatchIndex(s, -1), s, func(g []int) (begin, end int, secret string, ok bool) {
		raw, holds := m.dataURL(s[g[2]:g[3]], strings.Contains(s[g[0]:g[2]], ";base64"))
		return g[2], g[3], raw, holds
	})
}

func (m Masking) form(f form, s string) string {
	return m.found(f.pattern.FindAllStringSubmatchIndex(s, -1), s, func(g []int) (begin, end int, secret string, ok bool) {
		begin, end = g[2*f.secret], g[2*f.secret+1]
		value := s[begin:end]
		secret = strings.Trim(value, "\\\"' \t\r\n")
		switch {
		case secret == "", unmasked(value) == "", f.unless != nil && f.unless(value):
			return
		case f.named() && (!isSecretKey(s[g[2*f.name]:g[2*f.name+1]]) || isPath(value) || !strings.HasSuffix(value, unmasked(value))):
			return
		}
		// Quotes stay where they are.
		for begin < end && strings.IndexByte(quotes, s[begin]) >= 0 {
			begin++
		}
		for end > begin && strings.IndexByte(quotes, s[end-1]) >= 0 {
			end--
		}
		return begin, end, secret, true
	})
}

const quotes = "\"'"

// found replaces parts of a text by what stands for them.
func (m Masking) found(matches [][]int, s string, part func(groups []int) (begin, end int, secret string, ok bool)) string {
	if len(matches) == 0 {
		return s
	}
	var out strings.Builder
	at := 0
	for _, g := range matches {
		begin, end, secret, ok := part(g)
		if !ok {
			continue
		}
		out.WriteString(s[at:begin])
		out.WriteString(m.mask(secret))
		at = end
	}
	out.WriteString(s[at:])
	return out.String()
}
