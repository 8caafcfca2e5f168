// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/pergola-dev/pergola/internal/secretwords"
)

// secretForm is a notation of a secret that is recognized by its shape or its context. Its pattern
// has a group "secret", which is hidden, and may have a group "name", which must be the name of a
// secret.
type secretForm struct {
	// marks are lower-case texts. Every match of the pattern has one of them; most texts have none
	// (formmarks.go).
	marks   []string
	pattern *regexp.Regexp
	// isNoSecret reports whether a match is not a secret.
	isNoSecret func(secret string) bool
	// needsWordStart is set if a match must follow a blank, a quote or the start. Patterns that
	// begin with a fixed text are fast.
	needsWordStart bool
	// canBeInLine is set for a form within one line. Only lines with a text of has that satisfy it
	// are searched.
	canBeInLine func(line string) bool
	// secretGroup and name are group numbers; name is -1 for a form without a name.
	secretGroup, nameGroup int
}

func newForm(pattern string, has ...string) secretForm {
	p := regexp.MustCompile(pattern)
	return secretForm{marks: has, pattern: p, secretGroup: p.SubexpIndex("secret"), nameGroup: p.SubexpIndex("name")}
}

func (f secretForm) atWordStart() secretForm {
	f.needsWordStart = true
	return f
}

func (f secretForm) limitedToLines(are func(line string) bool) secretForm {
	f.canBeInLine = are
	return f
}

func acceptAnyLine(string) bool { return true }

func (f secretForm) exceptIf(is func(string) bool) secretForm {
	f.isNoSecret = is
	return f
}

const (
	assignmentPattern = `\\*["']?\s*[:=]\s*`
	namePattern       = `\\*["']?(?P<name>[A-Za-z][A-Za-z0-9_.-]*)\\*["']?`
	scalarPattern     = `(?P<secret>\\*"(?:[^"\\]|\\[^"])*\\*"|'[^']*'|[^\s,}]+)`
	// argumentPattern matches an argument of a command line.
	argumentPattern = `(?P<secret>"(?:[^"\\]|\\.)*"|'[^']*'|(?:[^\s"'\\|&;<>-]|\\.)(?:[^\s"'\\|&;<>]|\\.)*)`
	// pipedPattern matches the output of a command before a pipe.
	pipedPattern = `\b(?:echo|printf)\s+(?:-[neE]+\s+)?(?P<secret>"[^"\n]+"|'[^'\n]+'|[^\s|]+)\s*\|[^\n|]*`
	// headerValuePattern matches the value of a header, up to its end in a command or a file.
	headerValuePattern = `(?P<secret>[^\s"',;\\]{4,})`
)

// textForms are tried one after another, the more exact ones first.
var textForms = slices.Concat(generalForms, programForms, deviceForms)

