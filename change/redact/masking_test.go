// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// secretTexts are secrets as people write them into ConfigMaps, scripts and annotations. Every text
// has hunter2, and no output may show it.
var secretTexts = map[string]struct{ text, visible string }{
	"flag":                   {"server --port=80 --password=hunter2 --verbose", "--verbose"},
	"flag and word":          {"server --token hunter2x --verbose", "--verbose"},
	"flag in quotes":         {`server --password "hunter2 with space" --verbose`, "--verbose"},
	"flag in single quotes":  {`server --password='hunter2 with space' --verbose`, "--verbose"},
	"flag of Go":             {"server -password=hunter2 -port=80", "-port=80"},
	"flag with user":         {"server --db-user-password=hunter2", "server"},
	"redis":                  {"redis-cli -h host -a hunter2 ping", "-h host"},
	"redis variable":         {"REDISCLI_AUTH=hunter2 redis-cli ping", "REDISCLI_AUTH"},
	"requirepass":            {"port 6379\nrequirepass hunter2\nmasterauth hunter2\nmaxmemory 1gb\n", "maxmemory 1gb"},
	"psql":                   {"PGPASSWORD=hunter2 psql -h host", "-h host"},
	"mysql":                  {"mysql -h host -u root -phunter2 -e 'select 1'", "-h host"},
	"mysqldump":              {"/usr/bin/mysqldump --user=root --password=hunter2 db", "--user=root"},
	"curl":                   {"curl -s -u admin:hunter2 https://example.com/x", "https://example.com/x"},
	"curl together":          {"curl -uadmin:hunter2 https://example.com/x", "https://example.com/x"},
	"curl long":              {"curl --user 'admin:hunter2' https://example.com/x", "https://example.com/x"},
	"curl header":            {`curl -H "Authorization: Bearer hunter2hunter2" https://example.com/x`, "https://example.com/x"},
	"curl short header":      {`curl -H 'Authorization: Basic hunter2aHVudGVyMg==' https://example.com/x`, "https://example.com/x"},
	"header of a key":        {`curl -H "X-Api-Key: hunter2" https://example.com/x`, "https://example.com/x"},
	"header of a token":      {"X-Vault-Token: hunter2\nAccept: text/plain\n", "Accept: text/plain"},
	"PRIVATE-TOKEN":          {`curl --header "PRIVATE-TOKEN: hunter2" https://gitlab.example.com/x`, "gitlab.example.com"},
	"authorization token":    {"Authorization: token hunter2\nAccept: a\n", "Accept: a"},
	"cookie":                 {"Cookie: session=hunter2; theme=dark\nAccept: a\n", "Accept: a"},
	"URL":                    {"postgres://user:hunter2@host:5432/db?sslmode=require", "host:5432/db"},
	"URL without user":       {"redis://:hunter2@host:6379/0", "host:6379/0"},
	"URL with a token":       {"https://oauth2:hunter2@gitlab.example.com/a.git", "gitlab.example.com/a.git"},
	"URL with @":             {"amqp://user:hun@ter2hunter2@host:5672/v", "host:5672/v"},
	"URL with a slash":       {"amqp://user:a/hunter2@host:5672/v", "host:5672/v"},
	"URL with a hash":        {"mongodb://user:a#hunter2@host:27017/v", "host:27017/v"},
	"MongoDB":                {"mongodb+srv://user:hunter2@a.example.com,b.example.com/db", "b.example.com/db"},
	"URL parameter":          {"https://example.com/x?user=a&access_token=hunter2&b=c", "b=c"},
	"URL key":                {"https://example.com/x?key=hunter2&b=c", "b=c"},
	"JDBC":                   {"jdbc:postgresql://host/db?user=fred&password=hunter2&ssl=true", "ssl=true"},
	"JDBC of Oracle":         {"jdbc:oracle:thin:scott/hunter2@//host:1521/x", "host:1521/x"},
	"JDBC of SQL Server":     {"jdbc:sqlserver://host:1433;databaseName=d;user=u;password=hunter2;encrypt=true", "encrypt=true"},
	"ADO":                    {"Server=tcp:host,1433;Initial Catalog=d;User ID=u;Password=hunter2;Encrypt=True;", "Encrypt=True"},
	"ADO in quotes":          {`Server=host;Password="hunter2;hunter2";Encrypt=True`, "Encrypt=True"},
	"ADO with equals":        {"Server=host;Pwd=hunter2=x;Encrypt=True", "Encrypt=True"},
	"libpq":                  {"host=h port=5432 user=u password='hunter2 x' dbname=d", "dbname=d"},
	"MySQL of Go":            {"user:hunter2@tcp(host:3306)/db?parseTime=true", "tcp(host:3306)/db"},
	"service bus":            {"Endpoint=sb://h/;SharedAccessKeyName=n;SharedAccessKey=hunter2=;EntityPath=e", "EntityPath=e"},
	"Docker":                 {`{"auths":{"registry.example.com":{"username":"u","password":"hunter2","auth":"dTpodW50ZXIy"}}}`, "registry.example.com"},
	"Docker auth":            {`{"auths":{"registry.example.com":{"auth":"hunter2aHVudGVyMg=="}}}`, "registry.example.com"},
	"npmrc":                  {"registry=https://r.example.com/\n//r.example.com/:_authToken=hunter2\n", "registry="},
	"npmrc auth":             {"registry=https://r.example.com/\n_auth=hunter2\n", "registry="},
	"pypirc":                 {"[pypi]\nusername = u\npassword = hunter2\n", "username = u"},
	"netrc":                  {"machine example.com\nlogin shown\npassword hunter2\n", "login shown"},
	"netrc in a line":        {"machine example.com login shown password hunter2", "login shown"},
	"git credentials":        {"https://user:hunter2@github.com\n", "github.com"},
	"pgpass":                 {"host:5432:db:user:hunter2\n", "host"},
	"htpasswd":               {"admin:$apr1$hunter2$abcdefghijklmnopqrstuv\n", "admin"},
	"htpasswd of bcrypt":     {"admin:$2y$05$hunter2hunter2hunter2hunter2hunter2hunter2hunter2hunt\n", "admin"},
	"shadow":                 {"root:$6$hunter2$hunter2hunter2:19000:0:99999:7:::\n", "root"},
	"kubeconfig":             {"apiVersion: v1\nkind: Config\nclusters: [{name: shown}]\nusers:\n- name: u\n  user:\n    token: hunter2\n", "shown"},
	"kubeconfig certificate": {"kind: Config\nusers:\n- name: shown\n  user: {client-key-data: hunter2}\n", "shown"},
	"kubeconfig password":    {"kind: Config\nusers:\n- name: shown\n  user:\n    username: a\n    password: hunter2\n", "shown"},
	"kubeconfig arguments":   {"kind: Config\nusers:\n- name: shown\n  user: {exec: {command: a, args: [--client-secret, hunter2]}}\n", "shown"},
	"properties":             {"spring.datasource.url=jdbc:x\nspring.datasource.password=hunter2\nserver.port=8080\n", "server.port=8080"},
	"properties with colon":  {"db.password: hunter2\nserver.port: 8080\n", "server.port: 8080"},
	"properties with space":  {"db.password hunter2\nserver.port 8080\n", "server.port 8080"},
	"properties in lines":    {"db.password=abc\\\n  hunter2\nserver.port=8080\n", "server.port=8080"},
	"INI":                    {"[db]\nhost = shown\npassword = hunter2 and more\n", "host = shown"},
	"TOML":                   {"[db]\nhost = \"shown\"\npassword = \"hunter2\"\n", "shown"},
	"TOML in lines":          {"[db]\nhost = \"shown\"\npassword = \"\"\"\nhunter2\n\"\"\"\n[x]\n", "shown"},
	"TOML list":              {"tokens = [\n  \"hunter2\",\n  \"hunter2b\",\n]\nhost = \"shown\"\n", "shown"},
	"HCL":                    {"provider \"x\" {\n  user     = \"shown\"\n  password = \"hunter2\"\n}\n", "shown"},
	"HCL heredoc":            {"x = {\n  user = \"shown\"\n  password = <<-EOT\n    hunter2\n  EOT\n}\n", ""},
	"XML attribute":          {`<datasource user="shown" password="hunter2"/>`, "shown"},
	"XML element":            {"<server><username>shown</username><password>hunter2</password></server>", "shown"},
	"XML CDATA":              {"<server><username>shown</username><password><![CDATA[hunter2]]></password></server>", "shown"},
	"XML property":           {`<property name="password" value="hunter2"/><property name="a" value="shown"/>`, "shown"},
	"XML property in lines":  {"<property>\n  <name>fs.s3a.secret.key</name>\n  <value>hunter2</value>\n</property>\n<a>shown</a>", "shown"},
	"nginx":                  {"location / {\n  proxy_set_header Authorization \"Basic hunter2hunter2\";\n  proxy_pass http://shown;\n}\n", "shown"},
	"nginx token":            {"proxy_set_header X-Api-Key hunter2;\nproxy_pass http://shown;\n", "shown"},
	"apache":                 {"RequestHeader set X-Auth-Token \"hunter2\"\nProxyPass / http://shown/\n", "shown"},
	"haproxy":                {"userlist u\n  user admin insecure-password hunter2\nbackend shown\n", "shown"},
	"PEM":                    {"a: 1\n-----BEGIN EC PRIVATE KEY-----\nhunter2\n-----END EC PRIVATE KEY-----\n", ""},
	"PGP":                    {"-----BEGIN PGP PRIVATE KEY BLOCK-----\n\nhunter2\n-----END PGP PRIVATE KEY BLOCK-----\n", ""},
	"SSH":                    {"-----BEGIN OPENSSH PRIVATE KEY-----\nhunter2\n-----END OPENSSH PRIVATE KEY-----\n", ""},
	"PEM in a line":          {`{"a": "-----BEGIN PRIVATE KEY-----\\nhunter2\\n-----END PRIVATE KEY-----"}`, ""},
	"age":                    {"AGE-SECRET-KEY-1HUNTER2QQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQ", ""},
	"GCP":                    {`{"type": "service_account", "project_id": "shown", "private_key_id": "1", "private_key": "hunter2", "client_email": "a@example.com"}`, "shown"},
	"AWS file":               {"[default]\naws_access_key_id = AKIAIOSFODNN7EXAMPLE\naws_secret_access_key = hunter2\nregion = shown\n", "shown"},
	"AWS session":            {"AWS_SESSION_TOKEN=hunter2\nAWS_REGION=shown\n", "shown"},
	"Azure":                  {"DefaultEndpointsProtocol=https;AccountName=shown;AccountKey=hunter2==;EndpointSuffix=core.windows.net", "shown"},
	"Azure file":             {`{"subscriptionId": "shown", "aadClientId": "a", "aadClientSecret": "hunter2"}`, "shown"},
	"OpenStack":              {"[Global]\nauth-url=https://shown\nusername=u\npassword=\"hunter2\"\n", "shown"},
	"application credential": {"application-credential-id=shown\napplication-credential-secret=hunter2\n", "shown"},
	"shell":                  {"#!/bin/sh\nexport DB_PASSWORD=hunter2\nexport DB_HOST=shown\n", "DB_HOST=shown"},
	"shell default":          {"#!/bin/sh\n: ${DB_PASSWORD:=hunter2}\nexport DB_HOST=shown\n", "DB_HOST=shown"},
	"shell default in place": {"#!/bin/sh\nrun \"${DB_PASSWORD:-hunter2}\"\nexport DB_HOST=shown\n", "DB_HOST=shown"},
	"shell quoted":           {"#!/bin/sh\nDB_PASSWORD='hunter2 x'\nDB_HOST=shown\n", "DB_HOST=shown"},
	"shell join":             {"#!/bin/sh\nDB_PASSWORD=\"a\"'hunter2'\nDB_HOST=shown\n", "DB_HOST=shown"},
	"chpasswd":               {"#!/bin/sh\necho \"root:hunter2\" | chpasswd\necho shown\n", "echo shown"},
	"login by pipe":          {"#!/bin/sh\necho hunter2 | docker login -u a --password-stdin r\necho shown\n", "echo shown"},
	"heredoc of a script":    {"#!/bin/sh\ncat > /etc/app.conf <<EOF\nhost=shown\npassword=hunter2\nEOF\n", "shown"},
	"heredoc of YAML":        {"#!/bin/sh\ncat > /etc/app.yaml <<'EOF'\nhost: shown\npassword:\n  - hunter2\nEOF\n", "shown"},
	"setx":                   {"setx DB_PASSWORD hunter2\nsetx DB_HOST shown\n", "shown"},
	"Dockerfile":             {"FROM a\nENV DB_PASSWORD hunter2\nENV A shown\n", "shown"},
	"cloud-init":             {"#cloud-config\nchpasswd:\n  list: |\n    root:hunter2\nhostname: shown\n", "shown"},
	"cloud-init user":        {"#cloud-config\nusers:\n- name: shown\n  passwd: hunter2\n  hashed_passwd: $6$hunter2\n  plain_text_passwd: hunter2\n", "shown"},
	"cloud-init file":        {"#cloud-config\nwrite_files:\n- path: /shown\n  content: |\n    password=hunter2\n", "/shown"},
	"cloud-init base64":      {"#cloud-config\nwrite_files:\n- path: /shown\n  encoding: b64\n  content: " + base64.StdEncoding.EncodeToString([]byte("password=hunter2\n")) + "\n", "/shown"},
	"ignition":               {`{"storage":{"files":[{"path":"/shown","contents":{"source":"data:,password%3Dhunter2"}}]}}`, "/shown"},
	"JavaScript":             {"module.exports = { host: 'shown', password: 'hunter2', port: 1 }\n", "shown"},
	"Python":                 {"DATABASES = {'default': {'HOST': 'shown', 'PASSWORD': 'hunter2'}}\n", "shown"},
	"PHP":                    {"<?php define('DB_PASSWORD', 'hunter2'); define('DB_HOST', 'shown');\n", "shown"},
	"PHP array":              {"<?php return ['host' => 'shown', 'password' => 'hunter2'];\n", "shown"},
	"Ruby":                   {"production:\n  host: shown\n  password: <%= ENV['X'] || 'hunter2' %>\n", "shown"},
	"Go template":            {"host: {{ .Host }}\npassword: {{ .Password | default \"hunter2\" }}\nport: shown\n", "shown"},
	"Prometheus":             {"scrape_configs:\n- job_name: shown\n  basic_auth: {username: u, password: hunter2}\n  authorization: {credentials: hunter2}\n", "shown"},
	"Alertmanager":           {"global:\n  slack_api_url: https://hooks.slack.com/services/T00/B00/hunter2\n  smtp_auth_password: hunter2\n  smtp_from: shown\n", "shown"},
	"Slack":                  {"url = https://hooks.slack.com/services/T000/B000/hunter2hunter2\nname = shown\n", "shown"},
	"GitHub":                 {"remote = ghp_hunter2hunter2hunter2hunter2hunter2abc\nname = shown\n", "shown"},
	"GitHub fine":            {"remote = github_pat_hunter2hunter2hunter2_hunter2hunter2abc\nname = shown\n", "shown"},
	"GitLab":                 {"remote = glpat-hunter2hunter2abcdef\nname = shown\n", "shown"},
	"Slack token":            {"remote = xoxb-123456789012-hunter2hunter2\nname = shown\n", "shown"},
	"Google":                 {"remote = AIzaSyAhunter2hunter2hunter2hunter2hun012\nname = shown\n", "shown"},
	"JWT":                    {"remote = eyJhbGciOiJSUzI1NiJ9.eyJpc3Miohunter2.hunter2hunter2hunter2\nname = shown\n", "shown"},
	"Stripe":                 {"remote = sk_live_hunter2hunter2hunter2\nname = shown\n", "shown"},
	"WireGuard":              {"[Interface]\nPrivateKey = hunter2=\nAddress = shown\n[Peer]\nPresharedKey = hunter2=\n", "shown"},
	"IPsec":                  {"shown : PSK \"hunter2\"\n", "shown"},
	"wpa":                    {"network={\n  ssid=\"shown\"\n  psk=\"hunter2\"\n}\n", "shown"},
	"Kerberos":               {"kinit_password=hunter2\nrealm=shown\n", "shown"},
	"LDAP":                   {"bindDN: shown\nbindPW: hunter2\n", "shown"},
	"LDAP of Java":           {"ldap.bind.credential=hunter2\nldap.url=shown\n", "shown"},
	"JAAS":                   {"org.apache.kafka.PlainLoginModule required username=\"shown\" password=\"hunter2\";", "shown"},
	"SNMP":                   {"rocommunity hunter2 10.0.0.0/8\nsysname shown\n", "shown"},
	"query":                  {"CREATE USER shown IDENTIFIED BY 'hunter2';", "shown"},
	"query of Postgres":      {"ALTER ROLE shown WITH PASSWORD 'hunter2';", "shown"},
	"multi-line YAML":        {"a:\n  password: >-\n    one\n\n    hunter2\n  b: shown\n", "b: shown"},
	"YAML tag":               {"password: !!str hunter2\nb: shown\n", "b: shown"},
	"YAML key in quotes":     {"\"pass\\x77ord\": hunter2\nb: shown\n", "b: shown"},
	"YAML complex key":       {"? password\n: hunter2\nb: shown\n", "b: shown"},
	"YAML merge":             {"x: &x {password: hunter2}\ny: {<<: *x, b: shown}\n", "shown"},
	"JSON escape":            {`{"pass\u0077ord": "hunter2", "b": "shown"}`, "shown"},
	"base64 of a text":       {base64.StdEncoding.EncodeToString([]byte("host: a\npassword: hunter2\nthis: is long enough\n")), ""},
	"base64 in lines":        {"a: |\n  " + wrapLines(base64.StdEncoding.EncodeToString([]byte("host: a\npassword: hunter2\nthis: is long enough for two lines of base64\n")), 40, "\n  ") + "\nb: shown\n", "shown"},
}

