package redact

import (
	"regexp"
	"strings"
)

func (f form) of(programs, flag string) form {
	pattern := regexp.MustCompile(`(?i)(?:^|[\s/"'\x60(;|&])(?:` + programs + `)(?:\.exe)?(?:["']|\s)`)
	return f.inLines(func(line string) bool { return strings.Contains(line, flag) && pattern.MatchString(line) })
}

// printed matches the output of echo and printf.
const printed = `\b(?:echo|printf)[ \t]+(?:-[neE]+[ \t]+)*(?:["']?%s(?:\\n)?["']?[ \t]+)?(?P<secret>"[^"\n]+"|'[^'\n]+'|[^\s|;)>"']+)`

// programForms are arguments and calls of programs that take secrets without a secret name.
var programForms = []form{
	// expect
	written(`\b(?:exp_)?send[ \t]+(?:-[a-z-]+[ \t]+|--[ \t]+)*"(?P<secret>[^"\n]+?)(?:\\[rn])+"`, "send").unlessIt(isAnswer.MatchString).inLines(anyLine),

	written(`(?:^|\s)-P[ \t]*`+argument, "mosquitto_", "ipmitool", "sqlcmd", "bcp ", "isql ", "tsql ", "zip ").of(`mosquitto_(?:pub|sub|rr)|ipmitool|sqlcmd|bcp|isql|tsql|zip|unzip|zipcloak`, "-P"),
	written(`(?:^|\s)-p[ \t]*`+argument, "7z", "rar ", "cqlsh", "psexec").of(`7z[ar]?|7zz|rar|unrar|cqlsh|psexec(?:64)?`, " -p"),
	written(`(?:^|\s)-[cAX][ \t]+`+argument, "snmp").of(`snmp[a-z]+`, " -"),
	written(`(?:^|\s)-K[ \t]+(?P<secret>[^\s-]\S*)`, "openssl").of(`openssl`, " -K"),
	written(`(?:^|\s)(?:-a|--auth|--proxy-auth)[ =]*["']?[^\s:"'=-][^\s:"']*:(?P<secret>[^\s"']+)`, " -a", "auth").of(`https?|xh|check_[a-z]+`, " -"),
	written(`(?:^|\s)-U[ \t]*["']?[^\s:"'-][^\s:"']*:(?P<secret>[^\s"']+)`, "curl").of(`curl`, "-U"),
	written(`--oauth2-bearer[ =]`+argument, "--oauth2-bearer").inLines(anyLine),
	written(`\blftp\b[^\n|;&]*?\s-u[ \t]*[^\s,]+,`+argument, "lftp").inLines(anyLine),
	written(`\bsqlplus\b[^\n|;&]*?\s["']?[^\s/"'@-][^\s/"']*/(?P<secret>[^\s@"']+)`, "sqlplus").inLines(anyLine),
	written(`\bradtest[ \t]+(?:-\S+[ \t]+)*\S+[ \t]+`+argument, "radtest").inLines(anyLine),
	written(`\bradtest[ \t]+(?:-\S+[ \t]+)*\S+[ \t]+(?:"[^"]*"|'[^']*'|\([^)\n]*\)|\S+)[ \t]+\S+[ \t]+[0-9]+[ \t]+`+argument, "radtest").inLines(anyLine),
	written(`\brabbitmqctl\b[^\n|;&]*?\b(?:add_user|change_password|authenticate_user)[ \t]+\S+[ \t]+`+argument, "rabbitmqctl").inLines(anyLine),
	written(`\bmosquitto_passwd\b[^\n|;&]*?\s-b[ \t]+\S+[ \t]+\S+[ \t]+`+argument, "mosquitto_passwd").inLines(anyLine),
	written(`\bmc[ \t]+(?:alias[ \t]+set|config[ \t]+host[ \t]+add)[ \t]+\S+[ \t]+\S+[ \t]+\S+[ \t]+`+argument, "mc alias", "mc config").inLines(anyLine),
	written(`\bvault[ \t]+operator[ \t]+(?:unseal|rekey)[ \t]+(?:-\S+[ \t]+)*`+argument, "vault operator").inLines(anyLine),
	written(`[ \t][A-Za-z_][A-Za-z0-9_.-]*=(?P<secret>"[^"\n]+"|'[^'\n]+'|[^\s@"'][^\s]*)`, "vault kv").inLines(func(line string) bool { return hasAny(line, "kv put", "kv patch") }),
	written(`\b(?i:configure|config)[ \t]+(?i:set)[ \t]+(?P<name>[A-Za-z][A-Za-z0-9_.-]*)[ \t]+`+argument, "configure set", "config set").inLines(anyLine),
	written(`\s-n[ \t]+(?P<name>[A-Za-z0-9_.-]+)[ \t]+-v[ \t]+`+argument, "iscsiadm").inLines(anyLine),
	written(`\bredis-cli\b[^\n|;&]*?\s(?i:auth)[ \t]+(?:[^\s(]\S*[ \t]+)?`+argument+`[ \t]*(?:$|[|;&\n])`, "redis-cli").inLines(anyLine),
	written(`\btcp-check[ \t]+send[ \t]+AUTH\\?[ \t]+(?P<secret>\S+)`, "tcp-check").inLines(anyLine),
	written(`\bhmac-[a-z0-9-]+:[^\s:]+[: \t]+(?P<secret>[A-Za-z0-9+/=]{6,})`, "hmac-").inLines(anyLine),
	written(`(?i)-encrypt[ =]["']?(?P<secret>[A-Za-z0-9+/]{16,}={0,2})`, "-encrypt").inLines(anyLine),
	written(`(?i)\bnet[ \t]+use[ \t]+\S+[ \t]+\\\\\S+[ \t]+(?P<secret>[^\s/]\S*)`, "net use").inLines(anyLine),
	written(`(?i)\s/(?:p|pass|password|rp|gp)(?::|[ \t]+)(?P<secret>[^\s/]\S*)`, "freerdp", "rdesktop", "cmdkey", "schtasks").of(`xfreerdp3?|wfreerdp|rdesktop|cmdkey|schtasks`, "/"),
	written(`(?i)\bConvertTo-SecureString\b[^\n|;]*?["'](?P<secret>[^"'\n$]+)["']`, "convertto-securestring").inLines(anyLine),
	written(`(?i)\bquote[ \t]+pass[ \t]+(?P<secret>\S+)`, "quote pass").inLines(anyLine),

	// Output into a program that reads a password, or into a file with a secret name.
	written(printed, "echo", "printf").inLines(readsPassword.MatchString),
	written(printed+`[ \t]*>>?[ \t]*["']?(?:[^\s"']*/)?(?P<name>[.A-Za-z][A-Za-z0-9_.-]*)`, "echo", "printf").inLines(func(line string) bool { return strings.Contains(line, ">") && !strings.Contains(line, "/etc/passwd") }),
	written(`(?P<name>[A-Za-z][A-Za-z0-9_.-]*)[ =]<\([ \t]*(?:echo|printf)[ \t]+(?:-[neE]+[ \t]+)*(?P<secret>[^)\n]+)\)`, "<(echo", "<(printf", "<( echo", "<( printf").inLines(anyLine),

	// Calls with a user followed by a password.
	written(`(?i)\b(?:SetBasicAuth|HTTPBasicAuth|basicAuth|auth[ \t]*=[ \t]*)\(\s*["'][^"'\n]*["']\s*,\s*["'](?P<secret>[^"'\n]+)["']`, "basicauth(", "auth=(", "auth = (").inLines(anyLine),
	written(`\b(?:mysqli|mysqli_connect|getConnection|PDO)\(\s*["'][^"'\n]*["']\s*,\s*["'][^"'\n]*["']\s*,\s*["'](?P<secret>[^"'\n]+)`, "mysqli", "getconnection", "pdo(").inLines(anyLine),
	written(`\{(?P<name>[a-z_]+),[ \t]*<<"(?P<secret>[^"\n]*)"`, `<<"`).inLines(anyLine),
}

