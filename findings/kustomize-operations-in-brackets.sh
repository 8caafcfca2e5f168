#!/usr/bin/env bash
# sigs.k8s.io/kustomize/api v0.21.2 reads a JSON 6902 patch in brackets as JSON, not as YAML.
#
# The first two patches below are the same YAML list of the same operation. Kustomize applies the
# patch with a dash. It refuses the patch in brackets with "unable to parse SM or JSON patch",
# unless keys and texts have double quotes. So a patch that an editor or a YAML library has written
# in one line breaks a build. The error quotes the whole patch without the place of the fault.
#
# Needs Go and the Go module proxy. Exit code 0: the behaviour is as described. 1: it has changed.
set -o errexit -o nounset -o pipefail

dir="$(mktemp -d)"
trap 'chmod -R u+w "$dir" && rm -rf "$dir"' EXIT
cd "$dir"
cat > main.go <<'GO'
package main

import (
	"fmt"
	"strings"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

const object = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {k: v}\n"

// build says what a patch makes of the object.
func build(patch string) string {
	files := filesys.MakeFsInMemory()
	_ = files.WriteFile("/kustomization.yaml", []byte("resources: [a.yaml]\npatches:\n- {path: patch.yaml, target: {kind: ConfigMap}}\n"))
	_ = files.WriteFile("/a.yaml", []byte(object))
	_ = files.WriteFile("/patch.yaml", []byte(patch))
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(files, "/")
	if err != nil {
		if strings.Contains(err.Error(), "unable to parse SM or JSON patch") {
			return "unable to parse SM or JSON patch"
		}
		return err.Error()
	}
	text, err := built.AsYaml()
	if err != nil {
		return err.Error()
	}
	if strings.Contains(string(text), "added: x") {
		return "applied"
	}
	return "not applied"
}

func main() {
	fmt.Println("dash:", build("- {op: add, path: /data/added, value: x}\n"))
	fmt.Println("bracket:", build("[{op: add, path: /data/added, value: x}]\n"))
	fmt.Println("bracket, JSON:", build(`[{"op": "add", "path": "/data/added", "value": "x"}]`))
}
GO
go mod init example.org/finding > /dev/null 2>&1
go get sigs.k8s.io/kustomize/api@v0.21.2 sigs.k8s.io/kustomize/kyaml@v0.21.2 > /dev/null 2>&1
go mod tidy > /dev/null 2>&1
got="$(go run .)"
echo "$got"
want="dash: applied
bracket: unable to parse SM or JSON patch
bracket, JSON: applied"
[ "$got" = "$want" ]
