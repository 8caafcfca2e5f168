// SPDX-License-Identifier: Apache-2.0

package schemas

import "cmp"

// FileRules lists the rules of packages landscapes and render: about files (Kind is "") and about
// the catalogue. This package checks no object against them. It lists them so that every id of a
// finding can be looked up; a test reads the ids from the sources of those packages.
func FileRules() []Rule {
	rules := append(landscapeFileRules(), landscapeConfigRules()...)
	for i := range rules {
		rules[i].Class = cmp.Or(rules[i].Class, ClassStatic)
	}
	return rules
}

const (
	sourceFiles     = "Pergola: landscapes/README.md"
	sourceCatalogue = "Pergola: components and render/doc.go"
	kindLandscape   = "Landscape"
)

// asChangeRule marks a rule that compares with the previous revision.
func asChangeRule(r Rule) Rule {
	r.Class = ClassChange
	return r
}

// landscapeFileRules lists rules about files, whatever they declare. They have no kind.
func landscapeFileRules() []Rule {
	rule := func(id, file, title, doc string, fields ...string) Rule {
		if len(fields) == 0 {
			fields = []string{""}
		}
		return Rule{ID: id, Title: title, Doc: doc, Source: sourceFiles, Fields: fields, Language: "go", File: file, Severity: SeverityError, Scope: scopeObject}
	}
	warning := func(r Rule) Rule {
		r.Severity = SeverityWarning
		return r
	}
	timed := func(r Rule) Rule {
		r.Class = ClassTime
		return r
	}
	inLandscape := func(r Rule) Rule {
		r.Scope = scopeLandscape
		return r
	}
	return []Rule{
		rule("landscape/file", "landscapes/files.go", "A file can be read, and holds declarations",
			"Files are YAML, JSON or CUE, and each field is written once. Each document is an object with apiVersion, kind and metadata, or a List of them. Names of files and folders that differ only in case are a warning, because some file systems cannot separate them. Correct the file at the given line; folders and links have none."),
		rule("landscape/kind", "landscapes/kinds.go", "An object is of a kind that can be declared",
			"apiVersion and kind are set and known. The message names the probably intended kind; pergola explain lists all kinds.", "apiVersion", "kind"),
		rule("landscape/name", "landscapes/files.go", "Name and namespace are text",
			"YAML does not read 1, 1.5, true and null as text. Put the value in quotes.", "metadata", "metadata.name", "metadata.namespace"),
		rule("landscape/cue", "landscapes/evaluation/cue.go", "A CUE package can be evaluated, and every field of it is a declaration",
			"Files of one folder and package are evaluated together, only with CUE's standard library. A file with @ignore() before its package clause is left out; @if, @tag, @extern and @embed are rejected. Helpers are hidden fields, definitions or let. A package that exceeds --evaluation-timeout or --evaluation-memory is an error."),
		rule("landscape/sops", "landscapes/sops.go", "An encrypted file is a Secret in YAML, with all selected values encrypted",
			"Only data and stringData of Secrets are encrypted, as text and for an age key. All documents of the file have the same SOPS metadata. With and without the key, it is an error if the metadata select a value or comment that is not encrypted. An encrypted value without metadata or in another field is an error, too. Edit the file with sops, and renew a value that was readable."),
		inLandscape(warning(rule("landscape/ignored", "commands/revisions/ignored.go", "Clones have every file of the landscape",
			"pergola validate reads the files of the folder; an operator reads the files of a commit. Only pergola validate reads a file that .gitignore or .git/info/exclude ignores and the last commit lacks. Only the operator reads a submodule that is not checked out. Files that core.excludesFile ignores do not count."))),
		inLandscape(rule("landscape/sops-rules", "landscapes/sopsrules.go", "The rules of sops can be read",
			"pergola validate reads .sops.yaml in the landscape and in the folders above it, up to the top of the repository, as sops does. Regular expressions compile, and recipients are public age keys. Creation rules have only fields that sops knows: sops ignores others, so a misspelt path_regex makes a rule for all files. Rules that leave stringData plain are a warning, and so are rules that an earlier rule hides completely.")),
		inLandscape(warning(rule("landscape/sops-recipients", "landscapes/sopsrules.go", "A file is encrypted for the recipients in the rules of sops",
			"A change of .sops.yaml does not change files: a new recipient cannot open them, and a removed one still can. Run sops updatekeys for the file. Also renew the values if a removed recipient must not know them."))),
		warning(rule("landscape/secret-not-encrypted", "landscapes/sops.go", "The values of a Secret are encrypted",
			"Everyone who can read the repository and its history can read them. Encrypt the file with SOPS, and renew the values.", "data", "stringData")),
		rule("landscape/limits", "landscapes/access.go", "Files and folders stay within the limits",
			"A file has at most 1 MiB, and a landscape with its layers at most 50,000 files. Folders and values are nested at most 64 deep. Pergola does not read anything beyond, so it is an error."),
		inLandscape(rule("landscape/link", "landscapes/access.go", "A link leads to a file or folder inside the landscape",
			"Links that leave the landscape or lead to nothing are errors, and so are reserved folders that are links. Copy the file, or list its folder in spec.layers.")),
		inLandscape(rule("landscape/duplicate", "landscapes/layer.go", "An object is declared once in a layer",
			"A higher layer may declare the object again and change it. Within a layer, neither declaration takes precedence: remove one of them.", "metadata.name")),
		inLandscape(rule("landscape/removal", "landscapes/merge.go", "Null in a layer removes a field of a lower layer",
			"No lower layer has the field, but one has a field with nearly the same name, which would stay. Correct the name.")),
		inLandscape(rule("landscape/not-read", "landscapes/otherfiles.go", "A file with an object has the extension of a declaration",
			"Declarations are files that end in .yaml, .yml, .json or .cue, in small letters. Any other file is ignored, unless it holds an object with apiVersion and kind, which would be missing. Rename the file, or move it out of the landscape. Copies that an editor keeps (x.yaml~, #x.yaml#, .x.swp), Markdown and the folder cue.mod are ignored.")),
		inLandscape(warning(rule("landscape/private-key", "landscapes/otherfiles.go", "No readable file or value contains a private key",
			"Private keys are keys of age, TLS and SSH, and kubeconfigs with credentials. They must not be in files of the landscape or an overlay, or in values of objects other than Secrets. A key that was in the repository once stays in its history. Renew it, encrypt the Secrets for another key, and put values into encrypted Secrets."))),
		warning(rule("landscape/pem", "landscapes/pemtexts.go", "A text in PEM form keeps its lines",
			"YAML joins the lines of a text after > and of a plain text, and no program reads PEM in one line. Write the text after |.")),
		inLandscape(warning(rule("landscape/left-out", "landscapes/otherfiles.go", "An ignored file holds no object",
			"CUE ignores files whose name begins with _ or ends in _test.cue or _tool.cue. Files that end in .bak, .orig, .old or .save are copies. Rename the file if its object is wanted. Otherwise remove it, or in CUE write @ignore() as its first line."))),
		inLandscape(warning(rule("landscape/nested", "landscapes/specialfolders.go", "A folder inside a landscape is not another landscape",
			"Pergola does not read a folder with its own landscape.yaml, unless it is a layer. List it in spec.layers, or remove its landscape.yaml."))),
		inLandscape(rule("landscape/operation", "landscapes/operations.go", "A file in the folder operations holds one operation that its object supports",
			"Each file operations/ID.yaml holds one object of kind Operation (landscape.pergola.dev/v1alpha1). It sets spec.object, such as Shoot garden-local/local, spec.operation, and spec.notAfter if it must not be executed late. It is executed exactly once: use another id for another operation.",
			"apiVersion", "kind", "metadata.name", "spec.object", "spec.operation", "spec.notAfter")),
		asChangeRule(inLandscape(rule("landscape/operation-object", "landscapes/operationobjects.go", "The object of an operation is declared",
			"A new or changed operation names an object that the same commit declares or spec.external in landscape.yaml lists. It follows the rules of the annotation gardener.cloud/operation on that object, such as shoot/operations. An older file may stay: its operation was executed.",
			"spec.object"))),
		asChangeRule(inLandscape(warning(rule("landscape/operation-changed", "landscapes/operationobjects.go", "An operation does not change",
			"The id is the name of the file and stands for one operation, which is executed exactly once. A later change of it would never be executed. Create a new file for the new operation. The old file may stay or be removed.",
			"spec.operation")))),
		asChangeRule(inLandscape(warning(rule("landscape/operation-order", "landscapes/operationobjects.go", "Operations of one commit can be executed together",
			"They are executed shortly after each other. The second phase of a rotation is rejected until the first one is prepared, which takes hours; commit it then. The same operation on the same object needs one file.",
			"spec.operation")))),
		timed(inLandscape(warning(rule("landscape/operation-late", "commands/preview/lateoperations.go", "A new or changed operation can still be executed",
			"pergola validate --from and pergola diff report an operation whose time (spec.notAfter) ends before its file is applied: it is never executed. Set a later time, or remove the file. Older files are not reported: executed operations may stay.",
			"spec.notAfter")))),
		asChangeRule(inLandscape(rule("landscape/cluster-stays", "landscapes/clusters.go", "An object that the Garden no longer refers to leaves the runtime cluster by a decision",
			"Secrets and ConfigMaps of namespace garden go to the runtime cluster while the Garden or an Extension refers to them, others to the virtual garden. Remove the file with the reference, or set the annotation landscape.pergola.dev/cluster to runtime or virtual.",
			"metadata.annotations"))),
		inLandscape(rule("landscape/overlay", "landscapes/specialfolders.go", "An overlay belongs to a component, can be built, and matches something",
			"Overlays are folders components/OWNER/COMPONENT with a kustomization.yaml. Each patch, replacement and image must match something for at least one owner, and paths stay in the folder. An object that an overlay adds or renames is rendered by no other component of the owner in the same cluster.")),
		inLandscape(rule("landscape/object", "render/objectcheck.go", "A rendered object matches the schema of its kind, in the release of its cluster",
			"Kinds of Kubernetes are checked against k8s.io/api, and others are checked against their definitions in the catalogue, the API of Pergola or an overlay. Errors are unknown fields, values of another type or form, and items with one key. Fields and kinds that the Kubernetes version of the cluster lacks are errors, too. Kubernetes' own code also validates its objects: everything that kube-apiserver would reject is an error. Image names that no container runtime reads and probes of a port that the container lacks are errors. So are PrometheusRule expressions that Prometheus cannot read, unknown levels of pod security, and replicas below zero. In roles, misspelt verbs, APIs with a version and singular resources are errors. Further errors are unknown values of resource manager annotations, schedules of an Etcd, names of APIServices, and autoscaler bounds that exclude each other. Values that Kustomize changes are findings, too: dates without quotes, and missing values inside braces. An object of an undefined kind is not checked.")),
		inLandscape(rule("landscape/overlay-path", "render/overlayoperations.go", "An operation of a JSON patch finds its path",
			"replace, remove, test, and the from of move and copy need an existing path; add needs an existing parent (RFC 6902). Kustomize adds a field that replace does not find, so a misspelt field would become a new field. Use add for a field that is not set.")),
		inLandscape(warning(rule("landscape/overlay-item", "render/overlayitems.go", "A strategic merge changes items of lists that the component has",
			"Items of such lists have a key, such as the name of a container. A key that the component lacks adds an item, which a misspelt key should not do. To add an item on purpose, use an operation add with a path that ends in /-."))),
		inLandscape(warning(rule("landscape/overlay-reference", "render/overlayreferences.go", "With an overlay, objects refer to existing objects",
			"References are to ServiceAccounts, PriorityClasses, Secrets and ConfigMaps with their keys, roles, Services with their ports, and targets of autoscalers. Labels by which Services, PodDisruptionBudgets, NetworkPolicies and monitors select count as references. The objects may be rendered for the same owner, declared in Git, or listed in spec.external. Without them, API servers accept the references, but pods do not start. A PodDisruptionBudget that an overlay adds must be the only one of its pods: API servers evict no pod that has two. A resource manager has the class of a ManagedResource. An undefined API is not a misspelt one. References that a component has without the overlay are not checked. The selector of a workload does not change."))),
	}
}