func wrapLines(text string, width int, with string) string {
	var out []string
	for len(text) > width {
		out, text = append(out, text[:width]), text[width:]
	}
	return strings.Join(append(out, text), with)
}

func TestSecretsInHandwrittenTexts(t *testing.T) {
	for name, c := range secretTexts {
		t.Run(name, func(t *testing.T) {
			got := NewMasking([]byte("key")).Text(c.text)
			assert.NotContains(t, strings.ToLower(got), "hunter2")
			assert.NotContains(t, got, "dTpodW50ZXIy")
			assert.NotContains(t, decodedParts(got), "hunter2")
			assert.Contains(t, got, c.visible)
			for _, data := range []map[string]any{
				{"kind": "ConfigMap", "data": map[string]any{"file": c.text}},
				{"kind": "ConfigMap", "binaryData": map[string]any{"file": base64.StdEncoding.EncodeToString([]byte(c.text))}},
				{"kind": "ConfigMap", "metadata": map[string]any{"annotations": map[string]any{"x": c.text}}},
				{"kind": "Pod", "spec": map[string]any{"containers": []any{map[string]any{"name": "a", "command": []any{"sh", "-c", c.text}}}}},
				{"kind": "Pod", "spec": map[string]any{"containers": []any{map[string]any{"name": "a", "env": []any{map[string]any{"name": "A", "value": c.text}}}}}},
			} {
				data["apiVersion"] = "v1"
				for _, before := range []*unstructured.Unstructured{nil, {Object: map[string]any{"apiVersion": "v1", "kind": data["kind"]}}} {
					var old map[string]any
					if before != nil {
						old = before.Object
					}
					raw, err := json.Marshal(Compare(old, data))
					require.NoError(t, err)
					assert.NotContains(t, strings.ToLower(string(raw)), "hunter2")
					assert.NotContains(t, decodedParts(string(raw)), "hunter2")
				}
			}
		})
	}
}

