// SPDX-License-Identifier: Apache-2.0

package adoption

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pergola-dev/pergola/controllers/owner"
	"github.com/pergola-dev/pergola/internal/printable"
	"github.com/pergola-dev/pergola/secrets"
)

// signingKinds are the kinds of Secrets that sign or encrypt other data, which is lost if they are
// regenerated. The other Secrets are signed by these, or are passwords.
var signingKinds = []secrets.Kind{secrets.KindCA, secrets.KindRSAPrivateKey, secrets.KindEtcdEncryptionKey}

// checkSecrets reports which Secrets are reused and which would be generated.
func checkSecrets(r *Report, planned map[string][]owner.PlannedSecret) {
	for _, cluster := range slices.Sorted(maps.Keys(planned)) {
		kept := 0
		var signed []string
		for _, s := range planned[cluster] {
			object := "Secret " + s.Namespace + "/" + s.Object
			root := slices.Contains(signingKinds, s.Kind)
			switch {
			case !s.IsNew:
				kept++
			case s.SourceSecret != "":
				r.add(Finding{Level: LevelChanges, Area: AreaSecrets, Cluster: cluster, Objects: []string{object},
					Text: fmt.Sprintf("%s gets the data of Secret %s/%s, which is labelled %s=%s", s.Request, s.Namespace, s.SourceSecret, secrets.LabelUseDataForName, s.Request)})
			case root:
				f := Finding{Level: LevelBlocks, Area: AreaSecrets, Cluster: cluster, Objects: []string{object}, Text: fmt.Sprintf("%s would be regenerated: everything that it signed or encrypted would become invalid", s.Request),
					Advice: fmt.Sprintf("label the Secret that has its data: kubectl -n %s label secret NAME %s=%s", s.Namespace, secrets.LabelUseDataForName, s.Request)}
				if len(s.ReplacedSecrets) == 1 {
					f.Text = fmt.Sprintf("%s would be regenerated, because the request for it differs from that of Secret %s", s.Request, s.ReplacedSecrets[0])
					f.Advice = strings.Replace(f.Advice, "NAME", s.ReplacedSecrets[0], 1)
				}
				if len(s.ReplacedSecrets) > 1 {
					f.Advice += " (one of " + strings.Join(s.ReplacedSecrets, ", ") + ")"
				}
				r.add(f)
			default:
				signed = append(signed, object)
			}
		}
		if len(signed) > 0 {
			r.add(Finding{Level: LevelChanges, Area: AreaSecrets, Cluster: cluster, Objects: signed, Text: fmt.Sprintf("%s would be created: certificates signed by the current CAs, passwords, and values derived from them", printable.WithCount(len(signed), "Secret")),
				Advice: "nothing to do: the workloads that read them restart anyway"})
		}
		if kept > 0 {
			r.add(Finding{Level: LevelNoAction, Area: AreaSecrets, Cluster: cluster, Text: fmt.Sprintf("%s of the secrets manager stay unchanged", printable.WithCount(kept, "Secret"))})
		}
	}
}
