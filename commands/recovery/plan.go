// SPDX-License-Identifier: Apache-2.0

package recovery

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/landscape"
	"github.com/pergola-dev/pergola/controllers/owner"
	"github.com/pergola-dev/pergola/internal/unknown"
)

// Action is what a restore does with one object.
type Action string

// The actions of a restore.
const (
	ActionCreate    Action = "create"
	ActionComplete  Action = "complete"
	ActionUnchanged Action = "unchanged"
	ActionKeep      Action = "keep"
	ActionRefuse    Action = "refuse"
)

// Step is one object of a restore.
type Step struct {
	Cluster   string `json:"cluster"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	Action    Action `json:"action"`
	// Reason says why it is not changed or refused.
	Reason string `json:"reason,omitempty"`

	entry *Entry
}

func (s Step) String() string {
	name := strings.TrimPrefix(s.Namespace+"/"+s.Name, "/")
	return fmt.Sprintf("%s: %s %s", s.Cluster, s.Kind, name)
}

// SkippedCluster is a cluster that is not restored.
type SkippedCluster struct {
	Cluster string `json:"cluster"`
	Reason  string `json:"reason"`
	// IsRunning means that the cluster is running and needs no restore.
	IsRunning bool `json:"lives"`
}

// Plan is the result of a dry run.
type Plan struct {
	Backup  string           `json:"backup"`
	Steps   []Step           `json:"steps"`
	Skipped []SkippedCluster `json:"leftOut,omitempty"`

	// isGardenUnfinished reports whether the restore of the Garden has to be started or finished.
	isGardenUnfinished bool
}

// HasWrites reports whether the plan writes an object.
func (p *Plan) HasWrites() bool {
	return slices.ContainsFunc(p.Steps, func(s Step) bool { return s.Action == ActionCreate || s.Action == ActionComplete })
}

// RefusedSteps returns the steps that prevent the restore.
func (p *Plan) RefusedSteps() []Step {
	return slices.DeleteFunc(slices.Clone(p.Steps), func(s Step) bool { return s.Action != ActionRefuse })
}

// RefusedError has the steps that prevent a restore.
type RefusedError struct{ Steps []Step }

func (e *RefusedError) Error() string {
	var lines []string
	for _, s := range e.Steps {
		lines = append(lines, s.String()+": "+s.Reason)
	}
	return "nothing was restored: " + strings.Join(lines, "; ")
}

// Restorer restores a backup.
type Restorer struct {
	Archive *Archive
	// Converger is the converger of the landscape.
	Converger *landscape.Converger
	// Landscape is the name of the landscape.
	Landscape string
	// OnlyClusters are the clusters to restore. By default these are the runtime cluster and all
	// empty seeds.
	OnlyClusters []string
	// OnStep is called for each written object; it may be nil.
	OnStep func(Step)
}

// checkIdentity compares the identity of the backup with the landscape.
func (r *Restorer) checkIdentity() error {
	m := r.Archive.Manifest
	if m.Landscape.Name != r.Landscape {
		return fmt.Errorf("the backup belongs to landscape %q, not to %q", m.Landscape.Name, r.Landscape)
	}
	declared, err := r.Converger.DeclaredGarden()
	if err != nil {
		return err
	}
	if declared.GetName() != m.Garden.Name {
		return fmt.Errorf("the backup belongs to Garden %q, but the landscape declares %q", m.Garden.Name, declared.GetName())
	}
	identity, _, _ := unstructured.NestedString(declared.Object, "spec", "virtualCluster", "gardener", "clusterIdentity")
	if identity != m.Garden.ClusterIdentity {
		return fmt.Errorf("the backup belongs to a Garden with the cluster identity %q, but the landscape declares %q", m.Garden.ClusterIdentity, identity)
	}
	for _, name := range r.OnlyClusters {
		if m.Cluster(name) == nil {
			return fmt.Errorf("--cluster %s: %w", name, unknown.NameError("cluster in the backup", name, r.allClusterNames()))
		}
	}
	return nil
}

func (r *Restorer) allClusterNames() []string {
	var out []string
	for _, c := range r.Archive.Manifest.Clusters {
		out = append(out, c.Name)
	}
	return out
}

func (r *Restorer) isSelected(name string) bool {
	return len(r.OnlyClusters) == 0 || slices.Contains(r.OnlyClusters, name)
}

// Plan compares the backup with the clusters.
func (r *Restorer) Plan(ctx context.Context) (*Plan, error) {
	if err := r.checkIdentity(); err != nil {
		return nil, err
	}
	p := &Plan{Backup: r.Archive.Manifest.ID}
	for _, c := range r.Archive.Manifest.Clusters {
		if !r.isSelected(c.Name) || c.SameAs != "" {
			continue
		}
		if err := r.planCluster(ctx, p, c.Name); err != nil {
			return nil, err
		}
	}
	return p, nil
}

func (r *Restorer) planCluster(ctx context.Context, p *Plan, name string) error {
	explicit := slices.Contains(r.OnlyClusters, name)
	cluster := r.Converger.Cluster(name)
	if cluster == nil {
		if name == landscape.Runtime || explicit {
			return fmt.Errorf("no access to cluster %s: set spec.clusters in landscape.yaml, or give --kubeconfig %[1]s=PATH", name)
		}
		p.Skipped = append(p.Skipped, SkippedCluster{Cluster: name, Reason: "there is no access to it"})
		return nil
	}
	if name == landscape.Runtime {
		return r.planRuntime(ctx, p, cluster)
	}
	l, err := newLister(cluster)
	if err != nil {
		return err
	}
	if !explicit {
		lives, err := r.isRunning(ctx, l)
		switch {
		case isUnreachable(err):
			p.Skipped = append(p.Skipped, SkippedCluster{Cluster: name, Reason: err.Error()})
			return nil
		case err != nil:
			return err
		case lives:
			p.Skipped = append(p.Skipped, SkippedCluster{Cluster: name, Reason: "it has its Secrets, and is running", IsRunning: true})
			return nil
		}
	}
	begun, err := r.isStarted(ctx, l)
	if err != nil {
		return err
	}
	return r.planEntries(ctx, p, l, !begun)
}

// isUnreachable reports whether a cluster does not answer or rejects its access: it may not be
// restored yet.
func isUnreachable(err error) bool {
	return err != nil && slices.Contains([]apply.Reason{apply.ReasonUnreachable, apply.ReasonCertificateExpired, apply.ReasonUnauthorized}, apply.ReasonOf(err))
}

// planRuntime also compares the Garden: another one means that the cluster is not that of the
// backup.
func (r *Restorer) planRuntime(ctx context.Context, p *Plan, cluster *apply.Cluster) error {
	l, err := newLister(cluster)
	if err != nil {
		return err
	}
	live, err := r.Converger.LiveGarden(ctx)
	if err != nil {
		return err
	}
	garden := r.Archive.Manifest.Garden
	step := Step{Cluster: landscape.Runtime, Kind: "Garden", Name: garden.Name}
	switch {
	case live == nil:
		step.Action, p.isGardenUnfinished = ActionCreate, true
	case landscape.ExternalUID(live) != garden.UID:
		step.Action = ActionRefuse
		step.Reason = fmt.Sprintf("it is another Garden: its UID is %s, but %s in the backup", landscape.ExternalUID(live), garden.UID)
	case live.GetAnnotations()[landscape.AnnotationRestoreUnfinished] == "":
		step.Action = ActionUnchanged
	case live.GetAnnotations()[landscape.AnnotationRestoreUnfinished] != r.Archive.Manifest.ID:
		step.Action = ActionRefuse
		step.Reason = fmt.Sprintf("backup %s is being restored to it: continue with that backup", live.GetAnnotations()[landscape.AnnotationRestoreUnfinished])
	default:
		step.Action, p.isGardenUnfinished = ActionComplete, true
	}
	p.Steps = append(p.Steps, step)
	if live == nil {
		strangers, err := r.unknownSecrets(ctx, l)
		if err != nil {
			return err
		}
		p.Steps = append(p.Steps, strangers...)
	}
	return r.planEntries(ctx, p, l, !p.isGardenUnfinished)
}

// unknownSecrets returns generated Secrets that the backup lacks in a cluster without a Garden.
// Someone has started another one there, and certificates that they sign would be accepted.
func (r *Restorer) unknownSecrets(ctx context.Context, l *lister) ([]Step, error) {
	known := map[string]bool{}
	for _, e := range r.Archive.EntriesOf(landscape.Runtime) {
		known[e.Item.path()] = true
	}
	found, err := l.generatedEntries(ctx)
	if err != nil {
		return nil, err
	}
	var out []Step
	for _, e := range found {
		if !known[e.Item.path()] {
			s := stepOf(e)
			s.Action, s.Reason = ActionRefuse, "it was generated, but the backup does not have it: restore to a cluster without it, or delete it"
			out = append(out, s)
		}
	}
	return out, nil
}

func stepOf(e *Entry) Step {
	return Step{Cluster: e.Item.Cluster, Kind: e.Item.Kind, Namespace: e.Item.Namespace, Name: e.Item.Name, entry: e}
}

// isStarted reports whether a restore of this backup has started on a seed.
func (r *Restorer) isStarted(ctx context.Context, l *lister) (bool, error) {
	marker, err := l.liveEntry(ctx, Item{Kind: kindConfigMap, Namespace: owner.InventoryNamespace, Name: markerName})
	return marker != nil && string(marker.object.Data[markerKey]) == r.Archive.Manifest.ID, err
}

// isRunning reports whether a seed has Secrets that do not come from a restore of this backup.
func (r *Restorer) isRunning(ctx context.Context, l *lister) (bool, error) {
	begun, err := r.isStarted(ctx, l)
	if err != nil || begun {
		return false, err
	}
	found, err := l.managedSecrets(ctx)
	return len(found) > 0, err
}

// planEntries compares the entries of a cluster. In a running cluster newer generated Secrets take
// precedence: an old CA beside them would be accepted.
func (r *Restorer) planEntries(ctx context.Context, p *Plan, l *lister, lives bool) error {
	since := map[string]bool{}
	if lives {
		found, err := l.managedSecrets(ctx)
		if err != nil {
			return err
		}
		for i := range found {
			since[requestOf(found[i].Namespace, found[i].Labels)] = true
		}
	}
	for _, e := range r.Archive.EntriesOf(l.cluster.Name()) {
		live, err := l.liveEntry(ctx, e.Item)
		if err != nil {
			return err
		}
		s := stepOf(e)
		s.Action, s.Reason = compareEntry(e, live)
		if s.Action == ActionCreate && e.Item.Origin == OriginGenerated && since[requestOf(e.Item.Namespace, e.object.Labels)] {
			s.Action, s.Reason = ActionKeep, "a newer one exists"
		}
		p.Steps = append(p.Steps, s)
	}
	return nil
}

// requestOf identifies the request that a Secret was generated for.
func requestOf(namespace string, labels map[string]string) string {
	return namespace + "/" + labels[labelName]
}

// compareEntry returns the action for an entry and its live object.
func compareEntry(e, live *Entry) (Action, string) {
	if live == nil {
		return ActionCreate, ""
	}
	same := hasSameData(e.object.Data, live.object.Data) && hasSameData(e.object.Binary, live.object.Binary)
	switch {
	case e.Item.Origin == OriginRecorded:
		for key := range e.object.Data {
			if _, has := live.object.Data[key]; !has {
				return ActionComplete, ""
			}
		}
		return ActionUnchanged, ""
	case same:
		return ActionUnchanged, ""
	case e.Item.Origin == OriginReferenced:
		return ActionKeep, "it exists with other content"
	}
	return ActionRefuse, "it exists with other content: it was regenerated, or belongs to another landscape"
}

func hasSameData(a, b map[string][]byte) bool { return maps.EqualFunc(a, b, bytes.Equal) }