// generalForms are forms of values, addresses, headers and common programs.
var generalForms = []secretForm{
	// Keys and tokens that name their issuer: AWS, GitHub, GitLab, Slack, Google, Stripe, Vault,
	// OpenAI, Hugging Face, SendGrid, npm, PyPI, DigitalOcean; and web tokens.
	newForm(`\b(?P<secret>(?:AKIA|ASIA)[A-Z0-9]{16})\b`, "akia", "asia"),
	newForm(`\b(?P<secret>gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,})`, "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"),
	newForm(`\b(?P<secret>gl(?:pat|rt|dt|ptt|cbt|ft|soat|imt|agent)-[A-Za-z0-9_.-]{12,})`, "glpat-", "glrt-", "gldt-", "glptt-", "glcbt-", "glft-", "glsoat-", "glimt-", "glagent-"),
	newForm(`\b(?P<secret>xox[abeoprs]-[A-Za-z0-9-]{10,}|xapp-[A-Za-z0-9-]{10,})`, "xox", "xapp-"),
	newForm(`\b(?P<secret>AIza[A-Za-z0-9_-]{30,}|ya29\.[A-Za-z0-9_-]{20,}|GOCSPX-[A-Za-z0-9_-]{20,})`, "aiza", "ya29.", "gocspx-"),
	newForm(`\b(?P<secret>[sr]k_(?:live|test)_[A-Za-z0-9]{10,}|whsec_[A-Za-z0-9]{10,}|sk-(?:proj-|ant-)?[A-Za-z0-9_-]{20,}|hf_[A-Za-z0-9]{20,}|SG\.[A-Za-z0-9_-]{15,}\.[A-Za-z0-9_-]{15,}|`+
		`hv[sb]\.[A-Za-z0-9_-]{20,}|npm_[A-Za-z0-9]{20,}|pypi-[A-Za-z0-9_-]{20,}|do[opr]_v1_[a-f0-9]{20,}|dckr_pat_[A-Za-z0-9_-]{10,})`,
		"k_live_", "k_test_", "whsec_", "sk-", "hf_", "sg.", "hvs.", "hvb.", "npm_", "pypi-", "_v1_", "dckr_pat_"),
	newForm(`\b(?P<secret>eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*)`, "eyj"),
	newForm(`(?i)hooks\.slack\.com/(?:services|workflows|triggers)/(?P<secret>[^\s"']+)`, "hooks.slack.com"),
	newForm(`(?i)discord(?:app)?\.com/api/webhooks/(?P<secret>[^\s"']+)`, "api/webhooks"),
	newForm(`(?i)webhook\.office\.com/webhookb2/(?P<secret>[^\s"']+)`, "webhook.office.com"),
	newForm(`(?i)api\.telegram\.org/bot(?P<secret>[^\s/"']+)`, "api.telegram.org"),
	newForm(`(?i)\.azurewebsites\.net/[^\s"'?]*\?(?:[^\s"']*&)?code=(?P<secret>[^&\s"']+)`, "azurewebsites.net"),
	// Hashes of passwords, which can be guessed: crypt, htpasswd, LDAP.
	newForm(`\$(?P<secret>(?:apr1|1|5|6|7|2[abxy]?|y|gy|argon2(?:id|i|d)|scrypt|pbkdf2[a-z0-9-]*)\$[^\s:"']+)`, "$apr1$", "$1$", "$5$", "$6$", "$7$", "$2", "$y$", "$gy$", "$argon2", "$scrypt$", "$pbkdf2"),
	newForm(`(?P<secret>\{(?:S?SHA(?:256|384|512)?|S?MD5|CRYPT)\}[A-Za-z0-9+/=$.]{8,})`, "sha}", "sha256}", "sha384}", "sha512}", "md5}", "{crypt}"),

	// Credentials in addresses. A port with a path is not a credential.
	newForm(`://(?P<secret>[^\s:/?#"'<>@]*:[^\s"'<>]*)@`, "@").exceptIf(portAndPathPattern.MatchString),
	newForm(`://(?P<secret>[^\s/?#"']*)@`, "@").exceptIf(func(s string) bool { return s == "git" || s == "hg" }),
	newForm(`(?i)\bjdbc:oracle:[a-z0-9]+:[^\s/@:]*/(?P<secret>[^\s@"']+)@`, "jdbc:oracle"),
	newForm(`\b[A-Za-z0-9_.-]+:(?P<secret>[^\s@"'/]+)@(?:tcp|udp|unix)\(`, "@tcp(", "@udp(", "@unix("),
	newForm(`(?i)[?&](?:key|sig|signature|auth|x-amz-signature|x-amz-security-token|x-goog-signature)=(?P<secret>[^&\s"'\\#]+)`,
		"?key=", "&key=", "sig=", "signature=", "?auth=", "&auth=", "x-amz-security-token="),

	// Headers, in requests and in the configuration of servers.
	newForm(`(?i)\bauthorization\\*["']?\s*[:=,]?\s*\\*["']?(?:basic|bearer|token|digest|negotiate|apikey|api-key|key|bot)\s+`+headerValuePattern, "authorization"),
	newForm(`(?i)["']authorization:\s*(?:[a-z-]+\s+)?`+headerValuePattern, "authorization"),
	newForm(`(?i)\b(?:bearer|basic)\s+(?P<secret>[A-Za-z0-9._~+/=-]{20,})`, "bearer", "basic"),
	newForm(`(?i)(?:^|[\s"'])(?:set-)?cookie:[ \t]*(?P<secret>[^\s=;"']+=[^\r\n"']+)`, "cookie:"),
	newForm(`(?i)\b(?:proxy_set_header|add_header|(?:set|add)-header)[ \t]+(?P<name>[A-Za-z][A-Za-z0-9_-]*)[ \t]+["']?`+headerValuePattern,
		"_header", "set-header", "add-header").limitedToLines(acceptAnyLine),
	newForm(`(?i)^[ \t]*(?:request)?header(?:[ \t]+(?:set|add|append|merge|setifempty|always))*[ \t]+(?P<name>[A-Za-z][A-Za-z0-9_-]*)[ \t]+["']?`+headerValuePattern, "header ", "header\t").limitedToLines(acceptAnyLine),

	// Arguments of programs.
	newForm(`-u ?(?P<secret>"[^\s:"=/-][^\s:"/]*:[^"]+"|'[^\s:'=/-][^\s:'/]*:[^']+'|[^\s:"'=/-][^\s:"'/]*:[^\s"']+)`, "-u").exceptIf(isUserAndGroup).atWordStart(),
	newForm(`--(?:proxy-)?user[ =](?P<secret>"[^\s:"=/-][^\s:"/]*:[^"]+"|'[^\s:'=/-][^\s:'/]*:[^']+'|[^\s:"'=/-][^\s:"'/]*:[^\s"']+)`, "user").exceptIf(isUserAndGroup).atWordStart(),
	newForm(`\bredis-cli\b[^\n|;&]*?\s-a[ \t]*`+argumentPattern, "redis-cli"),
	newForm(`\b(?:docker|podman|nerdctl|helm|oras|crane|skopeo|oc|az|buildah)\b[^\n|;&]*?\blogin\b[^\n|;&]*?\s-p[ \t]*`+argumentPattern, "login"),
	newForm(`\b(?:useradd|usermod)\b[^\n|;&]*?\s-p[ \t]*`+argumentPattern, "useradd", "usermod"),
	newForm(`\bldap(?:search|add|modify|delete|passwd|whoami|compare)\b[^\n|;&]*?\s-w[ \t]*`+argumentPattern, "ldap"),
	newForm(`\bopenssl\b[^\n|;&]*?\s-k[ \t]+`+argumentPattern, "openssl"),
	newForm(`--from-literal[= ]["']?[A-Za-z0-9._-]+=`+argumentPattern, "create secret"),
	newForm(`\bhtpasswd\s+-[A-Za-z]*b[A-Za-z]*(?:\s+-[A-Za-z]+)*(?:\s+\S+){1,2}?\s+`+argumentPattern+`[ \t]*(?:[|;&\n]|$)`, "htpasswd"),
	newForm(`\b(?:smbclient|rpcclient|net)\b[^\n|;&]*?\s-U[ \t]*[^\s%]+%(?P<secret>[^\s"']+)`, "smbclient", "rpcclient", "net ads", "net rpc"),
	newForm(`\bnet\s+user\s+[^\s/]+\s+(?P<secret>[^\s/*]\S*)`, "net user"),
	newForm(`\bvault\s+login\s+(?:-[^\s=]+(?:=\S*)?\s+)*`+argumentPattern, "vault login"),
	newForm(`(?m)\becho\s+(?:-[neE]+\s+)?["']?[^\s:"'|]+:(?P<secret>[^\n"'|]+?)["']?\s*\|[^\n|]*\bchpasswd`, "chpasswd"),
	newForm(`\bchpasswd\b[^\n]*<<-?["']?\w+["']?\n(?P<secret>(?s:.+?))\n\w+`, "chpasswd"),
	newForm(`(?m)`+pipedPattern+`(?:--password-stdin|--stdin|\bsshpass\b|\bpasswd\b|\bcryptsetup\b)`, "stdin", "sshpass", "passwd", "cryptsetup"),
	newForm(`(?:--password-stdin|--stdin|passwd)\b[^\n|]*<<<\s*(?P<secret>"[^"]+"|'[^']+'|\S+)`, "<<<"),

	// Lines of configuration.
	newForm(`(?m)^[ \t]*stats[ \t]+auth[ \t]+[^\s:]+:(?P<secret>\S+)`, "stats"),
	newForm(`(?m)^[ \t]*createUser[ \t]+\S+[ \t]+\w+[ \t]+(?P<secret>.+)$`, "createuser"),
	newForm(`(?m)^[ \t]*user[ \t]+\S+[ \t]+(?:\S+[ \t]+)*?>(?P<secret>\S+)`, ">").limitedToLines(func(line string) bool { return strings.HasPrefix(strings.TrimLeft(line, " \t"), "user") }),
	newForm(`(?m)^(?:\S+:[0-9]+|[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+)[ \t]+[^\s:/]+:(?P<secret>\S+)[ \t]*$`, ":").exceptIf(versionOrPortPattern.MatchString).limitedToLines(func(line string) bool { return strings.Contains(line, ":") && len(strings.Fields(line)) == 2 }),
	newForm(`\bdb\.auth\(\s*["'][^"']*["']\s*,\s*["'](?P<secret>[^"']+)`, "db.auth"),
	newForm(`(?i)\bvariable\s+"(?P<name>[A-Za-z0-9_-]+)"\s*\{[^}]*?\bdefault\s*=\s*"(?P<secret>[^"\n]*)"`, "variable"),
	newForm(`\blogin\s+\S+\s+password\s+(?P<secret>\S+)`, "login"),
	newForm(`(?i)\buser[ \t]+\S+[ \t]+(?:insecure-)?password[ \t]+(?P<secret>\S+)`, "user ", "user\t").limitedToLines(acceptAnyLine),
	newForm(`(?m)^[^\s:#]+:(?:[0-9]+|\*):[^:\s]+:[^:\s]+:(?P<secret>(?:\\.|[^\s:\\])+)[ \t]*$`, ":").limitedToLines(func(line string) bool { return strings.Count(line, ":") >= 4 && len(strings.Fields(line)) == 1 }),
	newForm(`(?m)^[ \t]*r[ow]community6?[ \t]+(?P<secret>\S+)`, "community"),
	newForm(`\b(?:PSK|XAUTH|EAP)[ \t]+["'](?P<secret>[^"'\n]+)`, "psk", "xauth", "eap"),
	newForm(`//[^\s:]+/:_(?:authToken|auth|password)=(?P<secret>\S+)`, ":_"),
	newForm(`(?m)^[ \t]*_auth[ \t]*=[ \t]*(?P<secret>\S+)`, "_auth"),
	newForm(`\bauth\\*["']?[ \t]*[:=][ \t]*\\*["'](?P<secret>[A-Za-z0-9+/=]{8,})`, "auth").exceptIf(func(s string) bool { _, ok := decodedAuth(s); return !ok }),
	newForm(`(?i)\b(?:identified(?:[ \t]+with[ \t]+\S+)?[ \t]+(?:by|as)|password)(?:[ \t]+(?:encrypted[ \t]+)?|[ \t]*\()['"](?P<secret>[^'"\n]+)`, "identified", "password '", `password "`, "password(", "password (", "encrypted '").limitedToLines(acceptAnyLine),
	newForm(`(?i)\bdefine\(\s*["'](?P<name>[A-Za-z0-9_]+)["']\s*,\s*["'](?P<secret>[^"'\n]*)`, "define("),

	newForm(`(?m)^[ \t]*["']?user_[A-Za-z0-9]+["']?[ \t]*=[ \t]*"(?P<secret>[^"\n]+)"`, "user_"),

	// XML, and items with a name and a value, in both orders.
	newForm(`<(?P<name>[A-Za-z][A-Za-z0-9_.:-]*)(?:\s[^<>]*)?>\s*<!\[CDATA\[(?P<secret>(?s:.*?))\]\]>`, "cdata"),
	newForm(`<(?P<name>[A-Za-z][A-Za-z0-9_.:-]*)(?:\s[^<>]*)?>(?P<secret>[^<]+)</`, "</"),
	newForm(`<(?P<name>[A-Za-z][A-Za-z0-9_.:-]*)(?:\s[^<>]*)?>\s*<[A-Za-z][A-Za-z0-9_.:-]*>(?P<secret>[^<]+)</`, "</"),
	newForm(`(?i)<[a-z]+\s+(?:name|key|id)=["'](?P<name>[A-Za-z][A-Za-z0-9_.-]*)["'][^<>]*>\s*(?:<value>)?(?P<secret>[^<]+)</`, "</"),
	newForm(`(?i)<(?:name|key)>\s*(?P<name>[A-Za-z][A-Za-z0-9_.-]*)\s*</(?:name|key)>\s*<(?:value|string|data)>(?P<secret>[^<]+)</`, "<value>", "<string>", "<data>"),
	newForm(`(?i)\b(?:name|key)`+assignmentPattern+namePattern+`\s*,?\s*\\*["']?value`+assignmentPattern+scalarPattern, "value"),
	newForm(`(?i)\bvalue`+assignmentPattern+scalarPattern+`\s*,?\s*\\*["']?(?:name|key)`+assignmentPattern+namePattern, "value"),

	// A token in the prose of an error: mixed letters and digits after the word.
	newForm(`(?i)\b(?:token|password)\s+["']?(?P<secret>[A-Za-z0-9_.-]*[0-9][A-Za-z0-9_.-]*)`, "token", "password").
		exceptIf(func(s string) bool { return len(s) < 12 }).limitedToLines(func(line string) bool { return strings.ContainsAny(line, "0123456789") }),
	newForm(`(?i)\b(?:token|password|passphrase)\s+(?:is|was)\s+["']?(?P<secret>[^\s"']*[0-9][^\s"']*)`,
		"token is", "token was", "password is", "password was", "passphrase is", "passphrase was").limitedToLines(acceptAnyLine),
}

