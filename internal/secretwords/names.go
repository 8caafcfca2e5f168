package secretwords

import (
	"regexp"
	"slices"
	"strings"
)

// Secrecy is what a name says about the value it names.
type Secrecy int

const (
	// None: such values are no secrets.
	None Secrecy = iota
	// MayRefer are names such as secret and token: where the value is an object, it may only say
	// which Secret it means.
	MayRefer
	// Always are names such as password: nothing below them is shown, except what is below a
	// reference.
	Always
)

// secretKeys end the names of fields, files, variables and flags that hold secrets, in lower case
// without separators and plural.
var secretKeys = []string{"password", "passwd", "passphrase", "pwd", "apikey", "secretkey", "accesskey", "accountkey",
	"encryptionkey", "signingkey", "masterkey", "storagekey", "authkey", "hmackey",
	"accesskeyid", "clientsecret", "sharedsecret", "webhooksecret", "apisecret", "appsecret", "jwtsecret", "signingsecret",
	"cookiesecret", "sessionsecret", "consumersecret", "tokensecret", "secretaccesskey", "clientkeydata", "connectionstring",
	"serviceaccountjson", "dockerconfigjson", "dockercfg", "webhookurl", "presharedkey", "psk", "masterauth", "rediscliauth", "bindpw",
	"credentialsecret", "sessionkey", "clientkey", "tlskey", "serverkey", "privkey", "keydata", "unsealkey", "decryptionkey", "cipherkey", "certificatekey", "licensekey",
	"sharedkey", "userkey", "sshkey", "routingkey", "servicekey", "integrationkey", "hostkey", "basicauthuser", "rootpw", "modpw", "keybase", "appkey",
	"passcode", "passkey", "pincode", "passcommand", "passwordcommand", "passcmd", "passwordcmd", "passeval", "passwordeval", "encryptkey", "validationkey", "activationkey", "fernetkey",
	"noncekey", "loggedinkey", "gossipkey", "authsalt", "noncesalt", "hashsalt", "loggedinsalt", "erlangcookie", "eabhmac", "authtok", "authident", "secretid", "totpsecret", "otpsecret",
	"securejsondata", "slackapiurl", "sonarlogin", "neo4jauth", "snmpcommunity"}

// referringKeys are secretKeys below which objects may refer to Secrets.
var referringKeys = []string{"token", "credential", "cred", "privatekey"}

// otherPasses end words that end with pass and mean no password.
var otherPasses = []string{"bypass", "compass", "encompass", "surpass", "overpass", "underpass", "trespass", "proxypass", "fastcgipass"}

var (
	separators = strings.NewReplacer("-", "", "_", "", ".", "", " ", "")
	// shortPassword is PW as a word of its own: DB_PW, dbPw, adminpw.
	shortPassword = regexp.MustCompile(`(?:^|[-_. ])(?i:pw)$|[a-z0-9]P[wW]$|(?i:admin|root|user|db)(?i:pw)$`)
	// shortCode is a PIN or a one-time password as a word of its own: userPin, SIM_PIN, otp.
	shortCode = regexp.MustCompile(`(?:^|[-_. ])(?i:pin|t?otp)$|[a-z0-9](?:P[Ii][Nn]|O[Tt][Pp])$`)
	// secretVariable is a variable of the environment such as JWT_SECRET; fields such as tlsSecret
	// name a Secret.
	secretVariable = regexp.MustCompile(`^[A-Z0-9_]+_SECRETS?$`)
	// secretReference is such a variable with the name of a Secret.
	secretReference = regexp.MustCompile(`(EXISTING|PULL|TLS)_SECRETS?$`)
	// namesSecret is such a property: ingress.tls.secret.
	namesSecret = regexp.MustCompile(`(?i)(?:existing|pull|tls|cert|certificate|ingress|ref)\.secret$`)
)

// IsSecret tells by a name that the value is secret. Names of files with kubeconfigs count: what is
// in them is a credential.
func IsSecret(name string) bool { return Of(name) != None }

// Of tells what a name says about its value.
func Of(name string) Secrecy {
	name = strings.TrimRight(name, ": ")
	if _, _, ok := Stem(name, 0); !ok {
		return None
	}
	if s := ofWhole(name); s != None {
		return s
	}
	if less := withoutSuffix(name); less != "" && less != name {
		return Of(less)
	}
	return None
}

// suffixes say of a secret which one it is or how it is written, in lower case after a separator;
// endings are those that may follow without one.
var (
	suffixes = []string{"txt", "json", "yaml", "yml", "env", "b64", "conf", "properties", "prod", "production", "dev", "development", "stage", "staging", "test", "old", "new",
		"next", "current", "previous", "primary", "secondary", "main", "default", "value", "hash", "hashed", "plain", "raw", "data", "string", "base64", "hex", "encoded",
		"sha", "sha1", "sha256", "sha512", "md5", "bcrypt", "crypt"}
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

// Joined is a name in lower case without separators: apikey for api-key, API_KEY and apiKey.
func Joined(name string) string { return strings.ToLower(separators.Replace(name)) }

func ofWhole(name string) Secrecy {
	lower := Joined(name)
	singular := lower
	if !strings.HasSuffix(lower, "ss") {
		singular = strings.TrimSuffix(lower, "s")
	}
	ends := func(s string) bool { return strings.HasSuffix(singular, s) }
	switch {
	case singular == "":
		return None
	case lower == "kubeconfig", slices.ContainsFunc(secretKeys, ends), strings.HasSuffix(lower, "pw") && shortPassword.MatchString(name),
		(strings.HasSuffix(lower, "pin") || strings.HasSuffix(lower, "otp")) && shortCode.MatchString(name),
		ends("pass") && !slices.ContainsFunc(otherPasses, ends):
		return Always
	case singular == "secret", ends("secret") && secretVariable.MatchString(name) && !secretReference.MatchString(name),
		strings.HasSuffix(name, ".secret") && !namesSecret.MatchString(name):
		return MayRefer
	case singular != lower && (strings.HasPrefix(lower, "max") || strings.HasPrefix(lower, "min")):
		return None // maxTokens counts them
	case slices.ContainsFunc(referringKeys, ends):
		return MayRefer
	}
	return None
}

// IsReference is true for a field whose value says where a secret is.
func IsReference(key string) bool {
	key = Joined(key)
	return slices.ContainsFunc([]string{"ref", "refs", "reference", "references", "valuefrom", "secretname", "existingsecret"},
		func(s string) bool { return strings.HasSuffix(key, s) })
}
