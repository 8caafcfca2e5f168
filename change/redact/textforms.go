package redact

import (
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/pergola-dev/pergola/internal/secretwords"
)

// form is a notation of a secret that is recognized by its shape or its context. Its pattern has a
// group "secret", which is hidden, and may have a group "name", which must be the name of a secret.
type form struct {
	// has are lower-case texts. Every match of the pattern has one of them; most texts have none
	// (textmarks.go).
	has     []string
	pattern *regexp.Regexp
	// unless reports whether a match is not a secret.
	unless func(secret string) bool
	// word is set if a match must follow a blank, a quote or the start. Patterns that begin with a
	// fixed text are fast.
	word bool
	// lines is set for a form within one line. Only lines with a text of has that satisfy it are
	// searched.
	lines func(line string) bool
	// secret and name are group numbers; name is -1 for a form without a name.
	secret, name int
}

func written(pattern string, has ...string) form {
	p := regexp.MustCompile(pattern)
	return form{has: has, pattern: p, secret: p.SubexpIndex("secret"), name: p.SubexpIndex("name")}
}

func (f form) asWord() form {
	f.word = true
	return f
}

func (f form) inLines(are func(line string) bool) form {
	f.lines = are
	return f
}

func anyLine(string) bool { return true }

func (f form) unlessIt(is func(string) bool) form {
	f.unless = is
	return f
}

const (
	equals = `\\*["']?\s*[:=]\s*`
	word   = `\\*["']?(?P<name>[A-Za-z][A-Za-z0-9_.-]*)\\*["']?`
	scalar = `(?P<secret>\\*"(?:[^"\\]|\\[^"])*\\*"|'[^']*'|[^\s,}]+)`
	// argument matches an argument of a command line.
	argument = `(?P<secret>"(?:[^"\\]|\\.)*"|'[^']*'|(?:[^\s"'\\|&;<>-]|\\.)(?:[^\s"'\\|&;<>]|\\.)*)`
	// piped matches the output of a command before a pipe.
	piped = `\b(?:echo|printf)\s+(?:-[neE]+\s+)?(?P<secret>"[^"\n]+"|'[^'\n]+'|[^\s|]+)\s*\|[^\n|]*`
	// header matches the value of a header, up to its end in a command or a file.
	header = `(?P<secret>[^\s"',;\\]{4,})`
)

// textForms are tried one after another, the more exact ones first.
var textForms = slices.Concat(generalForms, programForms, deviceForms)

