// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// auditPolicy is the audit policy: all writes with the server's answers, without the content of
// Secrets.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted, Panic]
omitManagedFields: true
rules:
- level: Metadata
  verbs: [create, update, patch, delete, deletecollection]
  resources:
  - {group: "", resources: [secrets, serviceaccounts/token]}
  - {group: authentication.k8s.io}
  - {group: core.gardener.cloud, resources: [internalsecrets, shootstates, shoots/adminkubeconfig, shoots/viewerkubeconfig]}
  - {group: authentication.gardener.cloud}
- level: RequestResponse
  verbs: [create, update, patch, delete, deletecollection]
- level: None
`

// wrapperScripts replace programs. The script of kube-apiserver adds the audit flags. Its log has
// the names of the cluster (in hack/local the prefix of etcd's keys) and the port: a restarted
// server appends to it. The script of node, which runs pods, gives them the real kube-apiserver:
// pods have no shell.
var wrapperScripts = map[string]string{
	"kube-apiserver": `#!/bin/bash
name=server port=
for arg; do
  case "$arg" in
  --etcd-prefix=/?*) name="${arg#--etcd-prefix=/}" ;;
  --secure-port=*) port="${arg#*=}" ;;
  esac
done
exec 'REAL/kube-apiserver' "$@" --audit-policy-file='DIR/policy.yaml' --audit-log-path="DIR/$name.$port.log" --audit-log-maxsize=100000
`,
	"node": `#!/bin/bash
exec 'REAL/node' "${@//'DIR/assets/kube-apiserver'/'REAL/kube-apiserver'}"
`}

// record runs a command whose API servers write audit logs into a folder. It sets
// KUBEBUILDER_ASSETS to a folder of scripts, from which hack/apiserver and hack/local start their
// servers.
func record(dir string, command []string) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	real, err := filepath.Abs(os.Getenv("KUBEBUILDER_ASSETS"))
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(real, "kube-apiserver")); err != nil {
		return fmt.Errorf("%w: set KUBEBUILDER_ASSETS to hack/local/bin after `make test`", err)
	}
	assets := filepath.Join(dir, "assets")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if err := os.Mkdir(assets, 0o700); err != nil {
		return fmt.Errorf("%w: each recording has a folder of its own", err)
	}
	fill := strings.NewReplacer("REAL", real, "DIR", dir)
	programs, err := filepath.Glob(filepath.Join(real, "[a-z]*"))
	for _, path := range programs {
		name := filepath.Base(path)
		if script := wrapperScripts[name]; script != "" {
			err = errors.Join(err, os.WriteFile(filepath.Join(assets, name), []byte(fill.Replace(script)), 0o700))
		} else {
			err = errors.Join(err, os.Symlink(path, filepath.Join(assets, name)))
		}
	}
	if err = errors.Join(err, os.WriteFile(filepath.Join(dir, "policy.yaml"), []byte(auditPolicy), 0o600)); err != nil {
		return err
	}
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), "KUBEBUILDER_ASSETS="+assets)
	return cmd.Run()
}
