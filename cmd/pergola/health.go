// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/pergola-dev/pergola/commands/revisions"
	"github.com/pergola-dev/pergola/health"
	"github.com/pergola-dev/pergola/render"
)

func newHealth() *cobra.Command {
	var file, output, landscape, rules string
	cmd := &cobra.Command{
		Use:   "health [FILE]",
		Short: "Judge the health of objects by Gardener's rules",
		Long: `Reads objects as a cluster serves them (YAML or JSON, several documents) and prints their verdicts.
A verdict has healthy and progressing by Gardener's rules, and status in kstatus terms. In JSON it
also has argo, the health in Argo CD (empty for kinds that Argo CD has no check for).

An object is healthy because it exists if Gardener has no rule for its kind. The result of kstatus
is printed, but does not count.

--landscape applies the rules in spec.health of that landscape. --health-rules applies the rules of
this file, as pergola resource-manager does. These rules come first, then Gardener's. For all other
kinds the verdict of kstatus then counts, unless otherKinds is Existence.

Exit code 1: an object is not healthy. Exit code 2: there was no object to judge, or the landscape
or the rules are not valid.`,
		Example: `  kubectl get deployment -n garden -o yaml | pergola health
  pergola health object.yaml -o text
  pergola health -f object.yaml --landscape landscapes/local
  pergola health -f object.yaml --health-rules rules.yaml -o text`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				if file != "" {
					return fmt.Errorf("two files: %s as argument and %s as --filename: give one", args[0], file)
				}
				file = args[0]
			}
			name, in := "<stdin>", cmd.InOrStdin()
			if file != "" && file != "-" {
				f, err := os.Open(file)
				if err != nil {
					return err
				}
				defer f.Close()
				if info, err := f.Stat(); err == nil && info.IsDir() {
					return fmt.Errorf("%s is a folder: give a file of objects, or write them to standard input, such as by kubectl get -o yaml", file)
				}
				name, in = file, f
			}
			data, err := io.ReadAll(in)
			if err != nil {
				return fmt.Errorf("read %s: %w", name, err)
			}
			objects, err := render.DecodeYAML(name, data)
			if err != nil {
				return err
			}
			if len(objects) == 0 {
				return fmt.Errorf("no objects read from %s: give YAML or JSON, such as the output of kubectl get -o yaml; empty output usually means that kubectl failed", name)
			}
			options, err := healthOptions(cmd, landscape, rules)
			if err != nil {
				return err
			}
			return printVerdicts(cmd, objects, options, output)
		},
	}
	addOutputFlag(cmd, &output, "json", "text")
	cmd.Flags().StringVarP(&file, "filename", "f", "", "file to read (default: standard input)")
	cmd.Flags().StringVar(&landscape, "landscape", "", "folder of a landscape whose spec.health applies (default: only Gardener's rules)")
	addHealthRulesFlag(cmd, &rules)
	cmd.MarkFlagsMutuallyExclusive("landscape", "health-rules")
	return cmd
}

// healthOptions returns the rules of a landscape or of a file. An invalid one is an error, not a
// verdict.
func healthOptions(cmd *cobra.Command, dir, rules string) ([]health.Option, error) {
	switch {
	case rules != "":
		judging, err := readHealthRules(cmd, rules, "nothing was judged")
		return judging.Options(), err
	case dir == "":
		return nil, nil
	}
	l, err := loadValid(cmd, dir)
	var invalid *revisions.NotValidError
	if errors.As(err, &invalid) {
		return nil, &revisions.NotValidError{Message: "--landscape " + dir + " is not valid: nothing was judged", Findings: invalid.Findings}
	}
	if err != nil {
		return nil, err
	}
	judging, err := l.HealthConfig()
	return judging.Options(), err
}

// healthVerdict adds Argo CD's health status to a health.Verdict.
type healthVerdict struct {
	health.Verdict
	Argo string `json:"argo"`
}

func printVerdicts(cmd *cobra.Command, objects []render.Object, options []health.Option, output string) error {
	verdicts := []healthVerdict{}
	healthy := true
	for _, o := range objects {
		v := health.Check(o.Unstructured, options...)
		healthy = healthy && v.Healthy
		verdicts = append(verdicts, healthVerdict{v, health.Argo(o.Unstructured)})
	}
	if output == "json" {
		enc := json.NewEncoder(cmd.OutOrStdout())
		enc.SetIndent("", "  ")
		if err := enc.Encode(verdicts); err != nil {
			return err
		}
	} else {
		for _, v := range verdicts {
			fmt.Fprintln(cmd.OutOrStdout(), printable(v.sentence()))
		}
	}
	if !healthy {
		return errFinding
	}
	return nil
}

// basisTexts explain why an object is healthy although kstatus reports a problem.
var basisTexts = map[health.Basis]string{
	health.BasisExistence: "healthy because it exists, as no rule applies to it",
	health.BasisRule:      "healthy by its rule",
	health.BasisSkipped:   "healthy because an annotation switches its health checks off",
}

// sentence returns the verdict as text. An alarming message beside "healthy" always has the reason
// why it does not count.
func (v healthVerdict) sentence() string {
	object := v.Kind + " " + v.Name
	if v.Namespace != "" {
		object = v.Kind + " " + v.Namespace + "/" + v.Name
	}
	state, said := "healthy", v.Message
	if said == v.Kind+" is healthy" {
		said = ""
	}
	switch {
	case !v.Healthy && v.Progressing:
		state = fmt.Sprintf("not healthy, progressing (%s)", v.Reason)
	case !v.Healthy:
		state = fmt.Sprintf("not healthy (%s)", v.Reason)
	case v.Progressing:
		state = fmt.Sprintf("healthy, progressing (%s)", v.Reason)
	case v.Status != health.StatusCurrent:
		state = fmt.Sprintf("%s; kstatus says %s", basisTexts[v.Basis], v.Status)
	}
	if said == "" {
		return object + ": " + state
	}
	return object + ": " + state + ": " + said
}