var (
	// isAnswer matches input of a script other than passwords.
	isAnswer = regexp.MustCompile(`^(?:yes|no|y|n|q|exit|quit|logout|end|enable|configure terminal|\$\{?[A-Za-z_]\w*\}?)$`)
	// readsPassword matches a line that pipes into a program that reads a password.
	readsPassword = regexp.MustCompile(`\|[ \t]*(?:\S*/)?(?:smbpasswd|saslpasswd2|kinit|vncpasswd|passwd|cryptsetup|sudo[ \t][^\n|]*-S|su(?:[ \t]|$)|secret-tool|pass[ \t]+insert|\S+[^\n|]*--passphrase-fd)`)
)

// deviceForms are configuration lines of servers and network devices.
var deviceForms = []form{
	written(`\bsecure_link_(?:md5|secret)[ \t]+(?P<secret>"[^"\n]*"|'[^'\n]*'|[^\s;]+)`, "secure_link_").inLines(anyLine),
	written(`(?i)\b(?:secret|password)[ \t]+"(?P<secret>[^"\n]+)"[ \t]*;`, `secret "`, `password "`).inLines(anyLine),
	written(`(?i)^[ \t]*(?:passwordeval|passcmd|passeval)[ \t]+["']?\+?(?P<secret>[^"'\n]+)`, "passwordeval", "passcmd", "passeval").unlessIt(asks.MatchString).inLines(anyLine),
	written(`^[ \t]*(?:requirepass|masterauth)[ \t]+(?P<secret>"[^"\n]+"|\S+)`, "requirepass", "masterauth").inLines(anyLine),
	written(`\bauth-pass[ \t]+\S+[ \t]+`+argument, "auth-pass").inLines(anyLine),
	written(`\bstatic:[^\s:@/]+:(?P<secret>[^\s"']+)`, "static:").inLines(anyLine),
	written(`(?i)\{(?:plain|cleartext|clear)(?:\.[a-z0-9]+)?\}(?P<secret>[^\s:"']+)`, "{plain", "{clear").inLines(anyLine),
	written(`^[ \t]*[0-9]+[ \t]*=>[ \t]*(?P<secret>[^\s,]+),[^,\n]*,[^,\n]*@`, "=>").inLines(anyLine),
	written(`\bregister[ \t]*=>[ \t]*[^\s:]+:(?P<secret>[^\s@]+)@`, "register").inLines(anyLine),
	written(`:[ \t]*(?:RSA|ECDSA|PKCS8|PKCS12|P8|P12|PIN)[ \t]+\S+[ \t]+["'](?P<secret>[^"'\n]+)`, ": rsa", ": ecdsa", ": pkcs", ": p8", ": p12", ": pin").inLines(anyLine),
	written(`\bPSK[ \t]+(?P<secret>0[sx][A-Za-z0-9+/=]+)`, "psk").inLines(anyLine),
	written(`(?m)^\S+:[0-9]+[ \t]+(?P<secret>\S+)[ \t]+[0-9]+[ \t]*$`, "radius", "shared_secret"),
	written(`(?i)\bencrypt["']?[ \t]*[:=][ \t]*["'](?P<secret>[A-Za-z0-9+/]{16,}={0,2})["']`, "encrypt").inLines(anyLine),
	written(`\btokens[ \t]*\{(?P<secret>[^{}]*=[^{}]*)\}`, "tokens {", "tokens{"),
	written(`^[ \t]*["']?[A-Za-z0-9_.@*-]+["']?[ \t]+\*[ \t]+(?P<secret>[^\s*]\S*)[ \t]+(?:\*|[0-9.]+)[ \t]*$`, " * ", "\t*\t").inLines(anyLine),
	written(`^[ \t]*com2sec6?[ \t]+(?:-Cn[ \t]+\S+[ \t]+)?\S+[ \t]+\S+[ \t]+(?P<secret>\S+)`, "com2sec").inLines(anyLine),
	written(`^[ \t]*(?:trap2?sink|informsink)[ \t]+\S+[ \t]+(?P<secret>\S+)`, "sink").inLines(anyLine),
	written(`^[ \t]*trapcommunity[ \t]+(?P<secret>\S+)`, "trapcommunity").inLines(anyLine),
	written(`^[ \t]*rootpw[ \t]+(?:--\S+[ \t]+)*(?P<secret>[^\s-]\S*)`, "rootpw").inLines(anyLine),
	written(`^[ \t]*d-i[ \t]+passwd/\S*password\S*[ \t]+password[ \t]+(?P<secret>\S.*)$`, "passwd/").inLines(anyLine),
	written(`\bgrub\.pbkdf2\.(?P<secret>\S+)`, "grub.pbkdf2").inLines(anyLine),
	written(`^[ \t]*key[ \t]*=[ \t]*(?P<secret>A[A-Za-z0-9+/]{30,}={1,2})`, "key = a", "key=a").inLines(anyLine),
	written(`\blogin=[^\s:]+:(?P<secret>\S+)`, "login=").inLines(anyLine),
	written(`^[ \t]*(?:http|socks[45])[ \t]+[0-9a-fA-F.:]+[ \t]+[0-9]+[ \t]+\S+[ \t]+(?P<secret>\S+)`, "http ", "http\t", "socks4", "socks5").inLines(anyLine),

	// Cisco, FRR and similar.
	written(`(?i)(?:^|[ \t])(?:enable|username[ \t]+\S+(?:[ \t]+privilege[ \t]+[0-9]+)?|neighbor[ \t]+\S+)[ \t]+(?:secret|password)[ \t]+(?:[0-9][ \t]+)?(?P<secret>\S+)`,
		"enable secret", "enable password", "username ", "neighbor ").inLines(anyLine),
	written(`(?i)\bsnmp-server[ \t]+community[ \t]+(?P<secret>\S+)`, "snmp-server").inLines(anyLine),
	written(`(?i)\b(?:tacacs|radius)-server\b[^\n]*?[ \t]key[ \t]+(?:[0-9][ \t]+)?(?P<secret>\S+)`, "-server").inLines(anyLine),
	written(`(?i)\bcrypto[ \t]+isakmp[ \t]+key[ \t]+(?:[0-9][ \t]+)?(?P<secret>\S+)`, "isakmp key").inLines(anyLine),
	written(`(?i)\bmessage-digest-key[ \t]+[0-9]+[ \t]+md5[ \t]+(?:[0-9][ \t]+)?(?P<secret>\S+)`, "message-digest-key").inLines(anyLine),
	written(`(?i)^[ \t]*(?:key-string|pre-shared-key|authentication-key)[ \t]+(?:[0-9][ \t]+)?(?P<secret>\S+)`, "key-string", "pre-shared-key", "authentication-key").inLines(anyLine),
}
