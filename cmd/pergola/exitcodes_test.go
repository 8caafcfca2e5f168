// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// unreachableConfig is a kubeconfig of a server that does not listen.
const unreachableConfig = `{apiVersion: v1, kind: Config, current-context: a, contexts: [{name: a, context: {cluster: a, user: a}}],
  users: [{name: a, user: {}}], clusters: [{name: a, cluster: {server: "https://127.0.0.1:1"}}]}`

// runnableCommands returns all runnable commands by their paths without the program's name, except
// cobra's own.
func runnableCommands(cmd *cobra.Command) map[string]*cobra.Command {
	out := map[string]*cobra.Command{}
	for _, sub := range cmd.Commands() {
		if sub.Name() == "completion" || sub.Name() == "help" {
			continue
		}
		if sub.Runnable() {
			out[strings.TrimPrefix(sub.CommandPath(), "pergola ")] = sub
		}
		for path, below := range runnableCommands(sub) {
			out[path] = below
		}
	}
	return out
}

// TestExitCodes has a row for every command: its exit code if a cluster does not answer or a file
// does not exist.
func TestExitCodes(t *testing.T) {
	dir, _ := repository(t)
	root := t.TempDir()
	writeFile(t, root, "config", unreachableConfig)
	writeFile(t, root, "identity", "AGE-SECRET-KEY-1QYQSZQGPQYQSZQGPQYQSZQGPQYQSZQGPQYQSZQGPQYQSZQGPQYQSXKXK5A\n")
	config, nope := filepath.Join(root, "config"), filepath.Join(root, "nope")
	withGarden := t.TempDir()
	smallLandscape(t, withGarden)
	writeFile(t, withGarden, "garden.yaml", readDemoFile(t, "garden/garden.yaml"))
	replaceIn(t, withGarden, "landscape.yaml", "spec:\n", "spec:\n  external:\n  - {kind: Secret, namespace: garden, name: garden-dns-local}\n  - {kind: Secret, namespace: garden, name: virtual-garden-etcd-main-backup-local}\n")
	var clusters []string
	for _, name := range []string{"runtime", "virtual", "local"} {
		clusters = append(clusters, "--kubeconfig", name+"="+config)
	}
	with := func(args ...string) []string { return slices.Concat(args, []string{"--timeout", "20s"}, clusters) }
	one := func(args ...string) []string { return append(args[:len(args):len(args)], "--kubeconfig", config) }
	rows := map[string]struct {
		// down needs a cluster that does not answer, usage has a wrong argument, io needs a file
		// that does not exist.
		down, usage, io []string
	}{
		"validate":                           {usage: []string{}, io: []string{nope}},
		"render":                             {usage: []string{dir, "--component", "garden/nope"}, io: []string{nope}},
		"golden":                             {usage: []string{}, io: []string{nope}},
		"explain":                            {usage: []string{"Shot"}, io: []string{"Shoot", "--catalogue", nope}},
		"flow":                               {usage: []string{"moon"}, io: []string{"garden", "--catalogue", nope}},
		"diff":                               {down: with(dir, "--live"), usage: []string{dir, "--kubeconfig", config}, io: []string{nope}},
		"why":                                {down: with(dir, "Seed local"), usage: []string{dir}, io: []string{nope, "Seed local"}},
		"apply":                              {down: with(dir, "--dry-run"), usage: []string{dir, "--timeout", "0s"}, io: []string{nope}},
		"adopt":                              {down: with(withGarden), usage: []string{dir, "--approve", "1"}, io: []string{nope}},
		"operate":                            {down: with(dir, "Seed local", "reconcile"), usage: []string{dir, "Seed local", "reconcil"}, io: []string{nope, "Seed local", "reconcile"}},
		"status":                             {down: with(dir), usage: []string{dir, "--context", "a"}, io: []string{nope}},
		"health":                             {usage: []string{"a", "b"}, io: []string{nope}},
		"backup":                             {usage: []string{dir, "--to", nope}, io: []string{nope, "--to", nope, "--recipients-file", nope}},
		"backup show":                        {usage: []string{}, io: []string{nope}},
		"restore":                            {usage: []string{dir}, io: []string{dir, "--from", nope}},
		"sync":                               {down: one("one"), usage: []string{"a/b/c"}, io: []string{"one", "--kubeconfig", nope}},
		"suspend":                            {down: one("one", "--reason", "x"), usage: []string{"one"}, io: []string{"one", "--reason", "x", "--kubeconfig", nope}},
		"resume":                             {down: one("one"), usage: []string{}, io: []string{"one", "--kubeconfig", nope}},
		"history":                            {down: one("one"), usage: []string{}, io: []string{"one", "--kubeconfig", nope}},
		"rollback":                           {down: one("one", "previous"), usage: []string{"one"}, io: []string{"one", "previous", "--kubeconfig", nope}},
		"approve":                            {down: one("one", "1"), usage: []string{"one"}, io: []string{"one", "1", "--kubeconfig", nope}},
		"tree":                               {down: one(), usage: []string{"a", "b"}, io: []string{"--kubeconfig", nope}},
		"install":                            {down: one("--set", "image.repository=a/b", "--wait=false"), usage: []string{"--set", "image.repositry=a"}, io: []string{"--values", nope}},
		"operator":                           {usage: []string{"a"}, io: []string{"--kubeconfig", nope}},
		"gardenlet":                          {usage: []string{}, io: []string{"--seed", "a", "--garden-kubeconfig", nope}},
		"admission-controller":               {usage: []string{"a"}, io: []string{"--kubeconfig", nope}},
		"admission-controller configuration": {usage: []string{"a"}},
		"resource-manager":                   {usage: []string{"a"}, io: []string{"--kubeconfig", nope}},
		"version":                            {usage: []string{"-o", "xml"}, io: []string{"--catalogue", nope}},
		"comment":                            {usage: []string{"a"}, io: []string{"--provider", "github", "--token-file", nope}},
		"evaluate":                           {usage: []string{"a"}},
	}
	for path, cmd := range runnableCommands(newRoot()) {
		row, known := rows[path]
		if strings.HasPrefix(path, "hook") {
			continue // TestHookRefused: Git determines its arguments and its exit code
		}
		require.True(t, known, "pergola %s has no row: what does it exit with?", path)
		if cmd.Flags().Lookup("kubeconfig") != nil && cmd.Flags().Lookup("log-level") == nil && path != "backup" && path != "restore" {
			require.NotNil(t, row.down, "pergola %s asks a cluster", path)
		}
		for what, args := range map[string][]string{"down": row.down, "usage": row.usage, "io": row.io} {
			if args == nil {
				continue
			}
			t.Run(path+" "+what, func(t *testing.T) {
				o := pergola(t, append(strings.Fields(path), args...)...)
				assert.Equal(t, exitUsage, o.code, "%+v", o)
				assert.NotEmpty(t, o.stdout+o.stderr)
				if what == "down" {
					assert.Contains(t, o.stdout+o.stderr, "does not answer")
					assert.NotContains(t, o.stdout+o.stderr, "failed to get server groups")
				}
			})
		}
	}
}