// decodedParts returns all base64 parts of a text, decoded.
func decodedParts(text string) string {
	var out strings.Builder
	for _, part := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" \t\r\n\"'\\,:{}[]", r) }) {
		if raw, err := base64.StdEncoding.DecodeString(part); err == nil {
			out.Write(raw)
		}
	}
	return out.String()
}

// TestOrdinaryTextsAreNotMasked checks that ordinary texts do not change, even next to secret-like
// names.
func TestOrdinaryTextsAreNotMasked(t *testing.T) {
	for _, text := range []string{
		"registry.example.com:5000/team/secret-operator:v1.2.3", "registry.k8s.io/pause@sha256:0123456789012345678901234567890123456789012345678901234567890123",
		"checksum/config: 0123456789012345678901234567890123456789012345678901234567890123", "sha256:0123456789012345678901234567890123456789012345678901234567890123",
		"secretRef:\n  name: shown\n", "secretName: shown\n", "existingSecret: shown\n", "tokenExpirationSeconds: 3600\n", "passwordPolicy: strict\n",
		"--token-auth-file=/etc/kubernetes/tokens.csv", "--service-account-private-key-file=/srv/key", "--tls-private-key-file=/srv/tls.key", "--client-ca-file=/srv/ca.crt",
		"--kubeconfig=/var/run/kubeconfig", "--authentication-kubeconfig=/var/run/kubeconfig", "--authorization-mode=Node,RBAC", "--enable-bootstrap-token-auth=true",
		"--service-account-issuer=https://issuer.example.com:8443/a@b", "--v=2 --port 8080 --p 80", "docker run -p 8080:80 -u 1000:1000 image:1",
		"https://example.com:8443/path/a@b", "http://127.0.0.1:8080/healthz?timeout=5s&verbose=true", "ssh://git@github.com/a/b.git",
		"git@github.com:a/b.git", "a@example.com", "mailto:a@example.com", "10.0.0.0/8,192.168.0.0/16", "2026-11-22T05:30:00Z",
		"automountServiceAccountToken: false\n", "serviceAccountName: token-issuer\n", "keySize: 4096\n", "key: app\noperator: In\nvalues: [a]\n", "publicKey: ssh-ed25519 AAAA\n",
		"authorization: {mode: Webhook}\n", "authentication:\n  webhook:\n    enabled: true\n", "auth: oidc\nuser: a\n", "credentialsBindingName: shown\n", "credentialsRef: {name: shown}\n",
		"rotationPeriod: 168h\nkeyName: a\n", "maxTokens: 5\n", "token: $(TOKEN)\n", "password: ${PASSWORD}\n", "passthrough: true\nbypass: false\n", "cookie: true\n", "cookieName: session\n",
		"server {\n  listen 80;\n  location / { proxy_pass http://backend; }\n  ssl_certificate_key /etc/tls/tls.key;\n}\n", "proxy_set_header Host $host;\nadd_header X-Frame-Options DENY;\n",
		"[Unit]\nDescription=Token issuer\n[Service]\nExecStart=/usr/bin/a --key-file /srv/key\n", "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n", "-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----\n",
		"the token of the service account could not be read", "invalid password given: at least 8 characters are needed", "cannot read the secret: not found", "Secret garden/ca is immutable",
		"the password file is not readable", "bearer token authentication is off", "basic authentication is deprecated", "error: token expired", "key not found: a.b", "kind: SecretBinding\ndata: x",
		"apiVersion: v1\nkind: ConfigMap\ndata:\n  a: b\n", "global:\n  resolve_timeout: 5m\nroute:\n  group_by: [alertname]\n", "groups:\n- name: a\n  rules:\n  - alert: TokenExpires\n    expr: rate(token_errors_total[5m]) > 0\n",
		"rate(http_requests_total{code=~\"5..\"}[5m]) / rate(http_requests_total[5m]) > 0.01", "sum by (key) (a{token_type=\"x\"})", "$HOME/bin:$PATH", "a=$1; b=$2", "$argc", "echo $6 $5",
		"VGhpcyBpcyBhIHBsYWluIHRleHQsIG5vdGhpbmcgZWxzZS4=", "level=info msg=started port=8080", "TZ=Europe/Berlin\nLANG=C\n", "<a href=\"https://example.com\">shown</a>", "<key>CFBundleName</key>\n<string>a</string>",
		"--controllers=*,tokencleaner,-replicaset,-serviceaccount-token,-statefulset,-ttl", "path of the file to project the\n  token into.\n  x\n", "program --kubeconfig \"$work/runtime.kubeconfig\" --v=2",
		"files:\n- path: /var/lib/a/bootstrap-token\n  content: {inline: {data: <<BOOTSTRAP_TOKEN>>}}\n", "what an update lets pass: another port",
		"password_command: pass show mail/work\n", "passwordeval \"gpg -d /home/a/mail.gpg\"\nhost a.example.com\n", "spinning: fast\nmapping: a\nopinion: b\n", "pinned: \"1.2.3\"\n", "send \"yes\\r\"\n",
		"docker.io nginx:1.25\n", "10.0.0.1:80 /a:b\n", "5 * * * * /usr/bin/a\n", "sleep(3 * seconds)\nwait = 2 * delay\n", "zip -r a.zip b\n", "curl -U\n", "key = value\n", "encrypt: true\n", "community: support\n",
		"echo hello > /etc/motd\n", "diff <(echo a) <(echo b)\n", "neighbor 10.0.0.1 remote-as 65000\n", "username bob\n", "ingress.tls.secret=my-certificate\n", "header set cache\n", "image: r.example.com/static:nonroot@sha256:abc\n",
		"CREATE TABLE tokens (id int, password_hash text);", "SELECT password FROM users WHERE id = 1;",
	} {
		assert.Equal(t, text, Text(text))
		assert.Equal(t, text, NewMasking([]byte("key")).Text(text))
	}
}

