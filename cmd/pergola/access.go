// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/landscape"
	"github.com/pergola-dev/pergola/controllers/permit"
	"github.com/pergola-dev/pergola/internal/unknown"
	"github.com/pergola-dev/pergola/landscapes"
	"github.com/pergola-dev/pergola/schemas"
)

// accessFlags select the kubeconfigs and the timeout.
type accessFlags struct {
	kubeconfigs []string
	timeout     time.Duration
}

func (a *accessFlags) register(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&a.kubeconfigs, "kubeconfig", nil, "kubeconfig for all contexts (PATH) or for one cluster (NAME=PATH); may be given several times (default: KUBECONFIG)")
	cmd.Flags().DurationVar(&a.timeout, "timeout", 15*time.Minute, "give up after this time")
}

// commandFlags returns the flags that another command needs for the same clusters, with a leading
// space.
func (a accessFlags) commandFlags() string {
	out := ""
	for _, k := range a.kubeconfigs {
		out += " --kubeconfig " + landscape.QuoteArgument(k)
	}
	return out
}

// resolve converts the flags for a landscape. An unknown cluster name or a missing file is an
// error: otherwise the command would use a different cluster than intended.
func (a accessFlags) resolve(l *landscapes.Landscape) (landscape.Access, error) {
	if a.timeout <= 0 {
		return landscape.Access{}, fmt.Errorf("--timeout %s: want a time above zero, such as 15m", a.timeout)
	}
	out := landscape.Access{KubeconfigByCluster: map[string]string{}}
	for _, k := range a.kubeconfigs {
		name, path := kubeconfigFlag(k)
		_, repeated := out.KubeconfigByCluster[name]
		switch {
		case repeated:
			return out, fmt.Errorf("--kubeconfig %s: cluster %q has two kubeconfigs: give one", k, name)
		case name != "":
			if err := knownCluster(l, name); err != nil {
				return out, fmt.Errorf("--kubeconfig %s: %w", k, err)
			}
			out.KubeconfigByCluster[name] = path
		default:
			out.DefaultKubeconfigs = append(out.DefaultKubeconfigs, path)
		}
		if err := requireFile(path); err != nil {
			return out, fmt.Errorf("--kubeconfig %s: %w; give PATH, or NAME=PATH", k, err)
		}
	}
	out.FromCommandLine = len(out.DefaultKubeconfigs) > 0
	if !out.FromCommandLine {
		out.DefaultKubeconfigs = filepath.SplitList(os.Getenv(clientcmd.RecommendedConfigPathEnvVar))
	}
	out.ChosenByPerson = len(out.DefaultKubeconfigs) > 0
	if len(out.DefaultKubeconfigs) == 0 {
		out.DefaultKubeconfigs = []string{clientcmd.RecommendedHomeFile}
	}
	return out, nil
}

