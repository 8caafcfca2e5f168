// SPDX-License-Identifier: Apache-2.0

package gardenlet

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/controllers/landscape"
	"github.com/pergola-dev/pergola/controllers/owner"
	"github.com/pergola-dev/pergola/controllers/seedpublication"
	"github.com/pergola-dev/pergola/internal/filearchive"
	"github.com/pergola-dev/pergola/landscapes"
	"github.com/pergola-dev/pergola/render"
	"github.com/pergola-dev/pergola/schemas"
)

// settings are a publication in the form that reconciliations use.
type settings struct {
	publication *seedpublication.Publication
	reconciler  *owner.Reconciler
	// digests are the digests of all settings that affect the owners of a kind.
	digests        map[string]string
	forceConflicts bool
	// requiresReview reports whether reviews must have shown every deletion.
	requiresReview bool
	// gardenAPI is the configuration of the Gardener API.
	gardenAPI landscapev1alpha1.GardenAPI
	// landscape is its name; approvalIDs are the approvals of its Landscape.
	landscape   string
	approvalIDs []string
	// domainSecrets are the Secrets of the default domains.
	domainSecrets []*unstructured.Unstructured
}

// CatalogueError reports that a publication was made for another catalogue.
type CatalogueError struct{ Published, Own string }

func (e *CatalogueError) Error() string {
	return fmt.Sprintf("the landscape is published for catalogue %s, but this gardenlet has %s: run the gardenlet of that version; the applied settings stay in use", e.Published, e.Own)
}

// errNoPublication is the problem until the operator publishes settings for the first time.
var errNoPublication = errors.New("the operator has published nothing for this seed yet")

// currentSettings returns the current settings; nil before the first publication.
func (g *Gardenlet) currentSettings() *settings {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.publication.settings
}

// refreshSettings loads a new publication. An unusable one is reported, and the current settings
// stay in use.
func (g *Gardenlet) refreshSettings(ctx context.Context) {
	next, err := g.readSettings(ctx)
	if ctx.Err() != nil {
		return
	}
	g.mu.Lock()
	g.publication.problem = err
	fresh := next != nil && next != g.publication.settings
	if next != nil {
		g.publication.settings = next
	}
	text := ""
	if err != nil {
		text = err.Error()
	}
	isNew := text != g.eventHistory.settingsProblem
	g.eventHistory.settingsProblem = text
	inUse := g.publication.settings
	g.mu.Unlock()
	if fresh {
		g.connections.forceConflicts.Store(next.forceConflicts)
		g.forgetWithdrawnApprovals(ctx)
		g.options.Log.Info("new settings are in use", "revision", next.publication.Revision, "digest", next.publication.Digest[:16])
	}
	if err != nil && isNew {
		message := "the published settings cannot be used: " + text
		if inUse != nil {
			message += fmt.Sprintf(" (the settings of revision %s stay in use)", inUse.publication.Revision)
		}
		g.warn(g.objects.get(kindSeed, "", g.options.Seed), reasonOf(err), message)
	}
}

// reasonOf returns the reason of the condition and Event for a problem with a publication.
func reasonOf(err error) string {
	switch {
	case errors.Is(err, errNoPublication):
		return "PublicationMissing"
	case errors.As(err, new(*CatalogueError)):
		return "CatalogueMismatch"
	case errors.As(err, new(*seedpublication.IncompleteError)):
		return "PublicationIncomplete"
	}
	return "PublicationInvalid"
}

// readSettings returns the published settings; if they did not change, the current ones.
func (g *Gardenlet) readSettings(ctx context.Context) (*settings, error) {
	own := seedpublication.SeedNamespace(g.options.Seed)
	pointer := g.objects.get(kindPublicationPointer, own, seedpublication.PointerName)
	if pointer == nil {
		return nil, errNoPublication
	}
	p, err := seedpublication.Read(pointer, g.publicationPart)
	if err != nil {
		return nil, err
	}
	inUse := g.currentSettings()
	if inUse != nil && inUse.publication.Digest == p.Digest {
		return inUse, nil
	}
	if p.Catalogue != g.options.CatalogueVersion {
		return nil, &CatalogueError{Published: p.Catalogue, Own: g.options.CatalogueVersion}
	}
	return g.prepareSettings(ctx, p)
}