// landscapeConfigRules lists rules about landscape.yaml, and about its use of the catalogue.
func landscapeConfigRules() []Rule {
	rule := func(id, kind, file, source, title, doc string, fields ...string) Rule {
		return Rule{ID: id, Kind: kind, Title: title, Doc: doc, Source: source, Fields: fields, Language: "go", File: file, Severity: SeverityError, Scope: scopeLandscape}
	}
	warning := func(r Rule) Rule {
		r.Severity = SeverityWarning
		return r
	}
	const (
		binding    = "The Seed, Project, cloud profile or parent of a declaration is declared"
		bindingDoc = "A Shoot is rendered for its Seed, Project and cloud profile, a NamespacedCloudProfile together with its parent. Declare them, or correct the reference."
		skew       = "A gardenlet has a release that works with the API server"
		skewDoc    = "It is at most two minor releases older than the Gardener of the catalogue, and never newer (upstream: docs/deployment/version_skew_policy.md)."
		version    = "The full Kubernetes version of a render is known"
		versionDoc = "It selects images and components. The cloud profile completes a shortened version; if the profile is ambiguous, write the full version."
	)
	return []Rule{
		rule("landscape/config", kindLandscape, "landscapes/config.go", sourceFiles, "landscape.yaml holds one Landscape with supported settings",
			"It is in its own file, landscape.yaml, at the top of the folder. Settings that this version does not support are rejected, not ignored. Warnings are about valid settings that are probably mistakes: windows that never close, or a timeout of seconds. So are objects under spec.external that the landscape declares, and a landscape.yml beside it.", ""),
		rule("landscape/sync", kindLandscape, "commands/synced/check.go", sourceFiles, "An operator can open the source of a Landscape and send its notifications",
			"The url, ref, verify, secretRef and path of the source fit together, as do type, provider and url of a notification. A range of versions contains a version, and the Landscape does not depend on itself. The checks are those of the operator before it connects, with placeholders for Secrets. Warnings are about settings that have no effect or are probably mistakes.",
			"spec.source", "spec.interval", "spec.retryInterval", "spec.dependsOn", "spec.notifications"),
		rule("landscape/health", kindLandscape, "landscapes/confighealth.go", sourceFiles, "A health rule is for an existing kind, and its expressions can be evaluated",
			"Expressions are CEL over the object, which is self. healthy and progressing yield true or false, message yields text. Besides operators, expressions may use has, all, exists, exists_one, filter and map. Kubernetes adds functions for text (contains, startsWith, matches, find, split, lowerAscii …), lists (size, sum, min, max, indexOf …) and optional values (self.?status.?phase.orValue(\"\")). There are also quantity, duration, timestamp, semver, ip, cidr, url and format. A finding about an unknown function lists all functions. It is a warning if healthy is always true or progressing equals healthy.",
			"spec.health"),
		warning(rule("landscape/health-fields", kindLandscape, "render/healthfields.go", sourceCatalogue, "A health rule reads fields that the kind has",
			"With another field no object of the kind would ever be healthy. The fields come from Kubernetes, Pergola's API, and the definitions in the catalogue and in overlays. Rules for other kinds are not checked.", "spec.health")),
		asChangeRule(warning(rule("landscape/protection", kindLandscape, "commands/preview/settings.go", sourceFiles, "A change of landscape.yaml does not reduce protection",
			"pergola validate --from and pergola diff report the change. It may remove the review or a verification, raise the limits of the deletion gate, or move existing objects to another API. It is a warning: the reviewer of the commit decides. Where an operator syncs, the Landscape in the cluster limits most of these settings.",
			"spec.review", "spec.deletionGate", "spec.forceConflicts", "spec.source.verify", "spec.catalogue", "spec.gardenAPI"))),
		asChangeRule(warning(rule("landscape/renamed", kindLandscape, "commands/preview/settings.go", sourceFiles, "A landscape keeps its name",
			"Names of inventories contain the name of the landscape. Under another name nothing is adopted or pruned, and the previous landscape still has its objects. pergola validate --from and pergola diff report a commit that changes the name. Keep it, or move the declarations to a landscape with the new name in another folder.",
			"metadata.name"))),
		rule("landscape/layer", kindLandscape, "landscapes/loader.go", sourceFiles, "Layers are other folders of the repository, each listed once, and without cycles",
			"Paths are relative to landscape.yaml and stay within the repository: the closest folder above that holds .git.", "spec.layers"),
		rule("landscape/facts", kindLandscape, "render/factsfile.go", sourceFiles, "Recorded facts are in a readable file, by existing owners",
			"Facts are known values of a cluster that does not exist yet, by owner such as \"garden local\", with fields that a component asks for.", "spec.facts"),
		rule("landscape/catalogue", kindLandscape, "render/check.go", sourceCatalogue, "The catalogue has the version and the components that the landscape names",
			"Use a program with that version of the catalogue, or review the change of the render and raise the version. Components belong to an owner: garden, seed or shoot. The declaration must also request a component that is switched on.",
			"spec.catalogue.version", "spec.components"),
		rule("landscape/component-needed", kindLandscape, "render/disabledcomponents.go", sourceCatalogue, "No component needs a component that the landscape switches off",
			"Without it the others could never work. Their webhooks are not sent, the kind or namespace of their objects does not exist, or an address stays unknown. Or their pods do not start, or do not find a server that they wait for or that a kubeconfig names. Leave the component on, or switch off the components that need it. If another tool creates the missing objects, list them in spec.external, such as {kind: CustomResourceDefinition, name: prometheuses.monitoring.coreos.com}.",
			"spec.components"),
		warning(rule("landscape/component-awaited", kindLandscape, "render/disabledcomponents.go", sourceCatalogue, "No component misses a component that the landscape switches off",
			"Other components follow it in the flow, once it is healthy, or their pods connect to its Service. They may work without it, or find it elsewhere: see components/garden. No step waits for a component that is off.",
			"spec.components")),
		rule("landscape/image", kindLandscape, "render/imageoverrides.go", sourceCatalogue, "An image override names an image of the catalogue and has a valid name",
			"Names are those of components/imagevector.yaml; a repository has no scheme and no tag; a version is a range of Kubernetes versions.", "spec.images"),
		warning(rule("landscape/gardenlet-version", "Gardenlet", "render/skew.go", sourceCatalogue, skew, skewDoc, "spec.deployment.image.tag", "spec.deployment.helm.ociRepository")),
		warning(rule("landscape/gardenlet-version", "ManagedSeed", "render/skew.go", sourceCatalogue, skew, skewDoc, "spec.gardenlet.deployment.image.tag")),
		rule("landscape/binding", "Shoot", "render/owners.go", sourceCatalogue, binding, bindingDoc, "metadata.namespace", "spec.cloudProfile.name", "spec.seedName"),
		rule("landscape/binding", "NamespacedCloudProfile", "render/profiles.go", sourceCatalogue, binding, bindingDoc, "spec.parent.name", "spec.providerConfig"),
		rule("landscape/kubernetes-version", "Garden", "render/owners.go", sourceCatalogue, version, versionDoc, "spec.virtualCluster.kubernetes.version"),
		rule("landscape/kubernetes-version", "Shoot", "render/owners.go", sourceCatalogue, version, versionDoc, "spec.kubernetes.version"),
		rule("landscape/cluster-name", "Seed", "render/check.go", sourceCatalogue, "A Seed does not have the name of another cluster of the landscape",
			"runtime, virtual and shoot are names of clusters in --kubeconfig NAME=PATH and in paths of the render. Name the Seed differently.", "metadata.name"),
	}
}