// kubeconfigFlag splits NAME=PATH. Cluster names contain no slash, unlike paths with an equals
// sign.
func kubeconfigFlag(flag string) (name, path string) {
	if name, path, ok := strings.Cut(flag, "="); ok && !strings.ContainsAny(name, `/\`) {
		return cmp.Or(name, `""`), path
	}
	return "", flag
}

func requireFile(path string) error {
	if path == "" {
		return errors.New("the path is empty")
	}
	info, err := os.Stat(path)
	if err == nil && info.IsDir() {
		return fmt.Errorf("%s is a folder", path)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("file %s does not exist", path)
	}
	return err
}

// knownCluster fails for a name that is not a cluster of the landscape. If a file cannot be read,
// every name passes, because the file may contain that Seed.
func knownCluster(l *landscapes.Landscape, name string) error {
	known, err := landscape.ClusterNames(l)
	if err != nil {
		return err
	}
	known = append(known, landscape.Access{}.ClustersWithAccess(l)...)
	slices.Sort(known)
	if known = slices.Compact(known); l.Incomplete || slices.Contains(known, name) {
		return nil
	}
	return unknown.NameError("cluster of the landscape", name, known)
}

// newConverger connects to the clusters of a landscape. It fails without any access; the converger
// reports a single misconfigured cluster where it needs it.
func newConverger(cmd *cobra.Command, l *landscapes.Landscape, flags accessFlags, progress *progress, approved []string, forced ...string) (*landscape.Converger, error) {
	names, err := landscape.ClusterNames(l)
	if err != nil {
		return nil, err
	}
	access, err := flags.resolve(l)
	if err != nil {
		return nil, err
	}
	options, err := convergerOptions(cmd, l, access, names)
	if err != nil {
		return nil, err
	}
	if options.Permits.Gate, err = deletionGate(l, approved); err != nil {
		return nil, err
	}
	options.Takeover.Force = func(r apply.Ref) bool { return slices.Contains(forced, r.String()) }
	options.Takeover.ForceHint = func(r apply.Ref) string {
		return fmt.Sprintf("overwrite it with pergola apply %s --force-conflicts %q%s", l.Dir, r, flags.commandFlags())
	}
	if progress != nil {
		options.Listeners.OnEvent, options.Listeners.OnObject, options.Listeners.OnDrift = progress.showEvent, progress.printObject, progress.printDrift
		options.Listeners.OnLeaseWait = progress.printWaiting
	}
	return landscape.New(l, options)
}

// convergerOptions returns the options that every converger needs: its identity and the access to
// the named clusters.
func convergerOptions(cmd *cobra.Command, l *landscapes.Landscape, access landscape.Access, names []string) (landscape.Options, error) {
	configs, reach := map[string]*rest.Config{}, map[string]string{}
	var problems []error
	for _, name := range names {
		if configs[landscape.Runtime] == nil && access.IsDerived(l, name) {
			continue // it is found in the runtime cluster, about which there is a problem already
		}
		config, err := clusterConfig(access, l, name, configs[landscape.Runtime])
		if err != nil {
			problems = append(problems, err)
			continue
		}
		configs[name], reach[name] = config, access.KubectlFlags(l, name)
	}
	if configs[landscape.Runtime] == nil {
		return landscape.Options{}, errors.Join(problems...)
	}
	for _, p := range problems {
		fmt.Fprintln(cmd.ErrOrStderr(), "Warning:", p)
	}
	return landscape.Options{
		Catalogue:   catalogueFS(cmd),
		Shared:      landscape.SharedState{Charts: newChartPuller(cmd)},
		Connections: landscape.Connections{Configs: configs, KubectlFlags: reach, OutsideCluster: true},
		Clock:       clock.RealClock{},
		Process:     landscape.ProcessIdentity{Holder: leaseHolder("apply"), Version: version},
		Timing:      landscape.Timing{Thresholds: landscape.ConditionThresholds(l)},
	}, nil
}

// clusterConfig returns the configured access to a cluster. For the virtual garden it can be
// derived from the runtime cluster.
func clusterConfig(access landscape.Access, l *landscapes.Landscape, name string, runtime *rest.Config) (*rest.Config, error) {
	if runtime != nil && access.IsDerived(l, name) {
		return landscape.VirtualGardenConfig(l, runtime, clock.RealClock{})
	}
	return access.RESTConfig(l, name)
}

// loadConverger loads a valid landscape and connects to its clusters, for commands that apply
// nothing.
func loadConverger(cmd *cobra.Command, dir string, flags accessFlags) (*landscape.Converger, error) {
	l, err := loadValid(cmd, dir)
	if err != nil {
		return nil, err
	}
	return newConverger(cmd, l, flags, nil, nil)
}

// loadStatusConverger is loadConverger for read-only commands: it also connects for an invalid
// landscape and reports that in invalid.
func loadStatusConverger(cmd *cobra.Command, dir string, flags accessFlags) (c *landscape.Converger, invalid string, err error) {
	read := newReader(cmd)
	l, violations, err := read.Load(cmd.Context(), dir)
	if err != nil {
		return nil, "", err
	}
	all, err := read.Findings(cmd.Context(), l, violations)
	if err != nil {
		return nil, "", err
	}
	if !schemas.HasErrors(all) {
		if err := read.RequireNoErrors(l, all, ""); err != nil {
			return nil, "", err
		}
		c, err = newConverger(cmd, l, flags, nil, nil)
		return c, "", err
	}
	refused := read.RequireNoErrors(l, all, "")
	access, err := flags.resolve(l)
	if err != nil {
		return nil, "", err
	}
	if l.Config.Name == "" || l.Config.Spec.Clusters == nil && len(access.KubeconfigByCluster) == 0 {
		return nil, "", refused // which landscape, or which clusters, cannot be read
	}
	options, err := convergerOptions(cmd, l, access, access.ClustersWithAccess(l))
	if err != nil {
		return nil, "", err
	}
	c, err = landscape.NewFromInventories(l, options)
	return c, fmt.Sprintf("its files are not valid (see pergola validate %s): the tree shows the applied state, and nothing is judged or compared", dir), err
}

// deletionGate returns the deletion gate of a landscape.
func deletionGate(l *landscapes.Landscape, approved []string) (permit.Gate, error) {
	return landscape.DeletionGate(l, approved)
}
