package plan

import (
	"regexp"
	"slices"
	"strings"
)

// secrecy is what a name says about the value it names.
type secrecy int

const (
	// shown values are no secrets.
	shown secrecy = iota
	// mayRefer are names such as secret and token: where the value is an object, it may only say which Secret it means.
	mayRefer
	// always are names such as password: nothing below them is shown, except what is below a reference.
	always
)

// secretKeys end the names of fields, files, variables and flags that hold secrets, in lower case without
// separators and plural.
var secretKeys = []string{"password", "passwd", "passphrase", "pwd", "apikey", "secretkey", "accesskey", "accountkey",
	"encryptionkey", "signingkey", "masterkey", "storagekey", "authkey", "hmackey",
	"accesskeyid", "clientsecret", "sharedsecret", "webhooksecret", "apisecret", "appsecret", "jwtsecret", "signingsecret",
	"cookiesecret", "sessionsecret", "consumersecret", "tokensecret", "secretaccesskey", "clientkeydata", "connectionstring",
	"serviceaccountjson", "dockerconfigjson", "dockercfg", "webhookurl", "presharedkey", "psk", "masterauth", "rediscliauth", "bindpw",
	"credentialsecret", "sessionkey", "clientkey", "tlskey", "serverkey", "privkey", "keydata", "unsealkey", "decryptionkey", "cipherkey", "certificatekey", "licensekey",
	"sharedkey", "userkey", "sshkey", "routingkey", "servicekey", "integrationkey", "hostkey", "basicauthuser", "rootpw", "secretkeybase", "appkey"}

// referringKeys are secretKeys below which objects may refer to Secrets.
var referringKeys = []string{"token", "credential", "cred", "privatekey"}

// otherPasses end words that end with pass and mean no password.
var otherPasses = []string{"bypass", "compass", "encompass", "surpass", "overpass", "underpass", "trespass", "proxypass", "fastcgipass"}

var (
	separators = strings.NewReplacer("-", "", "_", "", ".", "", " ", "")
	// shortPassword is PW as a word of its own: DB_PW, dbPw, adminpw.
	shortPassword = regexp.MustCompile(`(?:^|[-_. ])(?i:pw)$|[a-z0-9]P[wW]$|(?i:admin|root|user|db)(?i:pw)$`)
	// secretVariable is a variable of the environment such as JWT_SECRET; fields such as tlsSecret name a Secret.
	secretVariable = regexp.MustCompile(`^[A-Z0-9_]+_SECRETS?$`)
	// secretReference is such a variable with the name of a Secret.
	secretReference = regexp.MustCompile(`(EXISTING|PULL|TLS)_SECRETS?$`)
	// variable is a reference to one, in the forms of Kubernetes and of shells, what a command prints of a file, or a place that Gardener fills.
	variable = regexp.MustCompile(`^\\*["']?(?:\$\([A-Za-z_][A-Za-z0-9_]*\)|\$\{[A-Za-z_][A-Za-z0-9_]*\}|\$[0-9@*]|\$[A-Z][A-Z0-9_]{2,}|\$\((?:cat|<) [^\s()]+\)|<<[A-Z][A-Z0-9_]*>>|` + "`cat [^\\s`]+`" + `)\\*["']?$`)
)

// isSecretKey tells by a name that the value is secret. Names of files with kubeconfigs count: what is in them
// is a credential.
func isSecretKey(name string) bool { return secrecyOf(name) != shown }

func secrecyOf(name string) secrecy {
	name = strings.TrimRight(name, ": ")
	if _, _, ok := stem(name, 0); !ok {
		return shown
	}
	if s := secrecyOfWhole(name); s != shown {
		return s
	}
	if less := withoutSuffix(name); less != "" && less != name {
		return secrecyOf(less)
	}
	return shown
}

// suffixes say of a secret which one it is or how it is written, in lower case after a separator; endings are those that may follow without one.
var (
	suffixes = []string{"txt", "json", "yaml", "yml", "env", "b64", "conf", "properties", "prod", "production", "dev", "development", "stage", "staging", "test", "old", "new",
		"next", "current", "previous", "primary", "secondary", "main", "default", "value", "hash", "hashed", "plain", "raw", "data", "string", "base64", "hex", "encoded"}
	endings = []string{"Value", "Hash", "Plain", "Data", "String", "Base64", "B64", "Hex", "Encoded"}
)

// withoutSuffix is password for password.txt, TOKEN for TOKEN_2, PASSWORD for PASSWORD_PROD.
func withoutSuffix(name string) string {
	for _, s := range endings {
		if less, ok := strings.CutSuffix(name, s); ok {
			return less
		}
	}
	if i := strings.LastIndexAny(name, "-_. "); i > 0 && slices.Contains(suffixes, strings.ToLower(name[i+1:])) {
		return name[:i]
	}
	less := strings.TrimRight(name, "0123456789")
	if less == name {
		return name
	}
	if version, ok := strings.CutSuffix(less, "v"); ok && version != strings.TrimRight(version, "-_. ") {
		less = version
	}
	return strings.TrimRight(less, "-_. ")
}

func secrecyOfWhole(name string) secrecy {
	lower := strings.ToLower(separators.Replace(name))
	singular := lower
	if !strings.HasSuffix(lower, "ss") {
		singular = strings.TrimSuffix(lower, "s")
	}
	ends := func(s string) bool { return strings.HasSuffix(singular, s) }
	switch {
	case singular == "":
		return shown
	case lower == "kubeconfig", slices.ContainsFunc(secretKeys, ends), strings.HasSuffix(lower, "pw") && shortPassword.MatchString(name),
		ends("pass") && !slices.ContainsFunc(otherPasses, ends):
		return always
	case singular == "secret", ends("secret") && secretVariable.MatchString(name) && !secretReference.MatchString(name):
		return mayRefer
	case singular != lower && (strings.HasPrefix(lower, "max") || strings.HasPrefix(lower, "min")):
		return shown // maxTokens counts them
	case slices.ContainsFunc(referringKeys, ends):
		return mayRefer
	}
	return shown
}

// isReferenceKey is true for a field whose value says where a secret is.
func isReferenceKey(key string) bool {
	key = strings.ToLower(separators.Replace(key))
	return slices.ContainsFunc([]string{"ref", "refs", "reference", "references", "valuefrom", "secretname", "existingsecret"},
		func(s string) bool { return strings.HasSuffix(key, s) })
}

// parameters of secrets tell nothing about their values.
var parameters = []string{"algorithm", "size", "encoding", "rotationPolicy", "audience", "audiences", "optional", "mode", "defaultMode", "enabled", "create", "automount"}

// spanName are the ends of names of times, such as the syncPeriod of a controller that is named token.
var spanName = regexp.MustCompile(`(?:Period|Seconds|Interval|Timeout|Duration|Syncs|Workers|Limit|Count)$|^(?:period|seconds|interval|timeout|duration)$`)

// referring are the fields of objects that refer to a Secret or a file.
var referring = []string{"name", "namespace", "kind", "apiVersion", "apiGroup", "path", "mountPath"}

// below is what the value of a key is, in an object that is shown or not. In the configuration of registries of Docker auth is a
// password.
func (s secrecy) below(key, parent string, inRegistry bool) secrecy {
	switch {
	case isReferenceKey(key), isParameter(key) && s != always:
		return shown
	case s == mayRefer && (key == "labels" || key == "annotations" || slices.Contains(referring, key) || key == "key" && parent == "items"):
		return shown
	case key == "auth" && inRegistry:
		return always
	}
	return max(s, secrecyOf(key))
}
