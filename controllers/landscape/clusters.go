// SPDX-License-Identifier: Apache-2.0

package landscape

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sort"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/internal/addresses"
	"github.com/pergola-dev/pergola/landscapes"
)

// Names of the clusters that every landscape has; the cluster of a seed has the name of its Seed.
const (
	Runtime = "runtime"
	Virtual = "virtual"
)

// Access lists the sources of kubeconfigs besides landscape.yaml.
type Access struct {
	// KubeconfigByCluster maps cluster names to kubeconfig files (--kubeconfig NAME=PATH).
	KubeconfigByCluster map[string]string
	// DefaultKubeconfigs kubeconfig files, merged (--kubeconfig PATH, or the KUBECONFIG list).
	DefaultKubeconfigs []string
	// FromCommandLine means that the default files come from a command line, so another command
	// does not know them.
	FromCommandLine bool
	// ChosenByPerson means that a person named the default files with --kubeconfig or KUBECONFIG.
	ChosenByPerson bool
}

// ClusterNames returns the clusters of a landscape: runtime, virtual, then its seeds.
func ClusterNames(l *landscapes.Landscape) ([]string, error) {
	seeds, err := l.Seeds()
	if err != nil {
		return nil, err
	}
	names := []string{}
	for _, s := range seeds {
		names = append(names, s.Object.Name)
	}
	sort.Strings(names)
	return append([]string{Runtime, Virtual}, names...), nil
}

// RESTConfig returns the REST config of one cluster.
func (a Access) RESTConfig(l *landscapes.Landscape, name string) (*rest.Config, error) {
	access, declared := declaredAccess(l.Config.Spec.Clusters, name)
	rules := &clientcmd.ClientConfigLoadingRules{Precedence: a.DefaultKubeconfigs}
	overrides := &clientcmd.ConfigOverrides{}
	source := "the default kubeconfig"
	switch path, ok := a.KubeconfigByCluster[name]; {
	case ok:
		rules.ExplicitPath, source = path, path
	case declared && access.SecretRef != nil:
		return nil, fmt.Errorf("cluster %s: a kubeconfig from a Secret is only read in the cluster: give --kubeconfig %s=PATH", name, name)
	case declared && access.Kubeconfig != "":
		p := access.Kubeconfig
		if !filepath.IsAbs(p) {
			p = filepath.Join(l.Dir, p)
		}
		rules.ExplicitPath, source = p, p
		overrides.CurrentContext = access.Context
	case declared && access.Context != "":
		overrides.CurrentContext = access.Context
	default:
		return nil, fmt.Errorf("cluster %s: no access: set spec.clusters in landscape.yaml, or give --kubeconfig %s=PATH", name, name)
	}
	if rules.ExplicitPath != "" {
		if _, err := os.Stat(rules.ExplicitPath); err != nil {
			return nil, fmt.Errorf("cluster %s: its kubeconfig cannot be read: %w", name, err)
		}
	}
	if rules.ExplicitPath == "" && !hasAnyFile(a.DefaultKubeconfigs) {
		if a.ChosenByPerson {
			return nil, fmt.Errorf("cluster %s: context %q is wanted, but %s does not exist: give the path of a kubeconfig that has it", name, overrides.CurrentContext, strings.Join(a.DefaultKubeconfigs, ", "))
		}
		return nil, fmt.Errorf("cluster %s: context %q is wanted, but there is no kubeconfig: set KUBECONFIG, or give --kubeconfig PATH or --kubeconfig %s=PATH", name, overrides.CurrentContext, name)
	}
	if wanted := overrides.CurrentContext; wanted != "" {
		if err := checkContext(rules, wanted); err != nil {
			return nil, fmt.Errorf("cluster %s: context %q of %s: %w", name, wanted, source, err)
		}
	}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("cluster %s: context %q of %s: %w", name, overrides.CurrentContext, source, addresses.RedactError(err))
	}
	config.UserAgent = "pergola"
	return config, nil
}

// KubectlFlags returns the flags for kubectl, or for commands of Pergola that need one cluster. It
// omits what the environment sets.
func (a Access) KubectlFlags(l *landscapes.Landscape, name string) string {
	access, declared := declaredAccess(l.Config.Spec.Clusters, name)
	var out []string
	if path, ok := a.KubeconfigByCluster[name]; ok {
		return "--kubeconfig " + QuoteArgument(path)
	}
	switch {
	case !declared:
	case access.Kubeconfig != "":
		path := access.Kubeconfig
		if !filepath.IsAbs(path) {
			path = filepath.Join(l.Dir, path)
		}
		out = append(out, "--kubeconfig "+QuoteArgument(path))
	case a.FromCommandLine:
		out = append(out, "--kubeconfig "+QuoteArgument(a.fileWithContext(access.Context)))
	}
	if declared && access.Context != "" {
		out = append(out, "--context "+QuoteArgument(access.Context))
	}
	return strings.Join(out, " ")
}

// fileWithContext returns the first default file that has a context.
func (a Access) fileWithContext(context string) string {
	for _, file := range a.DefaultKubeconfigs {
		if config, err := clientcmd.LoadFromFile(file); err == nil && config.Contexts[context] != nil {
			return file
		}
	}
	return a.DefaultKubeconfigs[0]
}

// shellWordPattern matches arguments that need no quotes in a shell.
var shellWordPattern = regexp.MustCompile(`^[A-Za-z0-9@%+=:,./_-]+$`)

// QuoteArgument returns an argument as one writes it in a shell.
func QuoteArgument(argument string) string {
	if shellWordPattern.MatchString(argument) {
		return argument
	}
	return "'" + strings.ReplaceAll(argument, "'", `'\''`) + "'"
}

// checkContext returns an error that lists the existing contexts if the wanted one does not exist.
func checkContext(rules *clientcmd.ClientConfigLoadingRules, wanted string) error {
	config, err := rules.Load()
	if err != nil {
		return err
	}
	if config.Contexts[wanted] != nil {
		return nil
	}
	if len(config.Contexts) == 0 {
		return errors.New("it does not exist, and no other does: give another kubeconfig")
	}
	return fmt.Errorf("it does not exist: use one of %s in spec.clusters of landscape.yaml, or give another kubeconfig",
		strings.Join(slices.Sorted(maps.Keys(config.Contexts)), ", "))
}

func hasAnyFile(paths []string) bool {
	for _, p := range paths {
		if _, err := os.Stat(p); err == nil {
			return true
		}
	}
	return false
}

func declaredAccess(c *landscapev1alpha1.Clusters, name string) (landscapev1alpha1.ClusterAccess, bool) {
	if c == nil {
		return landscapev1alpha1.ClusterAccess{}, false
	}
	switch name {
	case Runtime:
		if c.Runtime != nil {
			return *c.Runtime, true
		}
	case Virtual:
		if c.Virtual != nil {
			return *c.Virtual, true
		}
	default:
		access, ok := c.Seeds[name]
		return access, ok
	}
	return landscapev1alpha1.ClusterAccess{}, false
}