var (
	// userAndGroupPattern matches arguments of programs such as chown.
	userAndGroupPattern = regexp.MustCompile(`^(?:nobody|www-data|[0-9]+):[a-z_-]*[0-9]*$`)
	numbersPattern      = regexp.MustCompile(`^[0-9]+(:[0-9]+)*$`)
	// versionOrPortPattern matches the text after a colon in image names and addresses.
	versionOrPortPattern = regexp.MustCompile(`^(?:v?[0-9][0-9.]*(?:[-+/].*)?|latest)$`)
	portAndPathPattern   = regexp.MustCompile(`^[^:]*:[0-9]+(?:[/?#]|$)`)
	// passwordClientPattern matches a program that takes a password after -p.
	passwordClientPattern = regexp.MustCompile(`(?:^|[\s/"'])(?:mysql[a-z_]*|mariadb[a-z-]*|mongo[a-z]*|sshpass)\b`)
	// loginProgramPattern matches a program with a login command.
	loginProgramPattern = regexp.MustCompile(`^(?:.*/)?(?:docker|podman|nerdctl|helm|oras|crane|skopeo|oc|az|buildah)$`)
	passwordFlagForm    = newForm(`(?:^|\s)-p ?(?P<secret>"[^"]*"|'[^']*'|[^\s"'=-][^\s"']*)`)
	// passwordFlagPattern matches -p with its value in one argument, but not long flags, numbers
	// and ports.
	passwordFlagPattern = regexp.MustCompile(`^-p([^=\s]*[^A-Za-z=\s:-][^=\s]*)$`)
	// escapedJSONPattern matches JSON in an address.
	escapedJSONPattern = regexp.MustCompile(`[^\s"'&]*%22[^\s"'&]*`)
	dataURLPattern     = regexp.MustCompile(`\bdata:[A-Za-z0-9/+.;=-]*,([^\s"']+)`)
)