// TestArgumentsOfACommand: a program and its arguments may be in two lists.
func TestArgumentsOfACommand(t *testing.T) {
	for _, container := range []string{
		`{name: a, command: [mysql], args: [-u, root, -phunter2]}`, `{name: a, command: [/usr/bin/redis-cli], args: [-a, hunter2, ping]}`, `{name: a, command: [curl], args: [-u, "u:hunter2"]}`,
		`{name: a, command: [sh, -c], args: ["mysql -phunter2"]}`, `{name: a, command: [a], args: ["--password", "hunter2"]}`, `{name: a, command: [a, --token], args: [hunter2]}`,
		`{name: a, command: [mysql], args: [-p, hunter2]}`, `{name: a, command: [curl], args: [-H, "Authorization: Bearer hunter2"]}`, `{name: a, command: [curl], args: [-H, "X-Api-Key: hunter2"]}`,
		`{name: a, command: [sshpass], args: [-phunter2, ssh]}`, `{name: a, command: [a], args: ["-e", "DB_PASSWORD=hunter2"]}`,
	} {
		o := object(t, pod("{containers: ["+container+"]}")).Object
		for _, old := range []string{"{}", "{containers: [{name: a, command: [b], args: [c]}]}", "{containers: [{name: a, command: [mysql], args: [c]}]}"} {
			raw, err := json.Marshal([]any{Compare(object(t, pod(old)).Object, o), Compare(o, object(t, pod(old)).Object), Compare(nil, o)})
			require.NoError(t, err)
			assert.NotContains(t, string(raw), "hunter2", container)
		}
	}
}
