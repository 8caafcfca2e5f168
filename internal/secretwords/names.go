// SPDX-License-Identifier: Apache-2.0

package secretwords

import (
	"regexp"
	"slices"
	"strings"
)

// Secrecy says whether a name belongs to a secret value.
type Secrecy int

const (
	// NotSecret means that the value is not a secret.
	NotSecret Secrecy = iota
	// MaybeSecret is for names such as secret and token. An object as the value may only name a
	// Secret.
	MaybeSecret
	// AlwaysSecret is for names such as password. Nothing below them is shown, except below a
	// reference.
	AlwaysSecret
)

// secretKeys are suffixes of fields, files, variables and flags that contain secrets: lower case,
// singular, without separators.
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

// referringKeys are suffixes like secretKeys whose object values may refer to Secrets.
var referringKeys = []string{"token", "credential", "cred", "privatekey"}

// nonPasswordSuffixes are suffixes of words that end with pass and are not passwords.
var nonPasswordSuffixes = []string{"bypass", "compass", "encompass", "surpass", "overpass", "underpass", "trespass", "proxypass", "fastcgipass"}

var (
	separators = strings.NewReplacer("-", "", "_", "", ".", "", " ", "")
	// shortPasswordPattern matches PW as a separate word: DB_PW, dbPw, adminpw.
	shortPasswordPattern = regexp.MustCompile(`(?:^|[-_. ])(?i:pw)$|[a-z0-9]P[wW]$|(?i:admin|root|user|db)(?i:pw)$`)
	// shortCodePattern matches PIN and one-time password as separate words: userPin, SIM_PIN, otp.
	shortCodePattern = regexp.MustCompile(`(?:^|[-_. ])(?i:pin|t?otp)$|[a-z0-9](?:P[Ii][Nn]|O[Tt][Pp])$`)
	// secretVariablePattern matches environment variables such as JWT_SECRET; fields such as
	// tlsSecret name a Secret.
	secretVariablePattern = regexp.MustCompile(`^[A-Z0-9_]+_SECRETS?$`)
	// referringVariablePattern matches variables that contain the name of a Secret.
	referringVariablePattern = regexp.MustCompile(`(EXISTING|PULL|TLS)_SECRETS?$`)
	// referringPropertyPattern matches properties that contain the name of a Secret:
	// ingress.tls.secret.
	referringPropertyPattern = regexp.MustCompile(`(?i)(?:existing|pull|tls|cert|certificate|ingress|ref)\.secret$`)
)

// IsSecret reports whether a name belongs to a secret value. Names of kubeconfig files count,
// because their content is a credential.
func IsSecret(name string) bool { return SecrecyOf(name) != NotSecret }

func SecrecyOf(name string) Secrecy {
	name = strings.TrimRight(name, ": ")
	if _, _, ok := NextStem(name, 0); !ok {
		return NotSecret
	}
	if s := secrecyOfWholeName(name); s != NotSecret {
		return s
	}
	if less := withoutSuffix(name); less != "" && less != name {
		return SecrecyOf(less)
	}
	return NotSecret
}

// suffixes of secret names say which secret or which encoding it is, in lower case, after a
// separator. bareSuffixes need no separator.
var (
	suffixes = []string{"txt", "json", "yaml", "yml", "env", "b64", "conf", "properties", "prod", "production", "dev", "development", "stage", "staging", "test", "old", "new",
		"next", "current", "previous", "primary", "secondary", "main", "default", "value", "hash", "hashed", "plain", "raw", "data", "string", "base64", "hex", "encoded",
		"sha", "sha1", "sha256", "sha512", "md5", "bcrypt", "crypt"}
	bareSuffixes = []string{"Value", "Hash", "Plain", "Data", "String", "Base64", "B64", "Hex", "Encoded"}
)

// withoutSuffix returns password for password.txt, TOKEN for TOKEN_2, PASSWORD for PASSWORD_PROD.
func withoutSuffix(name string) string {
	for _, s := range bareSuffixes {
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

// Normalize returns a name in lower case without separators: apikey for api-key, API_KEY and
// apiKey.
func Normalize(name string) string { return strings.ToLower(separators.Replace(name)) }

func secrecyOfWholeName(name string) Secrecy {
	lower := Normalize(name)
	singular := lower
	if !strings.HasSuffix(lower, "ss") {
		singular = strings.TrimSuffix(lower, "s")
	}
	ends := func(s string) bool { return strings.HasSuffix(singular, s) }
	switch {
	case singular == "":
		return NotSecret
	case lower == "kubeconfig", slices.ContainsFunc(secretKeys, ends), strings.HasSuffix(lower, "pw") && shortPasswordPattern.MatchString(name),
		(strings.HasSuffix(lower, "pin") || strings.HasSuffix(lower, "otp")) && shortCodePattern.MatchString(name),
		ends("pass") && !slices.ContainsFunc(nonPasswordSuffixes, ends):
		return AlwaysSecret
	case singular == "secret", ends("secret") && secretVariablePattern.MatchString(name) && !referringVariablePattern.MatchString(name),
		strings.HasSuffix(name, ".secret") && !referringPropertyPattern.MatchString(name):
		return MaybeSecret
	case singular != lower && (strings.HasPrefix(lower, "max") || strings.HasPrefix(lower, "min")):
		return NotSecret // maxTokens counts them
	case slices.ContainsFunc(referringKeys, ends):
		return MaybeSecret
	}
	return NotSecret
}

// IsReference reports whether the value of a field says where a secret is.
func IsReference(key string) bool {
	key = Normalize(key)
	return slices.ContainsFunc([]string{"ref", "refs", "reference", "references", "valuefrom", "secretname", "existingsecret"},
		func(s string) bool { return strings.HasSuffix(key, s) })
}
