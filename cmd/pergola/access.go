package main

import (
	"errors"
	"fmt"
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
	"github.com/pergola-dev/pergola/landscapes"
	"github.com/pergola-dev/pergola/plan"
)

// accessFlags say how the clusters are reached.
type accessFlags struct {
	kubeconfigs []string
	timeout     time.Duration
}

func (a *accessFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&a.kubeconfigs, "kubeconfig", nil, "kubeconfig for all contexts (PATH) or for one cluster (NAME=PATH); may be given several times (default: KUBECONFIG)")
	cmd.Flags().DurationVar(&a.timeout, "timeout", 15*time.Minute, "give up after this time")
}

func (a accessFlags) access() landscape.Access {
	out := landscape.Access{ByName: map[string]string{}}
	for _, k := range a.kubeconfigs {
		if name, path, ok := strings.Cut(k, "="); ok {
			out.ByName[name] = path
		} else {
			out.Default = append(out.Default, k)
		}
	}
	if len(out.Default) == 0 {
		out.Default = filepath.SplitList(os.Getenv(clientcmd.RecommendedConfigPathEnvVar))
	}
	out.Given = len(out.Default) > 0
	if len(out.Default) == 0 {
		out.Default = []string{clientcmd.RecommendedHomeFile}
	}
	return out
}

// newConverger connects to the clusters of a landscape. Without any access it fails; a single cluster that
// cannot be configured is reported by the converger where it is needed.
func newConverger(cmd *cobra.Command, l *landscapes.Landscape, flags accessFlags, progress *progress, approved []string, forced ...string) (*landscape.Converger, error) {
	if flags.timeout <= 0 {
		return nil, fmt.Errorf("--timeout %s: want a time above zero, such as 15m", flags.timeout)
	}
	names, err := landscape.ClusterNames(l)
	if err != nil {
		return nil, err
	}
	configs := map[string]*rest.Config{}
	var problems []error
	access := flags.access()
	for _, name := range names {
		config, err := access.Config(l, name)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		configs[name] = config
	}
	if configs[landscape.Runtime] == nil {
		return nil, errors.Join(problems...)
	}
	for _, p := range problems {
		fmt.Fprintln(cmd.ErrOrStderr(), "Warning:", p)
	}
	gate, err := gateOf(l, approved)
	if err != nil {
		return nil, err
	}
	options := landscape.Options{
		Catalogue: catalogue(cmd), Configs: configs, Clock: clock.RealClock{}, Holder: holderOf("apply"), Version: version,
		Thresholds: landscape.Thresholds(l), Gate: gate,
		Force: func(r apply.Ref) bool { return slices.Contains(forced, r.String()) },
		ForceHint: func(r apply.Ref) string {
			return fmt.Sprintf("overwrite it with pergola apply --force-conflicts %q", r)
		},
	}
	if progress != nil {
		options.OnEvent, options.OnObject, options.OnDrift = progress.event, progress.object, progress.drift
		options.OnWaiting = progress.waiting
	}
	return landscape.New(l, options)
}

// convergerOf loads a landscape, which has to be valid, and connects to its clusters, for a command that applies nothing.
func convergerOf(cmd *cobra.Command, dir string, flags accessFlags) (*landscape.Converger, error) {
	l, err := loadValid(cmd, dir)
	if err != nil {
		return nil, err
	}
	return newConverger(cmd, l, flags, nil, nil)
}

// gateOf is the deletion gate of a landscape.
func gateOf(l *landscapes.Landscape, approved []string) (plan.Gate, error) {
	return landscape.Gate(l, approved)
}
