// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/strvals"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/clock"
	"sigs.k8s.io/yaml"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/commands"
	"github.com/pergola-dev/pergola/controllers/conventions"
	"github.com/pergola-dev/pergola/controllers/permit"
	"github.com/pergola-dev/pergola/deploy"
	"github.com/pergola-dev/pergola/deploy/install"
	"github.com/pergola-dev/pergola/internal/unknown"
	"github.com/pergola-dev/pergola/render"
)

// installCommand is one run of `pergola install` or `pergola uninstall`.
type installCommand struct {
	role, namespace     string
	seed                string // value gardenlet.seed
	values, set         []string
	approved            []string
	kubeconfig, context string
	output              string
	timeout             time.Duration
	dryRun, uninstall   bool
	force, wait         bool
}

func newInstall() *cobra.Command {
	var i installCommand
	cmd := &cobra.Command{
		Use:   "install",
		Short: "Install Pergola itself into a cluster",
		Long: `Renders the Helm chart that is built into the program, and applies it. Objects that the new version
no longer has are deleted. Fields that others have set are reported as conflicts. Unchanged objects
are not written. The command waits until the Deployment is healthy.

Roles: operator (in the runtime cluster), gardenlet (in a seed), gardenlet-access (in the virtual
garden: the ServiceAccount of a gardenlet and its rights). The chart's values are in
deploy/charts/pergola/values.yaml. image.repository is required, and gardenlet.seed for the
gardenlet. The namespace is created.

-o yaml prints the objects and asks no cluster.

--uninstall deletes the installed objects, except the CustomResourceDefinition, the Landscapes, the
priority class and the namespace. Objects that Pergola has applied stay, too. With --role
gardenlet-access, --uninstall needs --set gardenlet.seed=NAME and deletes only the access of that
gardenlet.

Deletions beyond the gate (the default gate of landscapes) are held, with the ids that approve them.

Exit code 1: something failed, is held, or is not healthy in time. With --dry-run, exit code 1 means
that there are differences.`,
		Example: `  pergola install --set image.repository=registry.example.org/pergola
  pergola install --values pergola.yaml --dry-run
  pergola install --role gardenlet --set gardenlet.seed=local --values pergola.yaml --context seed-local
  pergola install --values pergola.yaml -o yaml > pergola-objects.yaml
  pergola install --uninstall`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return i.run(cmd) },
	}
	addOutputFlag(cmd, &i.output, "text", "yaml")
	flags := cmd.Flags()
	flags.StringVar(&i.role, "role", string(deploy.Operator), "role to install: operator, gardenlet or gardenlet-access")
	flags.StringVarP(&i.namespace, "namespace", "n", deploy.Namespace, "namespace of the installation")
	flags.StringArrayVarP(&i.values, "values", "f", nil, "file with values of the chart; may be given several times, and the last one takes precedence (- for stdin)")
	flags.StringArrayVar(&i.set, "set", nil, "a value as PATH=VALUE, as with helm; may be given several times")
	flags.StringVar(&i.kubeconfig, "kubeconfig", "", "kubeconfig of the cluster (default: KUBECONFIG)")
	flags.StringVar(&i.context, "context", "", "context of the kubeconfig (default: its current one)")
	flags.BoolVar(&i.dryRun, "dry-run", false, "only show what would change, by server-side dry run; exit code 1 if anything would")
	flags.BoolVar(&i.uninstall, "uninstall", false, "delete the installed objects")
	flags.BoolVar(&i.force, "force-conflicts", false, "take over fields that others have set, such as an installation by Helm")
	flags.StringArrayVar(&i.approved, "approve", nil, "id of a held deletion to approve, see --dry-run; may be given several times")
	flags.BoolVar(&i.wait, "wait", true, "wait until the installation is healthy")
	flags.DurationVar(&i.timeout, "timeout", 5*time.Minute, "give up after this time")
	return cmd
}

