// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/user"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/commands/revisions"
	"github.com/pergola-dev/pergola/controllers/landscape"
	"github.com/pergola-dev/pergola/controllers/operator"
	"github.com/pergola-dev/pergola/source/receiver"
)

// defaultNamespace is the namespace of Landscapes if no flag says otherwise.
const defaultNamespace = "garden"

// objectFlags select a Landscape object and its cluster.
type objectFlags struct {
	kubeconfig, context, namespace string
}

func (o *objectFlags) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig of the runtime cluster (default: KUBECONFIG)")
	cmd.Flags().StringVar(&o.context, "context", "", "context of the kubeconfig (default: its current one)")
	cmd.Flags().StringVarP(&o.namespace, "namespace", "n", defaultNamespace, "namespace of the Landscape, if its name does not contain one")
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return explainUnreachable(run(cmd, args)) }
}

// explainUnreachable explains an error of a command that asks one cluster: if it does not answer,
// nothing else matters.
func explainUnreachable(err error) error {
	if down, is := errors.AsType[*apply.UnreachableError](err); is {
		return fmt.Errorf("%w (check that the API server runs, and check its address and the network to it)", down)
	}
	return err
}

// key parses the argument NAME or NAMESPACE/NAME of a Landscape.
func (o *objectFlags) key(name string) receiver.Key {
	if namespace, rest, ok := strings.Cut(name, "/"); ok {
		return receiver.Key{Namespace: namespace, Name: rest}
	}
	return receiver.Key{Namespace: o.namespace, Name: name}
}

// landscapeClient returns the Landscape that an argument names.
func (o *objectFlags) landscapeClient(name string) (*operator.LandscapeClient, error) {
	key := o.key(name)
	if key.Name == "" || key.Namespace == "" || strings.ContainsAny(key.Name, "/.") {
		return nil, fmt.Errorf("%q is not the name of a Landscape in a cluster: give NAME or NAMESPACE/NAME, not a folder%s", name, landscapeNameHint(name))
	}
	if hint := landscapeNameHint(name); hint != "" {
		return nil, fmt.Errorf("%s is the folder of a landscape, but the command needs a Landscape in a cluster%s; give %s/%s", name, hint, o.namespace, revisions.NameInFile(os.DirFS(name), revisions.LandscapeFile))
	}
	config, err := o.config()
	if err != nil {
		return nil, err
	}
	return operator.NewLandscapeClient(config, key, clock.RealClock{}, callingUser())
}

// landscapeNameHint names the landscape of a folder, for users who pass the folder; it is "" for
// other folders.
func landscapeNameHint(folder string) string {
	if name := revisions.NameInFile(os.DirFS(folder), revisions.LandscapeFile); name != "" {
		return ": its landscape is called " + name
	}
	return ""
}

// kubectl returns the kubectl command for the same cluster, whatever the shell's current context
// is.
func (o *objectFlags) kubectl() string { return "kubectl" + o.commandFlags() }

// commandFlags returns the flags that another command needs for the same cluster, with a leading
// space.
func (o *objectFlags) commandFlags() string {
	out := ""
	if o.kubeconfig != "" {
		out += " --kubeconfig " + landscape.QuoteArgument(o.kubeconfig)
	}
	if o.context != "" {
		out += " --context " + landscape.QuoteArgument(o.context)
	}
	return out
}

// commandLine returns another command about the named Landscape, with the same namespace and
// cluster.
func (o *objectFlags) commandLine(verb, name string, rest ...string) string {
	if o.namespace != defaultNamespace {
		name = o.key(name).String()
	}
	return strings.Join(append([]string{"pergola", verb, name}, rest...), " ") + o.commandFlags()
}

// withCommandFlags adds the cluster flags to the commands in a text of the operator.
func (o *objectFlags) withCommandFlags(text, landscape string) string {
	flags := o.commandFlags()
	if flags == "" {
		return text
	}
	command := regexp.MustCompile(`(pergola (?:history|approve|resume|rollback|sync) ` + regexp.QuoteMeta(landscape) + `)([^-a-z0-9.]|$)`)
	return command.ReplaceAllString(text, "${1}"+strings.ReplaceAll(flags, "$", "$$")+"${2}")
}

// config returns the access to the cluster.
func (o *objectFlags) config() (*rest.Config, error) {
	config, err := restConfig("the cluster", o.kubeconfig, o.context)
	if err != nil {
		return nil, err
	}
	// no client-side limit: the server has priority and fairness
	config.UserAgent, config.QPS = "pergola", -1
	apply.ReportUnreachable(config, cmp.Or(o.context, "(current context)"))
	return config, nil
}

// otherContexts returns the contexts of the kubeconfig that are not in use, or nil if it cannot be
// read.
func (o *objectFlags) otherContexts() []string {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.kubeconfig
	config, err := rules.Load()
	if err != nil {
		return nil
	}
	used := cmp.Or(o.context, config.CurrentContext)
	return slices.DeleteFunc(slices.Sorted(maps.Keys(config.Contexts)), func(name string) bool { return name == used })
}

// callingUser returns the calling user, for the record.
func callingUser() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return ""
}