// TestEmptyFlags: the variable in --cluster "$CLUSTER" may be empty.
func TestEmptyFlags(t *testing.T) {
	for path, cmd := range runnableCommands(newRoot()) {
		if cmd.Flags().Lookup(flagLogLevel) != nil {
			continue // templates start roles, and there empty is the default
		}
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if f.Value.Type() != "string" && f.Value.Type() != "stringArray" {
				return
			}
			names := make([]string, strings.Count(cmd.Use, " "))
			o := pergola(t, slices.Concat(strings.Fields(path), []string{"--" + f.Name, ""}, slices.Repeat([]string{"a"}, len(names)))...)
			assert.Equal(t, exitUsage, o.code, "pergola %s --%s: %+v", path, f.Name, o)
			assert.Contains(t, o.stderr, "--"+f.Name+" is empty; give a value, or leave the flag out", path)
		})
	}
}

// TestNamesOfClusters: a kubeconfig for an unknown cluster is an error, because the command would
// fall back to another one.
func TestNamesOfClusters(t *testing.T) {
	dir, _ := repository(t)
	root := t.TempDir()
	writeFile(t, root, "a=b", unreachableConfig)
	config := filepath.Join(root, "a=b")
	replaceIn(t, dir, "landscape.yaml", "spec:\n", "spec:\n  clusters:\n    runtime: {context: a}\n")
	t.Setenv("KUBECONFIG", config)
	commands := map[string][]string{"apply": {dir}, "status": {dir}, "adopt": {dir}, "operate": {dir, "Seed local", "reconcile"}, "why": {dir, "Seed local", "--offline"}, "diff": {dir, "--live"}}
	for path, cmd := range runnableCommands(newRoot()) {
		if flag := cmd.Flags().Lookup("kubeconfig"); flag != nil && flag.Value.Type() == "stringArray" && path != "backup" && path != "restore" {
			require.NotNil(t, commands[path], "pergola %s takes NAME=PATH", path)
		}
	}
	for command, args := range commands {
		for flag, want := range map[string]string{
			"runtim=" + config:         `there is no cluster of the landscape "runtim"; did you mean "runtime"?; want one of local, runtime, virtual`,
			"Local=" + config:          `there is no cluster of the landscape "Local"; did you mean "local"?`,
			"moon=" + config:           `there is no cluster of the landscape "moon"; want one of local, runtime, virtual`,
			"=" + config:               `there is no cluster of the landscape "\"\""`,
			"local=" + root:            root + " is a folder",
			"local=":                   "the path is empty",
			"runtime=" + dir + "x":     "file " + dir + "x does not exist; give PATH, or NAME=PATH",
			filepath.Join(root, "x=y"): "file " + filepath.Join(root, "x=y") + " does not exist",
		} {
			o := pergola(t, append(append([]string{command}, args...), "--kubeconfig", flag)...)
			assert.Equal(t, exitUsage, o.code, "%s %s: %+v", command, flag, o)
			assert.Contains(t, o.stderr, "Error: --kubeconfig "+flag+": "+want, command)
		}
	}
	o := pergola(t, "status", dir, "--kubeconfig", "local="+config, "--kubeconfig", "local="+config)
	assert.Contains(t, o.stderr, `cluster "local" has two kubeconfigs`)
	o = pergola(t, "status", dir, "--kubeconfig", config)
	assert.Contains(t, o.stdout, "no access to cluster local", "a path may hold an equals sign")
}