// prepareSettings loads the files of a publication as a landscape.
func (g *Gardenlet) prepareSettings(ctx context.Context, p *seedpublication.Publication) (*settings, error) {
	from, err := filearchive.FS(p.Files)
	if err != nil {
		return nil, err
	}
	l, violations, err := landscapes.LoadFS(ctx, from, p.Folder, landscapes.Options{})
	if err == nil {
		err = validationError(violations)
	}
	if err != nil {
		return nil, &seedpublication.InvalidError{Reason: err.Error()}
	}
	judging, err := l.HealthConfig()
	if err != nil {
		return nil, &seedpublication.InvalidError{Reason: err.Error()}
	}
	gate, err := landscape.DeletionGate(l, nil) // each reconciliation sets the approvals
	if err != nil {
		return nil, &seedpublication.InvalidError{Reason: err.Error()}
	}
	s := &settings{publication: p, forceConflicts: l.Config.Spec.ForceConflicts, digests: map[string]string{}, gardenAPI: l.Config.Spec.GardenAPI,
		landscape: l.Config.Name, approvalIDs: l.Config.Spec.Approved, requiresReview: l.Config.Spec.Review == landscapev1alpha1.ReviewRequired}
	for i := range l.Declarations { // a publication only contains these
		s.domainSecrets = append(s.domainSecrets, l.Declarations[i].Object())
	}
	for _, kind := range []string{owner.Seed, owner.Shoot} {
		if s.digests[kind], err = settingsDigest(l, p, kind); err != nil {
			return nil, err
		}
	}
	s.reconciler = &owner.Reconciler{
		Engine: g.connections.engine, Render: renderOptions(g, l), Clock: g.options.Clock, Gate: gate,
		Gardener:    gardencorev1beta1.Gardener{ID: g.options.Holder, Name: "pergola-gardenlet", Version: g.options.Version},
		StepTimeout: g.options.Timing.StepTimeout, Tokens: g.services.tokens, Hooks: owner.Hooks{OnEvent: g.options.OnEvent, OnObject: g.options.OnObject},
		ConditionSettings: owner.ConditionSettings{Thresholds: landscape.ConditionThresholds(l), HealthRules: judging.Rules, ExistenceOnly: judging.ExistenceOnly, CareInterval: g.options.Timing.CareInterval},
	}
	if t := l.Config.Spec.ManagedResourceProgressingThreshold; t != nil {
		s.reconciler.ConditionSettings.ProgressingThreshold = &t.Duration
	}
	return s, nil
}

// validationError joins the errors among the findings.
func validationError(violations []schemas.Violation) error {
	var texts []string
	for _, v := range violations {
		if v.Severity == schemas.SeverityError {
			texts = append(texts, v.String())
		}
	}
	if len(texts) == 0 {
		return nil
	}
	return errors.New(strings.Join(texts, "; "))
}

// renderOptions returns the landscape's. It does not check that overlays match: the operator
// checked the whole landscape, and one seed may lack objects that a patch selects.
func renderOptions(g *Gardenlet, l *landscapes.Landscape) render.Options {
	out := render.Options{Catalogue: g.options.Catalogue, Enabled: map[string]bool{}}
	for kind, list := range l.Config.Spec.Components {
		for name, setting := range list {
			if setting.Enabled != nil {
				out.Enabled[string(kind)+"/"+name] = *setting.Enabled
			}
		}
	}
	for _, o := range l.Overlays {
		component := o.Owner + "/" + o.Component
		out.Overlays = append(out.Overlays, render.Overlay{Component: component, FS: l.FS, Dir: o.Path, Name: strings.TrimPrefix(o.Layer+"/components/"+component, "/")})
	}
	for _, image := range l.Config.Spec.Images {
		out.ImageOverrides = append(out.ImageOverrides, render.Image{Name: image.Name, Repository: image.Repository, Tag: image.Tag, TargetVersion: image.Version})
	}
	return out
}

// settingsDigest returns a digest of all settings that affect the owners of a kind.
func settingsDigest(l *landscapes.Landscape, p *seedpublication.Publication, kind string) (string, error) {
	spec := l.Config.Spec
	spec.Components = map[landscapev1alpha1.Owner]map[string]landscapev1alpha1.ComponentSettings{"": spec.Components[landscapev1alpha1.Owner(kind)]}
	text, err := yaml.Marshal(spec)
	if err != nil {
		return "", fmt.Errorf("reading landscape.yaml: %w", err)
	}
	sum := sha256.New()
	sum.Write(text)
	for _, o := range l.Overlays {
		if o.Owner != kind {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(p.Files)) {
			if strings.HasPrefix(name, o.Path+"/") {
				fmt.Fprintf(sum, "%q %d\n", name, len(p.Files[name]))
				sum.Write(p.Files[name])
			}
		}
	}
	sum.Write(p.DefaultDomains())
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// publicationPart returns a part of a publication.
func (g *Gardenlet) publicationPart(name string) *unstructured.Unstructured {
	return g.objects.get(kindPublicationPart, seedpublication.SeedNamespace(g.options.Seed), name)
}
