package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/commands/why"
	"github.com/pergola-dev/pergola/controllers/conventions"
	"github.com/pergola-dev/pergola/controllers/landscape"
	"github.com/pergola-dev/pergola/controllers/owner"
	"github.com/pergola-dev/pergola/landscapes"
	"github.com/pergola-dev/pergola/render"
	"github.com/pergola-dev/pergola/source"
	"github.com/pergola-dev/pergola/source/blame"
)

// asking is one run of the command.
type asking struct {
	access                 accessFlags
	output, cluster, owner string
	offline                bool
}

func newWhy() *cobra.Command {
	var a asking
	cmd := &cobra.Command{
		Use:   "why LANDSCAPE KIND [NAMESPACE/]NAME[.FIELD]",
		Short: "Say where a field of an object comes from and who owns it",
		Long: `Says which template, overlay or declaration writes a field, which fields of the declarations its value follows from and which
commits wrote those, how the object gets to its cluster, and who owns the field there now. The object is one that Git declares
or one that a component renders; without a field the answer is about the object as a whole.

Items of lists are named as containers[app] or containers[name=app], or by their number; keys with dots stand in brackets. What
a value follows from is found by rendering the component with one field of its declarations changed: it holds for the landscape
as it is. Clusters are only read. Values of Secrets are never shown.

Exit code 1 says that there is no such object or field, and names the nearest. Exit code 2 says that the landscape has no such owner or
cluster, or that a cluster does not answer; in the latter case the answer of Git is whole.`,
		Example: `  pergola why landscapes/local "Deployment garden/virtual-garden-kube-apiserver.spec.replicas"
  pergola why landscapes/local Shoot garden-local/local.spec.kubernetes.version --offline
  pergola why landscapes/local Deployment shoot--local--local/kube-apiserver --owner shoot/local -o json`,
		Args: cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error { return a.run(cmd, args[0], strings.Join(args[1:], " ")) },
	}
	outputFlag(cmd, &a.output, "text", formatJSON)
	cmd.Flags().StringVar(&a.cluster, "cluster", "", "only objects on this cluster (runtime, virtual, the name of a seed, or \"shoot NAMESPACE/NAME\")")
	cmd.Flags().StringVar(&a.owner, "owner", "", "only objects of this owner, e.g. seed/local, shoot/garden-local/local, or all of a kind, e.g. seed")
	cmd.Flags().BoolVar(&a.offline, "offline", false, "ask no cluster: say what Git alone knows")
	a.access.add(cmd)
	return cmd
}

func (a *asking) run(cmd *cobra.Command, dir, question string) error {
	hasty()
	l, err := loadValid(cmd, dir)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), a.access.timeout)
	defer cancel()
	opts := why.Options{Catalogue: catalogue(cmd), Cluster: a.cluster, Owner: a.owner, Now: time.Now(), Blame: blamer()}
	opts.CatalogueDir, _ = cmd.Flags().GetString("catalogue")
	access, err := a.access.access(l)
	if err != nil {
		return err
	}
	var unavailable error
	if !a.offline {
		clusters, read, err := a.live(l, access)
		if err != nil {
			return err
		}
		opts.Clusters, opts.Live = clusters, func(ctx context.Context, cluster string, ref change.Ref) (*unstructured.Unstructured, error) {
			object, err := read(ctx, cluster, ref)
			if isUnavailable(err) {
				unavailable = exitError{exitUsage}
				err = unreachable(err)
			}
			return object, err
		}
	}
	answers, err := why.Explain(ctx, l, question, opts)
	if unknown := new(why.UnknownError); errors.As(err, &unknown) {
		return finding{err}
	}
	if err != nil {
		return err
	}
	if a.output == formatJSON {
		err = printJSON(cmd, answers)
	} else {
		err = why.Print(cmd.OutOrStdout(), answers, func(file string) string { return filepath.Join(l.Dir, filepath.FromSlash(file)) })
	}
	return cmp.Or(err, unavailable)
}