func isUserAndGroup(s string) bool {
	return numbersPattern.MatchString(s) || userAndGroupPattern.MatchString(s)
}

// maskForms masks secrets by their form.
func (m Masking) maskForms(s string) string {
	lower := strings.ToLower(s)
	_, _, names := secretwords.NextStem(s, 0)
	for i, is := range textFormMarks.findForms(lower) {
		if f := textForms[i]; is && (f.nameGroup < 0 || names) {
			s = m.maskForm(f, s)
		}
	}
	if hasAny(lower, "mysql", "mariadb", "mongo", "sshpass") && passwordClientPattern.MatchString(s) {
		s = m.maskForm(passwordFlagForm, s)
	}
	s = m.replaceMatches(findEncodedParts(s), s, func(g []int) (begin, end int, secret string, ok bool) {
		raw, decodes := decodedText(s[g[0]:g[1]])
		return g[0], g[1], raw, decodes && Text(raw) != raw
	})
	s = m.replaceMatches(findBootstrapTokens(s), s, func(g []int) (begin, end int, secret string, ok bool) { return g[0], g[1], s[g[0]:g[1]], true })
	if strings.Contains(lower, "%22") {
		s = m.replaceMatches(escapedJSONPattern.FindAllStringIndex(s, -1), s, func(g []int) (begin, end int, secret string, ok bool) {
			raw, err := url.PathUnescape(s[g[0]:g[1]])
			return g[0], g[1], raw, err == nil && Text(raw) != raw
		})
	}
	if !strings.Contains(lower, "data:") {
		return s
	}
	return m.replaceMatches(dataURLPattern.FindAllStringSubmatchIndex(s, -1), s, func(g []int) (begin, end int, secret string, ok bool) {
		raw, holds := m.dataURL(s[g[2]:g[3]], strings.Contains(s[g[0]:g[2]], ";base64"))
		return g[2], g[3], raw, holds
	})
}

