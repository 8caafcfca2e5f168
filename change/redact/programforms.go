// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"regexp"
	"strings"
)

func (f secretForm) forProgram(programs, flag string) secretForm {
	pattern := regexp.MustCompile(`(?i)(?:^|[\s/"'\x60(;|&])(?:` + programs + `)(?:\.exe)?(?:["']|\s)`)
	return f.limitedToLines(func(line string) bool { return strings.Contains(line, flag) && pattern.MatchString(line) })
}

// printCommandPattern matches the output of echo and printf.
const printCommandPattern = `\b(?:echo|printf)[ \t]+(?:-[neE]+[ \t]+)*(?:["']?%s(?:\\n)?["']?[ \t]+)?(?P<secret>"[^"\n]+"|'[^'\n]+'|[^\s|;)>"']+)`

// programForms are arguments and calls of programs that take secrets without a secret name.
var programForms = []secretForm{
	// expect
	newForm(`\b(?:exp_)?send[ \t]+(?:-[a-z-]+[ \t]+|--[ \t]+)*"(?P<secret>[^"\n]+?)(?:\\[rn])+"`, "send").exceptIf(scriptAnswerPattern.MatchString).limitedToLines(acceptAnyLine),

	newForm(`(?:^|\s)-P[ \t]*`+argumentPattern, "mosquitto_", "ipmitool", "sqlcmd", "bcp ", "isql ", "tsql ", "zip ").forProgram(`mosquitto_(?:pub|sub|rr)|ipmitool|sqlcmd|bcp|isql|tsql|zip|unzip|zipcloak`, "-P"),
	newForm(`(?:^|\s)-p[ \t]*`+argumentPattern, "7z", "rar ", "cqlsh", "psexec").forProgram(`7z[ar]?|7zz|rar|unrar|cqlsh|psexec(?:64)?`, " -p"),
	newForm(`(?:^|\s)-[cAX][ \t]+`+argumentPattern, "snmp").forProgram(`snmp[a-z]+`, " -"),
	newForm(`(?:^|\s)-K[ \t]+(?P<secret>[^\s-]\S*)`, "openssl").forProgram(`openssl`, " -K"),
	newForm(`(?:^|\s)(?:-a|--auth|--proxy-auth)[ =]*["']?[^\s:"'=-][^\s:"']*:(?P<secret>[^\s"']+)`, " -a", "auth").forProgram(`https?|xh|check_[a-z]+`, " -"),
	newForm(`(?:^|\s)-U[ \t]*["']?[^\s:"'-][^\s:"']*:(?P<secret>[^\s"']+)`, "curl").forProgram(`curl`, "-U"),
	newForm(`--oauth2-bearer[ =]`+argumentPattern, "--oauth2-bearer").limitedToLines(acceptAnyLine),
	newForm(`\blftp\b[^\n|;&]*?\s-u[ \t]*[^\s,]+,`+argumentPattern, "lftp").limitedToLines(acceptAnyLine),
	newForm(`\bsqlplus\b[^\n|;&]*?\s["']?[^\s/"'@-][^\s/"']*/(?P<secret>[^\s@"']+)`, "sqlplus").limitedToLines(acceptAnyLine),
	newForm(`\bradtest[ \t]+(?:-\S+[ \t]+)*\S+[ \t]+`+argumentPattern, "radtest").limitedToLines(acceptAnyLine),
	newForm(`\bradtest[ \t]+(?:-\S+[ \t]+)*\S+[ \t]+(?:"[^"]*"|'[^']*'|\([^)\n]*\)|\S+)[ \t]+\S+[ \t]+[0-9]+[ \t]+`+argumentPattern, "radtest").limitedToLines(acceptAnyLine),
	newForm(`\brabbitmqctl\b[^\n|;&]*?\b(?:add_user|change_password|authenticate_user)[ \t]+\S+[ \t]+`+argumentPattern, "rabbitmqctl").limitedToLines(acceptAnyLine),
	newForm(`\bmosquitto_passwd\b[^\n|;&]*?\s-b[ \t]+\S+[ \t]+\S+[ \t]+`+argumentPattern, "mosquitto_passwd").limitedToLines(acceptAnyLine),
	newForm(`\bmc[ \t]+(?:alias[ \t]+set|config[ \t]+host[ \t]+add)[ \t]+\S+[ \t]+\S+[ \t]+\S+[ \t]+`+argumentPattern, "mc alias", "mc config").limitedToLines(acceptAnyLine),
	newForm(`\bvault[ \t]+operator[ \t]+(?:unseal|rekey)[ \t]+(?:-\S+[ \t]+)*`+argumentPattern, "vault operator").limitedToLines(acceptAnyLine),
	newForm(`[ \t][A-Za-z_][A-Za-z0-9_.-]*=(?P<secret>"[^"\n]+"|'[^'\n]+'|[^\s@"'][^\s]*)`, "vault kv").limitedToLines(func(line string) bool { return hasAny(line, "kv put", "kv patch") }),
	newForm(`\b(?i:configure|config)[ \t]+(?i:set)[ \t]+(?P<name>[A-Za-z][A-Za-z0-9_.-]*)[ \t]+`+argumentPattern, "configure set", "config set").limitedToLines(acceptAnyLine),
	newForm(`\s-n[ \t]+(?P<name>[A-Za-z0-9_.-]+)[ \t]+-v[ \t]+`+argumentPattern, "iscsiadm").limitedToLines(acceptAnyLine),
	newForm(`\bredis-cli\b[^\n|;&]*?\s(?i:auth)[ \t]+(?:[^\s(]\S*[ \t]+)?`+argumentPattern+`[ \t]*(?:$|[|;&\n])`, "redis-cli").limitedToLines(acceptAnyLine),
	newForm(`\btcp-check[ \t]+send[ \t]+AUTH\\?[ \t]+(?P<secret>\S+)`, "tcp-check").limitedToLines(acceptAnyLine),
	newForm(`\bhmac-[a-z0-9-]+:[^\s:]+[: \t]+(?P<secret>[A-Za-z0-9+/=]{6,})`, "hmac-").limitedToLines(acceptAnyLine),
	newForm(`(?i)-encrypt[ =]["']?(?P<secret>[A-Za-z0-9+/]{16,}={0,2})`, "-encrypt").limitedToLines(acceptAnyLine),
	newForm(`(?i)\bnet[ \t]+use[ \t]+\S+[ \t]+\\\\\S+[ \t]+(?P<secret>[^\s/]\S*)`, "net use").limitedToLines(acceptAnyLine),
	newForm(`(?i)\s/(?:p|pass|password|rp|gp)(?::|[ \t]+)(?P<secret>[^\s/]\S*)`, "freerdp", "rdesktop", "cmdkey", "schtasks").forProgram(`xfreerdp3?|wfreerdp|rdesktop|cmdkey|schtasks`, "/"),
	newForm(`(?i)\bConvertTo-SecureString\b[^\n|;]*?["'](?P<secret>[^"'\n$]+)["']`, "convertto-securestring").limitedToLines(acceptAnyLine),
	newForm(`(?i)\bquote[ \t]+pass[ \t]+(?P<secret>\S+)`, "quote pass").limitedToLines(acceptAnyLine),

	// Output into a program that reads a password, or into a file with a secret name.
	newForm(printCommandPattern, "echo", "printf").limitedToLines(passwordPipePattern.MatchString),
	newForm(printCommandPattern+`[ \t]*>>?[ \t]*["']?(?:[^\s"']*/)?(?P<name>[.A-Za-z][A-Za-z0-9_.-]*)`, "echo", "printf").limitedToLines(func(line string) bool { return strings.Contains(line, ">") && !strings.Contains(line, "/etc/passwd") }),
	newForm(`(?P<name>[A-Za-z][A-Za-z0-9_.-]*)[ =]<\([ \t]*(?:echo|printf)[ \t]+(?:-[neE]+[ \t]+)*(?P<secret>[^)\n]+)\)`, "<(echo", "<(printf", "<( echo", "<( printf").limitedToLines(acceptAnyLine),

	// Calls with a user followed by a password.
	newForm(`(?i)\b(?:SetBasicAuth|HTTPBasicAuth|basicAuth|auth[ \t]*=[ \t]*)\(\s*["'][^"'\n]*["']\s*,\s*["'](?P<secret>[^"'\n]+)["']`, "basicauth(", "auth=(", "auth = (").limitedToLines(acceptAnyLine),
	newForm(`\b(?:mysqli|mysqli_connect|getConnection|PDO)\(\s*["'][^"'\n]*["']\s*,\s*["'][^"'\n]*["']\s*,\s*["'](?P<secret>[^"'\n]+)`, "mysqli", "getconnection", "pdo(").limitedToLines(acceptAnyLine),
	newForm(`\{(?P<name>[a-z_]+),[ \t]*<<"(?P<secret>[^"\n]*)"`, `<<"`).limitedToLines(acceptAnyLine),
}