// generalForms are forms of values, addresses, headers and common programs.
var generalForms = []form{
	// Keys and tokens that name their issuer: AWS, GitHub, GitLab, Slack, Google, Stripe, Vault,
	// OpenAI, Hugging Face, SendGrid, npm, PyPI, DigitalOcean; and web tokens.
	written(`\b(?P<secret>(?:AKIA|ASIA)[A-Z0-9]{16})\b`, "akia", "asia"),
	written(`\b(?P<secret>gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,})`, "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"),
	written(`\b(?P<secret>gl(?:pat|rt|dt|ptt|cbt|ft|soat|imt|agent)-[A-Za-z0-9_.-]{12,})`, "glpat-", "glrt-", "gldt-", "glptt-", "glcbt-", "glft-", "glsoat-", "glimt-", "glagent-"),
	written(`\b(?P<secret>xox[abeoprs]-[A-Za-z0-9-]{10,}|xapp-[A-Za-z0-9-]{10,})`, "xox", "xapp-"),
	written(`\b(?P<secret>AIza[A-Za-z0-9_-]{30,}|ya29\.[A-Za-z0-9_-]{20,}|GOCSPX-[A-Za-z0-9_-]{20,})`, "aiza", "ya29.", "gocspx-"),
	written(`\b(?P<secret>[sr]k_(?:live|test)_[A-Za-z0-9]{10,}|whsec_[A-Za-z0-9]{10,}|sk-(?:proj-|ant-)?[A-Za-z0-9_-]{20,}|hf_[A-Za-z0-9]{20,}|SG\.[A-Za-z0-9_-]{15,}\.[A-Za-z0-9_-]{15,}|`+
		`hv[sb]\.[A-Za-z0-9_-]{20,}|npm_[A-Za-z0-9]{20,}|pypi-[A-Za-z0-9_-]{20,}|do[opr]_v1_[a-f0-9]{20,}|dckr_pat_[A-Za-z0-9_-]{10,})`,
		"k_live_", "k_test_", "whsec_", "sk-", "hf_", "sg.", "hvs.", "hvb.", "npm_", "pypi-", "_v1_", "dckr_pat_"),
	written(`\b(?P<secret>eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*)`, "eyj"),
	written(`(?i)hooks\.slack\.com/(?:services|workflows|triggers)/(?P<secret>[^\s"']+)`, "hooks.slack.com"),
	written(`(?i)discord(?:app)?\.com/api/webhooks/(?P<secret>[^\s"']+)`, "api/webhooks"),
	written(`(?i)webhook\.office\.com/webhookb2/(?P<secret>[^\s"']+)`, "webhook.office.com"),
	written(`(?i)api\.telegram\.org/bot(?P<secret>[^\s/"']+)`, "api.telegram.org"),
	written(`(?i)\.azurewebsites\.net/[^\s"'?]*\?(?:[^\s"']*&)?code=(?P<secret>[^&\s"']+)`, "azurewebsites.net"),
	// Hashes of passwords, which can be guessed: crypt, htpasswd, LDAP.
	written(`\$(?P<secret>(?:apr1|1|5|6|7|2[abxy]?|y|gy|argon2(?:id|i|d)|scrypt|pbkdf2[a-z0-9-]*)\$[^\s:"']+)`, "$apr1$", "$1$", "$5$", "$6$", "$7$", "$2", "$y$", "$gy$", "$argon2", "$scrypt$", "$pbkdf2"),
	written(`(?P<secret>\{(?:S?SHA(?:256|384|512)?|S?MD5|CRYPT)\}[A-Za-z0-9+/=$.]{8,})`, "sha}", "sha256}", "sha384}", "sha512}", "md5}", "{crypt}"),

	// Credentials in addresses. A port with a path is not a credential.
	written(`://(?P<secret>[^\s:/?#"'<>@]*:[^\s"'<>]*)@`, "@").unlessIt(portAndPath.MatchString),
	written(`://(?P<secret>[^\s/?#"']*)@`, "@").unlessIt(func(s string) bool { return s == "git" || s == "hg" }),
	written(`(?i)\bjdbc:oracle:[a-z0-9]+:[^\s/@:]*/(?P<secret>[^\s@"']+)@`, "jdbc:oracle"),
	written(`\b[A-Za-z0-9_.-]+:(?P<secret>[^\s@"'/]+)@(?:tcp|udp|unix)\(`, "@tcp(", "@udp(", "@unix("),
	written(`(?i)[?&](?:key|sig|signature|auth|x-amz-signature|x-amz-security-token|x-goog-signature)=(?P<secret>[^&\s"'\\#]+)`,
		"?key=", "&key=", "sig=", "signature=", "?auth=", "&auth=", "x-amz-security-token="),

	// Headers, in requests and in the configuration of servers.
	written(`(?i)\bauthorization\\*["']?\s*[:=,]?\s*\\*["']?(?:basic|bearer|token|digest|negotiate|apikey|api-key|key|bot)\s+`+header, "authorization"),
	written(`(?i)["']authorization:\s*(?:[a-z-]+\s+)?`+header, "authorization"),
	written(`(?i)\b(?:bearer|basic)\s+(?P<secret>[A-Za-z0-9._~+/=-]{20,})`, "bearer", "basic"),
	written(`(?i)(?:^|[\s"'])(?:set-)?cookie:[ \t]*(?P<secret>[^\s=;"']+=[^\r\n"']+)`, "cookie:"),
	written(`(?i)\b(?:proxy_set_header|add_header|(?:set|add)-header)[ \t]+(?P<name>[A-Za-z][A-Za-z0-9_-]*)[ \t]+["']?`+header,
		"_header", "set-header", "add-header").inLines(anyLine),
	written(`(?i)^[ \t]*(?:request)?header(?:[ \t]+(?:set|add|append|merge|setifempty|always))*[ \t]+(?P<name>[A-Za-z][A-Za-z0-9_-]*)[ \t]+["']?`+header, "header ", "header\t").inLines(anyLine),

	// Arguments of programs.
	written(`-u ?(?P<secret>"[^\s:"=/-][^\s:"/]*:[^"]+"|'[^\s:'=/-][^\s:'/]*:[^']+'|[^\s:"'=/-][^\s:"'/]*:[^\s"']+)`, "-u").unlessIt(isUserAndGroup).asWord(),
	written(`--(?:proxy-)?user[ =](?P<secret>"[^\s:"=/-][^\s:"/]*:[^"]+"|'[^\s:'=/-][^\s:'/]*:[^']+'|[^\s:"'=/-][^\s:"'/]*:[^\s"']+)`, "user").unlessIt(isUserAndGroup).asWord(),
	written(`\bredis-cli\b[^\n|;&]*?\s-a[ \t]*`+argument, "redis-cli"),
	written(`\b(?:docker|podman|nerdctl|helm|oras|crane|skopeo|oc|az|buildah)\b[^\n|;&]*?\blogin\b[^\n|;&]*?\s-p[ \t]*`+argument, "login"),
	written(`\b(?:useradd|usermod)\b[^\n|;&]*?\s-p[ \t]*`+argument, "useradd", "usermod"),
	written(`\bldap(?:search|add|modify|delete|passwd|whoami|compare)\b[^\n|;&]*?\s-w[ \t]*`+argument, "ldap"),
	written(`\bopenssl\b[^\n|;&]*?\s-k[ \t]+`+argument, "openssl"),
	written(`--from-literal[= ]["']?[A-Za-z0-9._-]+=`+argument, "create secret"),
	written(`\bhtpasswd\s+-[A-Za-z]*b[A-Za-z]*(?:\s+-[A-Za-z]+)*(?:\s+\S+){1,2}?\s+`+argument+`[ \t]*(?:[|;&\n]|$)`, "htpasswd"),
	written(`\b(?:smbclient|rpcclient|net)\b[^\n|;&]*?\s-U[ \t]*[^\s%]+%(?P<secret>[^\s"']+)`, "smbclient", "rpcclient", "net ads", "net rpc"),
	written(`\bnet\s+user\s+[^\s/]+\s+(?P<secret>[^\s/*]\S*)`, "net user"),
	written(`\bvault\s+login\s+(?:-[^\s=]+(?:=\S*)?\s+)*`+argument, "vault login"),
	written(`(?m)\becho\s+(?:-[neE]+\s+)?["']?[^\s:"'|]+:(?P<secret>[^\n"'|]+?)["']?\s*\|[^\n|]*\bchpasswd`, "chpasswd"),
	written(`\bchpasswd\b[^\n]*<<-?["']?\w+["']?\n(?P<secret>(?s:.+?))\n\w+`, "chpasswd"),
	written(`(?m)`+piped+`(?:--password-stdin|--stdin|\bsshpass\b|\bpasswd\b|\bcryptsetup\b)`, "stdin", "sshpass", "passwd", "cryptsetup"),
	written(`(?:--password-stdin|--stdin|passwd)\b[^\n|]*<<<\s*(?P<secret>"[^"]+"|'[^']+'|\S+)`, "<<<"),

	// Lines of configuration.
	written(`(?m)^[ \t]*stats[ \t]+auth[ \t]+[^\s:]+:(?P<secret>\S+)`, "stats"),
	written(`(?m)^[ \t]*createUser[ \t]+\S+[ \t]+\w+[ \t]+(?P<secret>.+)$`, "createuser"),
	written(`(?m)^[ \t]*user[ \t]+\S+[ \t]+(?:\S+[ \t]+)*?>(?P<secret>\S+)`, ">").inLines(func(line string) bool { return strings.HasPrefix(strings.TrimLeft(line, " \t"), "user") }),
	written(`(?m)^(?:\S+:[0-9]+|[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+)[ \t]+[^\s:/]+:(?P<secret>\S+)[ \t]*$`, ":").unlessIt(versionOrPort.MatchString).inLines(func(line string) bool { return strings.Contains(line, ":") && len(strings.Fields(line)) == 2 }),
	written(`\bdb\.auth\(\s*["'][^"']*["']\s*,\s*["'](?P<secret>[^"']+)`, "db.auth"),
	written(`(?i)\bvariable\s+"(?P<name>[A-Za-z0-9_-]+)"\s*\{[^}]*?\bdefault\s*=\s*"(?P<secret>[^"\n]*)"`, "variable"),
	written(`\blogin\s+\S+\s+password\s+(?P<secret>\S+)`, "login"),
	written(`(?i)\buser[ \t]+\S+[ \t]+(?:insecure-)?password[ \t]+(?P<secret>\S+)`, "user ", "user\t").inLines(anyLine),
	written(`(?m)^[^\s:#]+:(?:[0-9]+|\*):[^:\s]+:[^:\s]+:(?P<secret>(?:\\.|[^\s:\\])+)[ \t]*$`, ":").inLines(func(line string) bool { return strings.Count(line, ":") >= 4 && len(strings.Fields(line)) == 1 }),
	written(`(?m)^[ \t]*r[ow]community6?[ \t]+(?P<secret>\S+)`, "community"),
	written(`\b(?:PSK|XAUTH|EAP)[ \t]+["'](?P<secret>[^"'\n]+)`, "psk", "xauth", "eap"),
	written(`//[^\s:]+/:_(?:authToken|auth|password)=(?P<secret>\S+)`, ":_"),
	written(`(?m)^[ \t]*_auth[ \t]*=[ \t]*(?P<secret>\S+)`, "_auth"),
	written(`\bauth\\*["']?[ \t]*[:=][ \t]*\\*["'](?P<secret>[A-Za-z0-9+/=]{8,})`, "auth").unlessIt(func(s string) bool { _, ok := decodedAuth(s); return !ok }),
	written(`(?i)\b(?:identified(?:[ \t]+with[ \t]+\S+)?[ \t]+(?:by|as)|password)(?:[ \t]+(?:encrypted[ \t]+)?|[ \t]*\()['"](?P<secret>[^'"\n]+)`, "identified", "password '", `password "`, "password(", "password (", "encrypted '").inLines(anyLine),
	written(`(?i)\bdefine\(\s*["'](?P<name>[A-Za-z0-9_]+)["']\s*,\s*["'](?P<secret>[^"'\n]*)`, "define("),

	written(`(?m)^[ \t]*["']?user_[A-Za-z0-9]+["']?[ \t]*=[ \t]*"(?P<secret>[^"\n]+)"`, "user_"),

	// XML, and items with a name and a value, in both orders.
	written(`<(?P<name>[A-Za-z][A-Za-z0-9_.:-]*)(?:\s[^<>]*)?>\s*<!\[CDATA\[(?P<secret>(?s:.*?))\]\]>`, "cdata"),
	written(`<(?P<name>[A-Za-z][A-Za-z0-9_.:-]*)(?:\s[^<>]*)?>(?P<secret>[^<]+)</`, "</"),
	written(`<(?P<name>[A-Za-z][A-Za-z0-9_.:-]*)(?:\s[^<>]*)?>\s*<[A-Za-z][A-Za-z0-9_.:-]*>(?P<secret>[^<]+)</`, "</"),
	written(`(?i)<[a-z]+\s+(?:name|key|id)=["'](?P<name>[A-Za-z][A-Za-z0-9_.-]*)["'][^<>]*>\s*(?:<value>)?(?P<secret>[^<]+)</`, "</"),
	written(`(?i)<(?:name|key)>\s*(?P<name>[A-Za-z][A-Za-z0-9_.-]*)\s*</(?:name|key)>\s*<(?:value|string|data)>(?P<secret>[^<]+)</`, "<value>", "<string>", "<data>"),
	written(`(?i)\b(?:name|key)`+equals+word+`\s*,?\s*\\*["']?value`+equals+scalar, "value"),
	written(`(?i)\bvalue`+equals+scalar+`\s*,?\s*\\*["']?(?:name|key)`+equals+word, "value"),

	// A token in the prose of an error: mixed letters and digits after the word.
	written(`(?i)\b(?:token|password)\s+["']?(?P<secret>[A-Za-z0-9_.-]*[0-9][A-Za-z0-9_.-]*)`, "token", "password").
		unlessIt(func(s string) bool { return len(s) < 12 }).inLines(func(line string) bool { return strings.ContainsAny(line, "0123456789") }),
	written(`(?i)\b(?:token|password|passphrase)\s+(?:is|was)\s+["']?(?P<secret>[^\s"']*[0-9][^\s"']*)`,
		"token is", "token was", "password is", "password was", "passphrase is", "passphrase was").inLines(anyLine),
}