func (i *installCommand) run(cmd *cobra.Command) error {
	role, err := deploy.ParseRole(i.role)
	if err != nil {
		return fmt.Errorf("--role: %w%s", err, unknown.Hint(i.role, []string{string(deploy.Operator), string(deploy.Gardenlet), string(deploy.GardenletAccess)}))
	}
	if i.timeout <= 0 {
		return fmt.Errorf("--timeout %s: want a time above zero, such as 5m", i.timeout)
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), i.timeout+time.Minute)
	defer cancel()
	if i.uninstall && i.output == "yaml" {
		return errors.New("--uninstall and -o yaml exclude each other: --dry-run shows the objects to delete")
	}
	values, err := i.readValues(cmd.InOrStdin())
	if err != nil {
		return err
	}
	i.seed, _, _ = unstructured.NestedString(values, "gardenlet", "seed")
	if i.uninstall {
		if role == deploy.GardenletAccess && i.seed == "" {
			return errors.New("--uninstall: each seed has its own access: name the seed with --set gardenlet.seed=NAME")
		}
		return i.deleteInstallation(ctx, cmd, role)
	}
	in, err := deploy.Render(deploy.Options{Role: role, Namespace: i.namespace, Values: values})
	if err != nil {
		return err
	}
	if i.output == "yaml" {
		return printObjects(cmd.OutOrStdout(), in)
	}
	installer, cluster, err := i.newInstaller(cmd, role)
	if err != nil {
		return err
	}
	defer cluster.Close()
	if i.dryRun {
		p, err := installer.Plan(ctx, in)
		return i.printPlan(cmd, p, err)
	}
	report, err := installer.Apply(ctx, in)
	if err != nil {
		return commands.Finding{Err: err}
	}
	state := ""
	if i.wait && role != deploy.GardenletAccess {
		state = ", healthy"
	}
	fmt.Fprintf(cmd.OutOrStdout(), "Pergola %s %s is installed in namespace %s: %d created, %d changed, %d deleted, %d unchanged%s.\n", i.installationName(role), version, i.namespace,
		report.Count(apply.Created), report.Count(apply.Configured, apply.Adopted, apply.Recreated), report.Count(apply.Deleted), report.Count(apply.Unchanged), state)
	if held := report.Count(apply.HeldBack); held > 0 {
		return commands.Finding{Err: fmt.Errorf("%s held: the lines above show the reasons, and the ids for --approve", pluralForm(held, "1 deletion is", fmt.Sprintf("%d deletions are", held)))}
	}
	return nil
}

func (i *installCommand) deleteInstallation(ctx context.Context, cmd *cobra.Command, role deploy.Role) error {
	installer, cluster, err := i.newInstaller(cmd, role)
	if err != nil {
		return err
	}
	defer cluster.Close()
	if i.dryRun {
		p, err := installer.PlanDelete(ctx)
		return i.printDeletionPlan(cmd, role, p, err)
	}
	report, err := installer.Delete(ctx)
	if err != nil {
		return commands.Finding{Err: err}
	}
	if report.Count(apply.Deleted, apply.AlreadyDeleted) == 0 {
		fmt.Fprintf(cmd.OutOrStdout(), "Pergola %s is not installed in namespace %s by pergola install: nothing was deleted.\n", i.installationName(role), i.namespace)
		return nil
	}
	fmt.Fprintf(cmd.OutOrStdout(), "Pergola %s is uninstalled: %s deleted. %s\n", i.installationName(role), countText(report.Count(apply.Deleted, apply.AlreadyDeleted), "object"), remainingText(role))
	return nil
}

func (i *installCommand) installationName(role deploy.Role) string {
	if role == deploy.GardenletAccess && i.seed != "" {
		return fmt.Sprintf("%s of seed %s", role, i.seed)
	}
	return string(role)
}

// remainingText lists what an uninstallation leaves.
func remainingText(role deploy.Role) string {
	switch role {
	case deploy.Operator:
		return "Definitions, Landscapes, the priority class, the namespace and all objects that Pergola has applied stay."
	case deploy.Gardenlet:
		return "The priority class, the namespace and all objects that Pergola has applied stay."
	}
	return "The namespaces stay."
}

