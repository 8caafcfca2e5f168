// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	utilrand "k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/pergola-dev/pergola/internal/addresses"
	"github.com/pergola-dev/pergola/internal/unknown"
)

// The values of --log-level and --log-format; the first one is the default.
var (
	logLevels  = []string{"info", "debug", "error"}
	logFormats = []string{"json", "text"}
)

const (
	flagLogLevel      = "log-level"
	flagHealthPort    = "health-port"
	flagShutdownDelay = "shutdown-delay"
)

// logFlags configure the log of a long-running role.
type logFlags struct{ level, format string }

func (l *logFlags) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&l.level, flagLogLevel, logLevels[0], "lowest level to log: "+strings.Join(logLevels, ", "))
	cmd.Flags().StringVar(&l.format, "log-format", logFormats[0], "format of the log: "+strings.Join(logFormats, ", "))
	_ = cmd.RegisterFlagCompletionFunc(flagLogLevel, cobra.FixedCompletions(logLevels, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("log-format", cobra.FixedCompletions(logFormats, cobra.ShellCompDirectiveNoFileComp))
}

// logger writes to standard error, and so does controller-runtime.
func (l logFlags) logger(cmd *cobra.Command) (*slog.Logger, error) {
	if !slices.Contains(logLevels, l.level) {
		return nil, fmt.Errorf("--log-level %q: want one of %s%s", l.level, strings.Join(logLevels, ", "), unknown.Hint(l.level, logLevels))
	}
	if !slices.Contains(logFormats, l.format) {
		return nil, fmt.Errorf("--log-format %q: want one of %s%s", l.format, strings.Join(logFormats, ", "), unknown.Hint(l.format, logFormats))
	}
	options := &slog.HandlerOptions{Level: map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "error": slog.LevelError}[l.level]}
	var handler slog.Handler = slog.NewJSONHandler(cmd.ErrOrStderr(), options)
	if l.format == "text" {
		handler = slog.NewTextHandler(cmd.ErrOrStderr(), options)
	}
	ctrllog.SetLogger(logr.FromSlogHandler(handler))
	return slog.New(handler), nil
}

// discardControllerRuntimeLog silences controller-runtime for commands that are not roles.
// Otherwise it would complain on standard error that no logger is set.
func discardControllerRuntimeLog(cmd *cobra.Command, _ []string) {
	if cmd.Flags().Lookup(flagLogLevel) == nil {
		ctrllog.SetLogger(logr.Discard())
	}
}

// portFlags are the ports of a role.
type portFlags struct{ health, metrics int }

func (p *portFlags) register(cmd *cobra.Command, health, metrics int) {
	cmd.Flags().IntVar(&p.health, flagHealthPort, health, "port of /healthz and /readyz; -1 for none")
	cmd.Flags().IntVar(&p.metrics, "metrics-port", metrics, "port of /metrics; -1 for none")
}

// addBindAddress adds the flag that restricts a role to one address.
func addBindAddress(cmd *cobra.Command, address *string) {
	cmd.Flags().StringVar(address, "bind-address", "", "IP address to listen on (default: all)")
}

// clusterAccess reads a kubeconfig. Without a path it uses the pod's access or KUBECONFIG.
func clusterAccess(cluster, path string) (*rest.Config, error) {
	if path == "" {
		if config, err := rest.InClusterConfig(); !errors.Is(err, rest.ErrNotInCluster) {
			return config, err
		}
	}
	return restConfig("the "+cluster+" cluster", path, "")
}

// isInCluster reports whether clusterAccess uses the pod's access.
func isInCluster(path string) bool {
	_, err := rest.InClusterConfig()
	return path == "" && !errors.Is(err, rest.ErrNotInCluster)
}

// restConfig reads a kubeconfig, or KUBECONFIG without a path. An empty context means the current
// one.
func restConfig(cluster, path, context string) (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = path
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: context}).ClientConfig()
	switch {
	case err == nil:
		return config, nil
	case path != "" && requireFile(path) != nil:
		hint := ""
		if name, rest, named := strings.Cut(path, "="); named && requireFile(rest) == nil {
			hint = fmt.Sprintf("; this command asks one cluster: give --kubeconfig %s, without %s=", rest, name)
		}
		return nil, fmt.Errorf("access to %s, kubeconfig %q: %w%s", cluster, path, requireFile(path), hint)
	case missingContextError(rules, context) != nil:
		return nil, fmt.Errorf("access to %s: %w", cluster, missingContextError(rules, context))
	case clientcmd.IsEmptyConfig(err) && path != "":
		return nil, fmt.Errorf("access to %s: the kubeconfig %s names no cluster, or has no current context; its contexts: %s", cluster, path, contextList(rules))
	case clientcmd.IsEmptyConfig(err) && os.Getenv(clientcmd.RecommendedConfigPathEnvVar) != "":
		set := filepath.SplitList(os.Getenv(clientcmd.RecommendedConfigPathEnvVar))
		if !slices.ContainsFunc(set, func(file string) bool { return requireFile(file) == nil }) {
			return nil, fmt.Errorf("access to %s: KUBECONFIG names %s, which does not exist", cluster, strings.Join(set, ", "))
		}
		return nil, fmt.Errorf("access to %s: the kubeconfig of KUBECONFIG names no cluster, or has no current context; its contexts: %s", cluster, contextList(rules))
	case clientcmd.IsEmptyConfig(err):
		return nil, fmt.Errorf("access to %s: there is no kubeconfig: set KUBECONFIG, or name one with --kubeconfig", cluster)
	case path != "":
		return nil, fmt.Errorf("access to %s, kubeconfig %q: %w", cluster, path, addresses.RedactError(err))
	}
	return nil, fmt.Errorf("access to %s: %w", cluster, addresses.RedactError(err))
}

// missingContextError returns an error with the existing contexts if the wanted one (of a flag, or
// else the current one) does not exist.
func missingContextError(rules *clientcmd.ClientConfigLoadingRules, wanted string) error {
	config, err := rules.Load()
	if err != nil {
		return nil // another problem
	}
	name := cmp.Or(wanted, config.CurrentContext)
	if name == "" || len(config.Contexts) == 0 || config.Contexts[name] != nil {
		return nil
	}
	if wanted == "" {
		return fmt.Errorf("the current context %q of the kubeconfig does not exist: run kubectl config use-context, or give --context; the contexts are %s", name, contextList(rules))
	}
	return fmt.Errorf("there is no context %q%s; the contexts are %s", name, unknown.Hint(name, slices.Collect(maps.Keys(config.Contexts))), contextList(rules))
}

func contextList(rules *clientcmd.ClientConfigLoadingRules) string {
	config, err := rules.Load()
	if err != nil || len(config.Contexts) == 0 {
		return "none"
	}
	return strings.Join(slices.Sorted(maps.Keys(config.Contexts)), ", ")
}

// leaseHolder names this process in leases: host, role and process id. The random suffix
// distinguishes containers with equal host names and process ids.
func leaseHolder(role string) string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown-host"
	}
	return fmt.Sprintf("%s_pergola-%s_%d_%s", host, role, os.Getpid(), utilrand.String(5))
}