var (
	// userAndGroup matches arguments of programs such as chown.
	userAndGroup = regexp.MustCompile(`^(?:nobody|www-data|[0-9]+):[a-z_-]*[0-9]*$`)
	numbers      = regexp.MustCompile(`^[0-9]+(:[0-9]+)*$`)
	// versionOrPort matches the text after a colon in image names and addresses.
	versionOrPort = regexp.MustCompile(`^(?:v?[0-9][0-9.]*(?:[-+/].*)?|latest)$`)
	portAndPath   = regexp.MustCompile(`^[^:]*:[0-9]+(?:[/?#]|$)`)
	// client matches a program that takes a password after -p.
	client = regexp.MustCompile(`(?:^|[\s/"'])(?:mysql[a-z_]*|mariadb[a-z-]*|mongo[a-z]*|sshpass)\b`)
	// login matches a program with a login command.
	login        = regexp.MustCompile(`^(?:.*/)?(?:docker|podman|nerdctl|helm|oras|crane|skopeo|oc|az|buildah)$`)
	passwordFlag = written(`(?:^|\s)-p ?(?P<secret>"[^"]*"|'[^']*'|[^\s"'=-][^\s"']*)`)
	// shortFlag matches -p with its value in one argument, but not long flags, numbers and ports.
	shortFlag = regexp.MustCompile(`^-p([^=\s]*[^A-Za-z=\s:-][^=\s]*)$`)
	// escapedJSON matches JSON in an address.
	escapedJSON = regexp.MustCompile(`[^\s"'&]*%22[^\s"'&]*`)
	dataURLs    = regexp.MustCompile(`\bdata:[A-Za-z0-9/+.;=-]*,([^\s"']+)`)
)

