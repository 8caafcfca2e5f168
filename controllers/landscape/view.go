package landscape

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/fatih/color"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	"github.com/pergola-dev/pergola/controllers/owner"
)

// Status is the state of a landscape: the Garden, its Seeds and their Shoots.
type Status struct {
	Landscape string        `json:"landscape"`
	Ready     bool          `json:"ready"`
	Owners    []OwnerStatus `json:"owners"`
}

// OwnerStatus is one line of the tree with its conditions.
type OwnerStatus struct {
	Kind          string                           `json:"kind"`
	Namespace     string                           `json:"namespace,omitempty"`
	Name          string                           `json:"name"`
	Cluster       string                           `json:"cluster"`
	Ready         bool                             `json:"ready"`
	LastOperation *gardencorev1beta1.LastOperation `json:"lastOperation,omitempty"`
	Conditions    []gardencorev1beta1.Condition    `json:"conditions,omitempty"`
	// Error says why the state is not known.
	Error  string        `json:"error,omitempty"`
	Shoots []OwnerStatus `json:"shoots,omitempty"`
}

// Status reads the state of every owner. A cluster that cannot be reached is part of the answer.
func (c *Converger) Status(ctx context.Context) Status {
	out := Status{Landscape: c.landscape.Config.Name, Ready: len(c.all) > 0}
	states := make([]OwnerStatus, len(c.all))
	var wait sync.WaitGroup
	for i, o := range c.all {
		wait.Add(1)
		go func() {
			defer wait.Done()
			states[i] = c.ownerStatus(ctx, o)
		}()
	}
	wait.Wait()
	shoots := map[string][]OwnerStatus{}
	for i, o := range c.all {
		out.Ready = out.Ready && states[i].Ready
		if o.Input.Owner.Kind == owner.Shoot {
			shoots[o.Local.Name()] = append(shoots[o.Local.Name()], states[i])
		}
	}
	for i, o := range c.all {
		if o.Input.Owner.Kind == owner.Shoot {
			continue
		}
		if o.Input.Owner.Kind == owner.Seed {
			states[i].Shoots = shoots[o.Local.Name()]
		}
		out.Owners = append(out.Owners, states[i])
	}
	for _, err := range c.unbound {
		out.Ready = false
		out.Owners = append(out.Owners, OwnerStatus{Kind: "-", Name: "-", Error: err.Error()})
	}
	return out
}

func (c *Converger) ownerStatus(ctx context.Context, o *owner.Owner) OwnerStatus {
	s := OwnerStatus{Kind: o.Ref.Kind, Namespace: o.Ref.Namespace, Name: o.Ref.Name, Cluster: o.Local.Name()}
	op, conditions, err := owner.Observed(ctx, o.Home, o.Ref)
	if err != nil {
		s.Error = err.Error()
		return s
	}
	s.LastOperation, s.Conditions = op, conditions
	s.Ready = op != nil && op.State == gardencorev1beta1.LastOperationStateSucceeded
	for _, cond := range conditions {
		s.Ready = s.Ready && cond.Status == gardencorev1beta1.ConditionTrue
	}
	return s
}

// PrintStatus writes the tree.
func PrintStatus(w io.Writer, s Status, colored bool) {
	fmt.Fprintf(w, "Landscape %s: %s\n", s.Landscape, word(s.Ready, colored))
	for _, o := range s.Owners {
		printOwner(w, o, "", colored)
	}
}

func printOwner(w io.Writer, o OwnerStatus, indent string, colored bool) {
	name := o.Name
	if o.Namespace != "" {
		name = o.Namespace + "/" + o.Name
	}
	fmt.Fprintf(w, "%s└─ %s %s on %s: %s%s\n", indent, o.Kind, name, o.Cluster, word(o.Ready, colored), operation(o.LastOperation))
	if o.Error != "" {
		fmt.Fprintf(w, "%s     %s\n", indent, oneLine(o.Error))
	}
	for _, c := range o.Conditions {
		fmt.Fprintf(w, "%s     %s %-32s %s\n", indent, mark(c.Status, colored), c.Type, oneLine(c.Message))
	}
	for _, shoot := range o.Shoots {
		printOwner(w, shoot, indent+"   ", colored)
	}
}

func operation(op *gardencorev1beta1.LastOperation) string {
	if op == nil {
		return ", never reconciled"
	}
	text := fmt.Sprintf(", %s %s (%d%%)", op.Type, op.State, op.Progress)
	if op.State != gardencorev1beta1.LastOperationStateSucceeded {
		text += ": " + oneLine(op.Description)
	}
	return text
}

func oneLine(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > 400 {
		s = s[:400] + "…"
	}
	return s
}

func word(ready, colored bool) string {
	if ready {
		return paint("Ready", color.FgGreen, colored)
	}
	return paint("not ready", color.FgRed, colored)
}

func mark(s gardencorev1beta1.ConditionStatus, colored bool) string {
	switch s {
	case gardencorev1beta1.ConditionTrue:
		return paint("✓", color.FgGreen, colored)
	case gardencorev1beta1.ConditionFalse:
		return paint("✗", color.FgRed, colored)
	case gardencorev1beta1.ConditionProgressing:
		return paint("…", color.FgYellow, colored)
	}
	return paint("?", color.FgYellow, colored)
}

func paint(s string, attr color.Attribute, colored bool) string {
	c := color.New(attr)
	if colored {
		c.EnableColor()
	} else {
		c.DisableColor()
	}
	return c.Sprint(s)
}
