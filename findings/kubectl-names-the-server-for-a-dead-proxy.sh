#!/usr/bin/env bash
# kubectl v0.37.0 (Kubernetes 1.37) reports a dead proxy (`proxy-url`) as a refusal of the server.
#
# A kubeconfig may reach a cluster through a proxy: `clusters[].cluster.proxy-url`. If nothing
# listens at the proxy's address, kubectl prints "The connection to the server HOST was refused".
# HOST is the API server, which got no connection, and the text does not mention the proxy. The
# cause is a *net.OpError with Op "proxyconnect", which wraps the failed connection to the proxy. So
# programs that look for Op "dial" in the first *net.OpError do not recognize a failed dial.
#
# Needs Go and the Go module proxy, and no other network access. Exit code 0: the behaviour is as
# described. 1: it has changed.
set -o errexit -o nounset -o pipefail

dir="$(mktemp -d)"
trap 'chmod -R u+w "$dir" && rm -rf "$dir"' EXIT
unset http_proxy https_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY no_proxy
mkdir "$dir/program"
cd "$dir/program"
cat > main.go <<'GO'
package main

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"

	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
)

func main() {
	if len(os.Args) > 1 {
		util.CheckErr(cmd.NewDefaultKubectlCommand().Execute())
		return
	}
	proxy := &url.URL{Scheme: "http", Host: "127.0.0.1:1"}
	_, err := (&http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(proxy)}}).Get("https://api.example.org/version")
	for ; err != nil; err = errors.Unwrap(err) {
		if op, is := err.(*net.OpError); is {
			fmt.Println(op.Op)
		}
	}
}
GO
go mod init example.org/program 2> /dev/null
go get k8s.io/kubectl@v0.37.0 2> /dev/null
go mod tidy 2> /dev/null
go build -o program .

cat > config <<'YAML'
apiVersion: v1
kind: Config
current-context: a
contexts: [{name: a, context: {cluster: a, user: a}}]
clusters: [{name: a, cluster: {server: "https://api.example.org", proxy-url: "http://127.0.0.1:1"}}]
users: [{name: a, user: {token: none}}]
YAML
said="$(./program --kubeconfig config get --raw /version 2>&1 || true)"
{
  echo "kubectl: $said"
  echo "net/http, the outer error first: $(./program | xargs)"
} | tee "$dir/output"

# Seen on 2026-11-30 with Go 1.26.8:
diff - "$dir/output" <<'SEEN'
kubectl: The connection to the server api.example.org was refused - did you specify the right host or port?
net/http, the outer error first: proxyconnect dial
SEEN