func isUserAndGroup(s string) bool { return numbers.MatchString(s) || userAndGroup.MatchString(s) }

// forms masks secrets by their form.
func (m Masking) forms(s string) string {
	lower := strings.ToLower(s)
	_, _, names := secretwords.NextStem(s, 0)
	for i, is := range marks.in(lower) {
		if f := textForms[i]; is && (f.name < 0 || names) {
			s = m.form(f, s)
		}
	}
	if hasAny(lower, "mysql", "mariadb", "mongo", "sshpass") && client.MatchString(s) {
		s = m.form(passwordFlag, s)
	}
	s = m.found(encodedParts(s), s, func(g []int) (begin, end int, secret string, ok bool) {
		raw, decodes := decodedText(s[g[0]:g[1]])
		return g[0], g[1], raw, decodes && Text(raw) != raw
	})
	s = m.found(bootstrapTokens(s), s, func(g []int) (begin, end int, secret string, ok bool) { return g[0], g[1], s[g[0]:g[1]], true })
	if strings.Contains(lower, "%22") {
		s = m.found(escapedJSON.FindAllStringIndex(s, -1), s, func(g []int) (begin, end int, secret string, ok bool) {
			raw, err := url.PathUnescape(s[g[0]:g[1]])
			return g[0], g[1], raw, err == nil && Text(raw) != raw
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

// bootstrapTokens finds tokens of kubeadm and Gardener: 6 letters and digits, a point, and 16 more.
func bootstrapTokens(s string) (out [][]int) {
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

// encodedParts finds parts of a text that may be base64, in one line or in consecutive lines.
func encodedParts(s string) (out [][]int) {
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
			next = skip(s, next+1, " \t")
			if n := run(next); n-next >= 4 {
				end = n
				continue
			}
			break
		}
		end, first = skip(s, end, "="), skip(s, first, "=")
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

func (m Masking) form(f form, s string) string {
	return m.found(f.matches(s), s, func(g []int) (begin, end int, secret string, ok bool) {
		begin, end = g[2*f.secret], g[2*f.secret+1]
		value := s[begin:end]
		secret = strings.Trim(value, "\\\"' \t\r\n")
		switch {
		case !unmasked(value), f.unless != nil && f.unless(strings.Trim(value, quotes)):
			return
		case f.word && g[0] > 0 && strings.IndexByte(" \t\r\n\"'`(", s[g[0]-1]) < 0:
			return
		}
		if f.name >= 0 {
			if name := s[g[2*f.name]:g[2*f.name+1]]; !secretwords.IsSecret(name) || isPath(name, value) || saysNothing(name, value) {
				return
			}
		}
		// Keep the quotes.
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

// found replaces parts of a text by their masks.
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