func (i *installCommand) newInstaller(cmd *cobra.Command, role deploy.Role) (*install.Installer, *apply.Cluster, error) {
	config, err := restConfig("the cluster", i.kubeconfig, i.context)
	if err != nil {
		return nil, nil, err
	}
	config.UserAgent = "pergola"
	name := map[deploy.Role]string{deploy.Operator: "runtime", deploy.Gardenlet: "seed", deploy.GardenletAccess: "virtual"}[role]
	cluster, err := conventions.NewCluster(name, config, apply.ClusterOptions{})
	if err != nil {
		return nil, nil, err
	}
	gate := permit.DefaultGate()
	gate.Approved = map[string]bool{}
	for _, id := range i.approved {
		gate.Approved[id] = true
	}
	options := install.Options{Cluster: cluster, Seed: i.seed, Clock: clock.RealClock{}, Force: i.force, Gate: gate, OnObject: func(r apply.ObjectResult) {
		switch r.Action {
		case apply.Unchanged:
		case apply.HeldBack:
			fmt.Fprintf(cmd.ErrOrStderr(), "%-10s %s%s\n", r.Action, r.Ref, printable(heldText(r.Message, permit.ApprovalID(name, r.Ref))))
		default:
			fmt.Fprintf(cmd.ErrOrStderr(), "%-10s %s\n", r.Action, r.Ref)
		}
	}}
	if i.wait {
		options.Timeout = i.timeout
	}
	return install.New(role, i.namespace, options), cluster, nil
}

// printDeletionPlan prints what an uninstallation would delete and leave.
func (i *installCommand) printDeletionPlan(cmd *cobra.Command, role deploy.Role, p change.Plan, err error) error {
	if len(p.Items) == 0 && err == nil {
		fmt.Fprintf(cmd.OutOrStdout(), "Pergola %s is not installed in namespace %s by pergola install: nothing would be deleted.\n", i.installationName(role), i.namespace)
		return nil
	}
	printItems(cmd.OutOrStdout(), p)
	if err != nil {
		return commands.Finding{Err: err}
	}
	deleted := 0
	for _, item := range p.Items {
		if item.Action == change.Delete {
			deleted++
		}
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%s of Pergola %s would be deleted. %s\n", countText(deleted, "object"), i.installationName(role), remainingText(role))
	return errFinding
}

// printPlan prints one line for each object that would change.
func (i *installCommand) printPlan(cmd *cobra.Command, p change.Plan, err error) error {
	printItems(cmd.OutOrStdout(), p)
	switch {
	case err != nil:
		return commands.Finding{Err: err}
	case len(p.Items) > 0:
		return errFinding
	}
	fmt.Fprintf(cmd.OutOrStdout(), "Nothing would change (%s).\n", countText(p.Unchanged, "object"))
	return nil
}

func printItems(w io.Writer, p change.Plan) {
	for _, item := range p.Items {
		fmt.Fprintf(w, "%-10s %s", item.Action, item.Object)
		for n, f := range item.Fields {
			sep := ", "
			if n == 0 {
				sep = ": "
			}
			fmt.Fprint(w, sep, printable(f.Path))
		}
		if item.Action == change.Hold {
			fmt.Fprint(w, printable(heldText(item.Reason, item.Approval)))
		}
		fmt.Fprintln(w)
	}
}

func heldText(reason, approval string) string {
	return fmt.Sprintf(": %s (--approve %s approves it)", reason, approval)
}

// maxValuesSize limits a values file, in bytes.
const maxValuesSize = 1 << 20

// readValues merges the files, then --set.
func (i *installCommand) readValues(stdin io.Reader) (map[string]any, error) {
	out := map[string]any{}
	for _, path := range i.values {
		data, err := readLimited(path, stdin)
		if err != nil {
			return nil, fmt.Errorf("--values %s: %w", path, err)
		}
		values := map[string]any{}
		if err := yaml.UnmarshalStrict(data, &values); err != nil {
			return nil, fmt.Errorf("--values %s: %w", path, err)
		}
		out = chartutil.CoalesceTables(values, out)
	}
	for _, s := range i.set {
		if err := strvals.ParseInto(s, out); err != nil {
			return nil, fmt.Errorf("--set %s: %w", s, err)
		}
	}
	return out, nil
}

func readLimited(path string, stdin io.Reader) ([]byte, error) {
	in := stdin
	if path != "-" {
		file, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		in = file
	}
	data, err := io.ReadAll(io.LimitReader(in, maxValuesSize+1))
	if err == nil && len(data) > maxValuesSize {
		err = fmt.Errorf("larger than %d bytes", maxValuesSize)
	}
	return data, err
}

// printObjects prints the objects as YAML for kubectl apply.
func printObjects(w io.Writer, in *deploy.Installation) error {
	for _, o := range append(in.Definitions, in.Objects...) {
		data, err := render.MarshalYAML(o.Object)
		if err != nil {
			return fmt.Errorf("writing %s %s: %w", o.GetKind(), o.GetName(), err)
		}
		if _, err := fmt.Fprintf(w, "---\n%s", data); err != nil {
			return err
		}
	}
	return nil
}