// findBootstrapTokens finds tokens of kubeadm and Gardener: 6 letters and digits, a point, and 16
// more.
func findBootstrapTokens(s string) (out [][]int) {
	is := func(i int) bool {
		return i >= 0 && i < len(s) && (s[i] >= 'a' && s[i] <= 'z' || s[i] >= '0' && s[i] <= '9')
	}
	for i := range len(s) {
		if s[i] != '.' || !is(i-1) || !is(i+16) || is(i+17) || is(i-7) {
			continue
		}
		whole := true
		for k := 1; k <= 16 && whole; k++ {
			whole = is(i+k) && (k > 6 || is(i-k))
		}
		if whole && strings.ContainsAny(s[i+1:i+17], "0123456789") {
			out = append(out, []int{i - 6, i + 17})
		}
	}
	return out
}

// findEncodedParts finds parts of a text that may be base64, in one line or in consecutive lines.
func findEncodedParts(s string) (out [][]int) {
	run := func(i int) int {
		for i < len(s) && (isLetter(s[i]) || s[i] >= '0' && s[i] <= '9' || s[i] == '+' || s[i] == '/') {
			i++
		}
		return i
	}
	for i := 0; i < len(s); {
		end := run(i)
		if end-i < shortestEncoded {
			i = end + 1
			continue
		}
		begin, first := i, end
		for {
			next := end
			if next < len(s) && s[next] == '\r' {
				next++
			}
			if next == len(s) || s[next] != '\n' {
				break
			}
			next = skipChars(s, next+1, " \t")
			if n := run(next); n-next >= 4 {
				end = n
				continue
			}
			break
		}
		end, first = skipChars(s, end, "="), skipChars(s, first, "=")
		if end > first {
			if raw, ok := decodedText(s[begin:end]); !ok || Text(raw) == raw {
				end = first // the lines are independent
			}
		}
		out = append(out, []int{begin, end})
		i = end
	}
	return out
}