// TestSuggestions: every message suggests a correction.
func TestSuggestions(t *testing.T) {
	dir, _ := repository(t)
	t.Chdir(filepath.Dir(dir))
	for line, want := range map[string]string{
		"diff --form main":                        "unknown flag: --form; did you mean --from? pergola diff --help lists the flags",
		"render landscape --componnet a":          "did you mean --component?",
		"apply landscape --dryrun":                "did you mean --dry-run?",
		"status landscape --jsonpath a":           "unknown flag: --jsonpath; pergola status --help lists the flags",
		"tree -x":                                 "unknown shorthand flag: 'x' in -x; pergola tree --help lists the flags",
		"validate landscape --strict=yes":         `--strict "yes": want true or false; the flag alone means true`,
		"render landscape --evaluation-timeout 5": `--evaluation-timeout "5": want a time with its unit, such as 30s, 5m or 1h30m`,
		"sync one --namespac a":                   "did you mean --namespace?",
		"status landscape --context a":            "set contexts in spec.clusters of landscape.yaml",
		"plan":                                    `there is no command "plan"; did you mean `,
		"vesion":                                  `did you mean version?`,
		"valdiate landscape":                      `did you mean validate?`,
		"logs -n garden":                          `there is no command "logs": kubectl logs`,
		"events":                                  "pergola history",
		"init":                                    "docs/tutorial/first-garden.md",
		"delete --all":                            `there is no command "delete": remove the declaration`,
		"explode":                                 "pergola --help lists the commands",
		"help nope":                               `there is no command "nope"`,
		"help apply nope":                         `there is no command "nope"`,
		"render landscape --component seed/etcd-drud":                             `--component: there is no component with bundles "seed/etcd-drud"; did you mean`,
		"render landscape --cluster loca":                                         `did you mean "local"?`,
		"render landscape --owner sed":                                            "--owner: there is no owner",
		"render landscape --component etcd-druid":                                 `there is no component with bundles "etcd-druid"; did you mean "seed/etcd-druid"?`,
		"render landscape --owner local":                                          `did you mean "seed/local"?`,
		"render landscape --cluster seed/local":                                   `did you mean "local"?`,
		"render landscape -o jsn":                                                 `--output "jsn": want one of yaml, json; did you mean "json"?`,
		"golden --components garden/vap":                                          `there is no component in the catalogue "garden/vap"; did you mean "garden/vpa"?`,
		"golden --components etcd-druid":                                          `there is no component in the catalogue "etcd-druid"; did you mean "garden/etcd-druid" or "seed/etcd-druid"?`,
		"flow sead":                                                               `want one of garden, seed, shoot; did you mean "seed"?`,
		"flow seed --operation delte":                                             `there is no operation "delte"; did you mean "delete"?; want one of `,
		"why landscape Seed local --offline --owner seed/locl":                    `--owner seed/locl: there is no owner in the landscape "seed/locl"; did you mean "seed/local"?`,
		"why landscape Seed local --offline --owner nobody":                       `--owner nobody: there is no owner in the landscape "nobody"; want one of seed/local`,
		"why landscape Seed local --offline --cluster locl":                       `--cluster locl: there is no cluster of the landscape "locl"; did you mean "local"?; want one of runtime, virtual, local`,
		"why landscape Seed local --offline --cluster nobody":                     `--cluster nobody: there is no cluster of the landscape "nobody"; want one of runtime, virtual, local`,
		"why landscape Seed local --offline --cluster nobody --owner seed":        `--cluster nobody: there is no cluster`,
		"why landscape Seed local --offline --cluster runtime --owner seed/local": `--owner seed/local and --cluster runtime: the owner has no object on that cluster`,
		"install --role gardenlett":                                               `want one of operator, gardenlet, gardenlet-access; did you mean "gardenlet"?`,
		"comment --provider githup":                                               `--provider: there is no forge "githup"; did you mean "github"?`,
		"admission-controller configuration --cluster virtul":                     `--cluster: there is no cluster with webhooks "virtul"; did you mean "virtual"?; want one of runtime, virtual`,
		"operator --log-level inf":                                                `--log-level "inf": want one of info, debug, error; did you mean "info"?`,
		"why Seed landscape local":                                                "landscape is one, and comes first",
		"operate Seed landscape reconcile":                                        `landscape is one, and comes first: pergola operate LANDSCAPE OBJECT OPERATION`,
		"render landscap":                                                         "did you mean landscape?",
		"sync landscape":                                                          "landscape is the folder of a landscape, but the command needs a Landscape in a cluster: its landscape is called small; give garden/small",
	} {
		o := pergola(t, strings.Fields(line)...)
		assert.Equal(t, exitUsage, o.code, "%s: %+v", line, o)
		assert.Contains(t, o.stderr, want, line)
		assert.Less(t, len(o.stderr), 700, line)
	}
	writeFile(t, dir, "garden/a.txt", "")
	assert.Contains(t, pergola(t, "render", filepath.Join("landscape", "garden")).stderr, "the folder above is one: landscape\n")
	assert.Contains(t, pergola(t, "render", ".").stderr, "landscapes near it: landscape\n")
}

// TestVersion: the output has the versions that a bug report needs.
func TestVersion(t *testing.T) {
	for _, want := range []string{"", "0123456789012345678901234567890123456789", "0123456789012345678901234567890123456789-dirty"} {
		commit = want
		t.Cleanup(func() { commit = "" })
		o := pergola(t, "version", "-o", "json")
		v := decode[buildVersions](t, o)
		assert.Equal(t, version, v.Version)
		assert.Equal(t, version, v.Catalogue)
		assert.Regexp(t, `^v1\.\d+\.\d+$`, v.Gardener)
		assert.Regexp(t, `^go1\.`, v.Go)
		if want != "" {
			assert.Equal(t, want, v.Commit)
		}
		text := pergola(t, "version").stdout
		for _, line := range []string{v.Version, v.Commit, v.Go, v.Gardener} {
			assert.Contains(t, text, line)
		}
	}
}