// blamer looks lines up in the repositories that hold their files, each opened once. A file that is in none has no history.
func blamer() func(context.Context, string, int) (blame.Answer, error) {
	type opened struct {
		repo *blame.Repository
		err  error
	}
	var mutex sync.Mutex
	open := map[string]opened{}
	return func(ctx context.Context, file string, line int) (blame.Answer, error) {
		mutex.Lock()
		defer mutex.Unlock()
		dir := filepath.Dir(file)
		of, known := open[dir]
		if !known {
			of.repo, of.err = blame.Open(dir, blame.Limits{})
			open[dir] = of
		}
		switch {
		case errors.Is(of.err, source.ErrNoRepository):
			return blame.Answer{Reason: "not in a Git repository"}, nil
		case of.err != nil:
			return blame.Answer{}, of.err
		}
		return of.repo.Line(ctx, file, line)
	}
}

// live reads the clusters that there is access to; one is connected to when it is asked.
func (a *asking) live(l *landscapes.Landscape, access landscape.Access) ([]string, func(context.Context, string, change.Ref) (*unstructured.Unstructured, error), error) {
	names, err := landscape.ClusterNames(l)
	if err != nil {
		return nil, nil, err
	}
	configs := map[string]*rest.Config{}
	var reachable []string
	for _, name := range names {
		if config, err := configOf(access, l, name, configs[landscape.Runtime]); err == nil {
			configs[name] = config
			reachable = append(reachable, name)
		}
	}
	shoots, err := render.SeedsOfShoots(l)
	if err != nil {
		return nil, nil, err
	}
	of := map[string]render.Owner{}
	for name, seed := range shoots {
		namespace, shoot, _ := strings.Cut(name, "/")
		o := render.Owner{Kind: owner.Shoot, Namespace: namespace, Name: shoot}
		if configs[seed] != nil {
			of[render.ShootCluster(o)] = o
			reachable = append(reachable, render.ShootCluster(o))
		}
	}
	return reachable, func(ctx context.Context, cluster string, ref change.Ref) (*unstructured.Unstructured, error) {
		config := configs[cluster]
		if o, is := of[cluster]; is {
			target, err := shootConfig(ctx, l, o, configs[shoots[o.Namespace+"/"+o.Name]])
			if err != nil {
				return nil, err
			}
			config = target
		}
		object, err := get(ctx, cluster, config, ref)
		if err != nil {
			return nil, fmt.Errorf("read %s on cluster %s: %w", ref, cluster, err)
		}
		return object, nil
	}, nil
}

// shootConfig is the access to the API server of a Shoot, by the cluster of its control plane; an error where nobody serves it.
func shootConfig(ctx context.Context, l *landscapes.Landscape, shoot render.Owner, seed *rest.Config) (*rest.Config, error) {
	inputs, err := render.Owners(l, render.At(time.Now()), render.OwnersOf(owner.Shoot))
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(inputs, func(in render.Input) bool { return in.Owner.String() == shoot.String() })
	if i < 0 {
		return nil, fmt.Errorf("%s has no control plane", shoot)
	}
	local, err := conventions.NewCluster("its seed", seed, apply.ClusterOptions{})
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, local.Close)
	return owner.ShootAccess(ctx, &owner.Owner{Input: inputs[i], Local: local})
}

// get reads one object; nil if the cluster does not have it, or not even its kind.
func get(ctx context.Context, cluster string, config *rest.Config, ref change.Ref) (*unstructured.Unstructured, error) {
	config = rest.CopyConfig(config)
	config.Timeout = 20 * time.Second
	apply.ReportUnreachable(config, cluster)
	found, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	mapping, err := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(found)).RESTMapping(ref.GroupKind(), ref.GVK().Version)
	if meta.IsNoMatchError(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	object, err := client.Resource(mapping.Resource).Namespace(ref.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("its kubeconfig names a file that does not exist: %w", err)
	}
	return object, err
}