func (m Masking) maskForm(f secretForm, s string) string {
	return m.replaceMatches(f.findMatches(s), s, func(g []int) (begin, end int, secret string, ok bool) {
		begin, end = g[2*f.secretGroup], g[2*f.secretGroup+1]
		value := s[begin:end]
		secret = strings.Trim(value, "\\\"' \t\r\n")
		switch {
		case !isUnmasked(value), f.isNoSecret != nil && f.isNoSecret(strings.Trim(value, quoteCharacters)):
			return
		case f.needsWordStart && g[0] > 0 && strings.IndexByte(" \t\r\n\"'`(", s[g[0]-1]) < 0:
			return
		}
		if f.nameGroup >= 0 {
			if name := s[g[2*f.nameGroup]:g[2*f.nameGroup+1]]; !secretwords.IsSecret(name) || isSecretPath(name, value) || hasNoSecretContent(name, value) {
				return
			}
		}
		// Keep the quotes.
		for begin < end && strings.IndexByte(quoteCharacters, s[begin]) >= 0 {
			begin++
		}
		for end > begin && strings.IndexByte(quoteCharacters, s[end-1]) >= 0 {
			end--
		}
		return begin, end, secret, true
	})
}

const quoteCharacters = "\"'"

// replaceMatches replaces parts of a text by their masks.
func (m Masking) replaceMatches(matches [][]int, s string, part func(groups []int) (begin, end int, secret string, ok bool)) string {
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
		out.WriteString(m.replacementFor(secret))
		at = end
	}
	out.WriteString(s[at:])
	return out.String()
}