var (
	// scriptAnswerPattern matches input of a script other than passwords.
	scriptAnswerPattern = regexp.MustCompile(`^(?:yes|no|y|n|q|exit|quit|logout|end|enable|configure terminal|\$\{?[A-Za-z_]\w*\}?)$`)
	// passwordPipePattern matches a line that pipes into a program that reads a password.
	passwordPipePattern = regexp.MustCompile(`\|[ \t]*(?:\S*/)?(?:smbpasswd|saslpasswd2|kinit|vncpasswd|passwd|cryptsetup|sudo[ \t][^\n|]*-S|su(?:[ \t]|$)|secret-tool|pass[ \t]+insert|\S+[^\n|]*--passphrase-fd)`)
)

// deviceForms are configuration lines of servers and network devices.
var deviceForms = []secretForm{
	newForm(`\bsecure_link_(?:md5|secret)[ \t]+(?P<secret>"[^"\n]*"|'[^'\n]*'|[^\s;]+)`, "secure_link_").limitedToLines(acceptAnyLine),
	newForm(`(?i)\b(?:secret|password)[ \t]+"(?P<secret>[^"\n]+)"[ \t]*;`, `secret "`, `password "`).limitedToLines(acceptAnyLine),
	newForm(`(?i)^[ \t]*(?:passwordeval|passcmd|passeval)[ \t]+["']?\+?(?P<secret>[^"'\n]+)`, "passwordeval", "passcmd", "passeval").exceptIf(storeCommandPattern.MatchString).limitedToLines(acceptAnyLine),
	newForm(`^[ \t]*(?:requirepass|masterauth)[ \t]+(?P<secret>"[^"\n]+"|\S+)`, "requirepass", "masterauth").limitedToLines(acceptAnyLine),
	newForm(`\bauth-pass[ \t]+\S+[ \t]+`+argumentPattern, "auth-pass").limitedToLines(acceptAnyLine),
	newForm(`\bstatic:[^\s:@/]+:(?P<secret>[^\s"']+)`, "static:").limitedToLines(acceptAnyLine),
	newForm(`(?i)\{(?:plain|cleartext|clear)(?:\.[a-z0-9]+)?\}(?P<secret>[^\s:"']+)`, "{plain", "{clear").limitedToLines(acceptAnyLine),
	newForm(`^[ \t]*[0-9]+[ \t]*=>[ \t]*(?P<secret>[^\s,]+),[^,\n]*,[^,\n]*@`, "=>").limitedToLines(acceptAnyLine),
	newForm(`\bregister[ \t]*=>[ \t]*[^\s:]+:(?P<secret>[^\s@]+)@`, "register").limitedToLines(acceptAnyLine),
	newForm(`:[ \t]*(?:RSA|ECDSA|PKCS8|PKCS12|P8|P12|PIN)[ \t]+\S+[ \t]+["'](?P<secret>[^"'\n]+)`, ": rsa", ": ecdsa", ": pkcs", ": p8", ": p12", ": pin").limitedToLines(acceptAnyLine),
	newForm(`\bPSK[ \t]+(?P<secret>0[sx][A-Za-z0-9+/=]+)`, "psk").limitedToLines(acceptAnyLine),
	newForm(`(?m)^\S+:[0-9]+[ \t]+(?P<secret>\S+)[ \t]+[0-9]+[ \t]*$`, "radius", "shared_secret"),
	newForm(`(?i)\bencrypt["']?[ \t]*[:=][ \t]*["'](?P<secret>[A-Za-z0-9+/]{16,}={0,2})["']`, "encrypt").limitedToLines(acceptAnyLine),
	newForm(`\btokens[ \t]*\{(?P<secret>[^{}]*=[^{}]*)\}`, "tokens {", "tokens{"),
	newForm(`^[ \t]*["']?[A-Za-z0-9_.@*-]+["']?[ \t]+\*[ \t]+(?P<secret>[^\s*]\S*)[ \t]+(?:\*|[0-9.]+)[ \t]*$`, " * ", "\t*\t").limitedToLines(acceptAnyLine),
	newForm(`^[ \t]*com2sec6?[ \t]+(?:-Cn[ \t]+\S+[ \t]+)?\S+[ \t]+\S+[ \t]+(?P<secret>\S+)`, "com2sec").limitedToLines(acceptAnyLine),
	newForm(`^[ \t]*(?:trap2?sink|informsink)[ \t]+\S+[ \t]+(?P<secret>\S+)`, "sink").limitedToLines(acceptAnyLine),
	newForm(`^[ \t]*trapcommunity[ \t]+(?P<secret>\S+)`, "trapcommunity").limitedToLines(acceptAnyLine),
	newForm(`^[ \t]*rootpw[ \t]+(?:--\S+[ \t]+)*(?P<secret>[^\s-]\S*)`, "rootpw").limitedToLines(acceptAnyLine),
	newForm(`^[ \t]*d-i[ \t]+passwd/\S*password\S*[ \t]+password[ \t]+(?P<secret>\S.*)$`, "passwd/").limitedToLines(acceptAnyLine),
	newForm(`\bgrub\.pbkdf2\.(?P<secret>\S+)`, "grub.pbkdf2").limitedToLines(acceptAnyLine),
	newForm(`^[ \t]*key[ \t]*=[ \t]*(?P<secret>A[A-Za-z0-9+/]{30,}={1,2})`, "key = a", "key=a").limitedToLines(acceptAnyLine),
	newForm(`\blogin=[^\s:]+:(?P<secret>\S+)`, "login=").limitedToLines(acceptAnyLine),
	newForm(`^[ \t]*(?:http|socks[45])[ \t]+[0-9a-fA-F.:]+[ \t]+[0-9]+[ \t]+\S+[ \t]+(?P<secret>\S+)`, "http ", "http\t", "socks4", "socks5").limitedToLines(acceptAnyLine),

	// Cisco, FRR and similar.
	newForm(`(?i)(?:^|[ \t])(?:enable|username[ \t]+\S+(?:[ \t]+privilege[ \t]+[0-9]+)?|neighbor[ \t]+\S+)[ \t]+(?:secret|password)[ \t]+(?:[0-9][ \t]+)?(?P<secret>\S+)`,
		"enable secret", "enable password", "username ", "neighbor ").limitedToLines(acceptAnyLine),
	newForm(`(?i)\bsnmp-server[ \t]+community[ \t]+(?P<secret>\S+)`, "snmp-server").limitedToLines(acceptAnyLine),
	newForm(`(?i)\b(?:tacacs|radius)-server\b[^\n]*?[ \t]key[ \t]+(?:[0-9][ \t]+)?(?P<secret>\S+)`, "-server").limitedToLines(acceptAnyLine),
	newForm(`(?i)\bcrypto[ \t]+isakmp[ \t]+key[ \t]+(?:[0-9][ \t]+)?(?P<secret>\S+)`, "isakmp key").limitedToLines(acceptAnyLine),
	newForm(`(?i)\bmessage-digest-key[ \t]+[0-9]+[ \t]+md5[ \t]+(?:[0-9][ \t]+)?(?P<secret>\S+)`, "message-digest-key").limitedToLines(acceptAnyLine),
	newForm(`(?i)^[ \t]*(?:key-string|pre-shared-key|authentication-key)[ \t]+(?:[0-9][ \t]+)?(?P<secret>\S+)`, "key-string", "pre-shared-key", "authentication-key").limitedToLines(acceptAnyLine),
}
