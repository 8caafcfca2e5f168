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
			"Files are YAML, JSON or CUE, each field is written once, and each document is an object with apiVersion, kind and metadata, or a List of them. Names of files and folders differ in more than the case of letters, which some file systems do not keep apart (warning). Mend what stands at the place; folders and links are named without one."),
		rule("landscape/kind", "landscapes/kinds.go", "An object is of a kind that can be declared",
			"apiVersion and kind are set and known. The message names the kind that was probably meant; pergola explain lists those that there are.", "apiVersion", "kind"),
		rule("landscape/name", "landscapes/files.go", "Name and namespace are text",
			"YAML reads 1, 1.5, true and null as other values than text. Put the value in quotes.", "metadata", "metadata.name", "metadata.namespace"),
		rule("landscape/cue", "landscapes/evaluation/cue.go", "A CUE package can be evaluated, and every field of it is a declaration",
			"Files of one folder and package are evaluated together, with CUE's standard library and nothing else. A file with @ignore() before its package clause is left out; @if, @tag, @extern and @embed are refused. Helpers are hidden fields, definitions or let. What takes longer than --evaluation-timeout or more than --evaluation-memory is an error at the package."),
		rule("landscape/sops", "landscapes/sops.go", "An encrypted file is a Secret in YAML, encrypted in all that SOPS was told to encrypt",
			"Only data and stringData of Secrets are encrypted, for an age key, as text, and with the same SOPS metadata in all documents of the file. A value without encryption that the SOPS metadata select, an encrypted value without metadata or in another field, and a comment that should be encrypted are faults with and without the key. Edit the file with sops, and renew a value that was readable."),
		inLandscape(warning(rule("landscape/ignored", "commands/revisions/ignored.go", "A file of the landscape is one that clones have",
			"pergola validate reads the files of the folder, an operator those of a commit. A file that a .gitignore or .git/info/exclude leaves out, and that the last commit does not have, is read by the first alone, and so is a submodule that is not checked out read by the second. What core.excludesFile leaves out does not count."))),
		inLandscape(rule("landscape/sops-rules", "landscapes/sopsrules.go", "The rules of sops can be read",
			"pergola validate reads .sops.yaml in the landscape and in the folders above it, up to the top of the repository, as sops does. Regular expressions compile, recipients are public age keys, and creation rules have no field that sops does not know: it ignores such a field, so that a misspelt path_regex makes a rule for all files. Rules that leave stringData plain, and those behind one for all of their files, are warned of.")),
		inLandscape(warning(rule("landscape/sops-recipients", "landscapes/sopsrules.go", "A file is encrypted for those whom the rules of sops name",
			"A change of .sops.yaml changes no file: a new recipient opens nothing, and a former one opens everything still. Run sops updatekeys for the file. Renew the values as well, if somebody may not know them any more."))),
		warning(rule("landscape/secret-not-encrypted", "landscapes/sops.go", "The values of a Secret are encrypted",
			"Whoever can read the repository, with all that it ever held, can read them. Encrypt the file with SOPS, and renew the values.", "data", "stringData")),
		rule("landscape/limits", "landscapes/access.go", "Files and folders stay within what is read",
			"A file has 1 MiB at most, a landscape 50,000 files with all its layers, folders and values are nested 64 deep. Whatever is beyond is not read, so it is an error."),
		inLandscape(rule("landscape/link", "landscapes/access.go", "A link leads to something inside of the landscape",
			"Links that leave the landscape or lead to nothing are errors, and so are reserved folders that are links. Copy the file, or list its folder in spec.layers.")),
		inLandscape(rule("landscape/duplicate", "landscapes/layer.go", "An object is declared once in a layer",
			"A layer above may declare it again, and then changes it. Within a layer nothing tells which one counts: remove one of them.", "metadata.name")),
		inLandscape(rule("landscape/removal", "landscapes/merge.go", "Null in a layer removes what a layer below has",
			"No layer below has the field, and one of nearly the same name is there: it would stay. Correct the name.")),
		inLandscape(rule("landscape/not-read", "landscapes/otherfiles.go", "A file that holds an object has an ending of declarations",
			"Declarations are files that end in .yaml, .yml, .json or .cue, in small letters. Any other file is ignored, unless it holds an object with apiVersion and kind: that object would be missing. Rename the file, or move it out of the landscape. Copies that an editor keeps (x.yaml~, #x.yaml#, .x.swp), Markdown and the folder cue.mod are ignored.")),
		inLandscape(warning(rule("landscape/private-key", "landscapes/otherfiles.go", "No file and no value that everyone can read has a private key",
			"Keys belong to people and clusters: those of age, TLS and SSH, in any file of the landscape or of an overlay, in values of objects other than Secrets, and kubeconfigs with credentials. A key that was in the repository once stays in its history: renew it, encrypt the Secrets for another one, and put values into Secrets that are encrypted."))),
		warning(rule("landscape/pem", "landscapes/pemtexts.go", "A text in PEM form has its lines",
			"YAML joins the lines of a text after > and of one without a sign, and nothing reads PEM in one line. Write the text after |.")),
		inLandscape(warning(rule("landscape/left-out", "landscapes/otherfiles.go", "A file that is left out holds no object",
			"CUE takes no files into a package whose name begins with _ or ends in _test.cue or _tool.cue; files that end in .bak, .orig, .old or .save are copies. Rename the file if its object is wanted. Otherwise remove it, or in CUE write @ignore() as its first line."))),
		inLandscape(warning(rule("landscape/nested", "landscapes/specialfolders.go", "A folder inside of a landscape is no landscape of its own",
			"Nothing in a folder with a landscape.yaml of its own is read, unless it is a layer. List it in spec.layers, or remove its landscape.yaml."))),
		inLandscape(rule("landscape/operation", "landscapes/operations.go", "A file in the folder operations is one operation that there is on its object",
			"Each file operations/ID.yaml holds one object of kind Operation (landscape.pergola.dev/v1alpha1) with spec.object, such as Shoot garden-local/local, spec.operation and, if it must not be executed late, spec.notAfter. It is executed exactly once: for another operation take another id.",
			"apiVersion", "kind", "metadata.name", "spec.object", "spec.operation", "spec.notAfter")),
		asChangeRule(inLandscape(rule("landscape/operation-object", "landscapes/operationobjects.go", "The object of an operation is declared",
			"An operation that comes or changes names an object that the same commit declares, or that landscape.yaml lists under spec.external, and holds the rules that the annotation gardener.cloud/operation has on it, such as shoot/operations. A file that was there before may stay: its operation was executed.",
			"spec.object"))),
		asChangeRule(inLandscape(warning(rule("landscape/operation-changed", "landscapes/operationobjects.go", "An operation stays as it was",
			"The id, which is the name of the file, stands for one operation, which is executed exactly once: what is changed under it would never be executed. Give the new operation a file of its own. The old file may stay, or be removed.",
			"spec.operation")))),
		asChangeRule(inLandscape(warning(rule("landscape/operation-order", "landscapes/operationobjects.go", "Operations of one commit go together",
			"They are executed one soon after the other. The second phase of a rotation is refused until the first one has been prepared, which takes hours: commit it then. The same operation on the same object needs one file.",
			"spec.operation")))),
		timed(inLandscape(warning(rule("landscape/operation-late", "commands/preview/lateoperations.go", "An operation that comes or changes can still be executed",
			"pergola validate --from and pergola diff tell when the time of an operation (spec.notAfter) is over before its file is in force: it is never executed. Set a later time, or remove the file. Files that were there before are not told: what was executed may stay.",
			"spec.notAfter")))),
		asChangeRule(inLandscape(rule("landscape/cluster-stays", "landscapes/clusters.go", "What the Garden does not refer to any more leaves the runtime cluster by a decision",
			"Secrets and ConfigMaps of namespace garden are put into the runtime cluster while the Garden or an Extension refers to them, others into the virtual garden. Remove the file with the reference, or say by the annotation landscape.pergola.dev/cluster (runtime or virtual) where it belongs.",
			"metadata.annotations"))),
		inLandscape(rule("landscape/overlay", "landscapes/specialfolders.go", "An overlay belongs to a component, can be built, and matches something",
			"Overlays are folders components/OWNER/COMPONENT with a kustomization.yaml. Each patch, replacement and image has to match something for at least one owner, and paths stay in the folder. An object that an overlay adds or renames is rendered by no other component of the owner in the same cluster.")),
		inLandscape(rule("landscape/object", "render/objectcheck.go", "A rendered object holds the schema of its kind, in the release of its cluster",
			"Kinds of Kubernetes are held against k8s.io/api, all others against their definitions in the catalogue, the API of Pergola or an overlay: fields that do not exist, values of another type or form, items of one key, fields and kinds that the Kubernetes version of the cluster does not have. Objects of Kubernetes are validated by its own code, too: what kube-apiserver would refuse is an error. So are names of images that no container runtime reads, probes of a port that the container does not have, expressions of PrometheusRules that Prometheus does not read, misspelt verbs, APIs with a version and resources in the singular in roles, levels of pod security that there are not, replicas below zero, annotations of the resource manager with values that it does not know, schedules of an Etcd, names of APIServices, and bounds of autoscalers that exclude each other. Values that Kustomize changes on the way are findings, too: dates without quotes, and nothing in the place of a value inside of braces. An object of a kind that nothing defines is not checked.")),
		inLandscape(rule("landscape/overlay-path", "render/overlayoperations.go", "An operation of a JSON patch finds its path",
			"replace, remove, test, and from of move and copy need what is at the path, add needs what is above it (RFC 6902). Kustomize adds what replace does not find, so that a misspelt field would become a field. Use add for a field that is not set.")),
		inLandscape(warning(rule("landscape/overlay-item", "render/overlayitems.go", "A strategic merge changes items of lists that the component has",
			"Items of such lists are told apart by a key, such as the name of a container. A key that the component does not have adds an item, which a misspelt one was not meant to do. To add an item that is meant, use an operation add with a path that ends in /-."))),
		inLandscape(warning(rule("landscape/overlay-reference", "render/overlayreferences.go", "With an overlay, objects name others that are there",
			"ServiceAccounts, PriorityClasses, Secrets and ConfigMaps with their keys, roles, Services with their ports, targets of autoscalers, and the labels by which Services, PodDisruptionBudgets, NetworkPolicies and monitors select. They may be rendered for the same owner, declared in Git, or named in spec.external. Without them, API servers take the objects, and pods do not start. A PodDisruptionBudget that an overlay adds has to be the only one of its pods: API servers evict no pod that has two. The class of a ManagedResource is one that a resource manager has. An API that nothing defines is not nearly one that something defines. What a component names without the overlay is not asked. The selector of a workload stays as it is."))),
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
		binding    = "What a declaration is rendered for is declared"
		bindingDoc = "A Shoot is rendered for its Seed, Project and cloud profile, a NamespacedCloudProfile is laid over its parent. Declare them, or mend the reference."
		skew       = "A gardenlet is of a release that goes with the API server"
		skewDoc    = "It is at most two minor releases older than the Gardener of the catalogue, and never newer (upstream: docs/deployment/version_skew_policy.md)."
		version    = "The Kubernetes version to render with is known in full"
		versionDoc = "Images and components are chosen by it. A shortened one is filled in from the cloud profile; where that does not decide which one is meant, write it down in full."
	)
	return []Rule{
		rule("landscape/config", kindLandscape, "landscapes/config.go", sourceFiles, "landscape.yaml holds one Landscape, which asks for what there is",
			"It is in a file of its own, named landscape.yaml, at the top of the folder. What this version does not do is refused rather than left out. Warnings are about what is legal and hardly meant: windows that never close, a timeout of seconds, objects under spec.external that the landscape declares, a landscape.yml beside it.", ""),
		rule("landscape/sync", kindLandscape, "commands/synced/check.go", sourceFiles, "A Landscape that an operator syncs has a source that can be opened, and can tell whom it names",
			"The url, ref, verify, secretRef and path of the source go together, as do type, provider and url of a notification; a range of versions holds one, and the Landscape does not depend on itself. It is checked as the operator does before it connects, with stand-ins for Secrets. Warnings are about what has no effect or is hardly meant.",
			"spec.source", "spec.interval", "spec.retryInterval", "spec.dependsOn", "spec.notifications"),
		rule("landscape/health", kindLandscape, "landscapes/confighealth.go", sourceFiles, "A rule of health is for a kind that there is, and its expressions can be evaluated",
			"Expressions are CEL over the object, which is self. healthy and progressing yield true or false, message yields text. Besides operators there are has, all, exists, exists_one, filter, map, and the functions of Kubernetes: for text (contains, startsWith, matches, find, split, lowerAscii …), lists (size, sum, min, max, indexOf …), optional values (self.?status.?phase.orValue(\"\")), quantity, duration, timestamp, semver, ip, cidr, url, format. A finding about a function that there is not lists all of them. healthy that is always true, and progressing that is the same as healthy, are warned of.",
			"spec.health"),
		warning(rule("landscape/health-fields", kindLandscape, "render/healthfields.go", sourceCatalogue, "A rule of health reads fields that the kind has",
			"With another field no object of the kind would ever be healthy. The fields are those of Kubernetes, of our API, and of the definitions in the catalogue and in overlays. Rules for other kinds are not checked.", "spec.health")),
		asChangeRule(warning(rule("landscape/protection", kindLandscape, "commands/preview/settings.go", sourceFiles, "A change of landscape.yaml protects no less than before",
			"pergola validate --from and pergola diff tell when a commit takes the review away, raises the limits of the deletion gate, lets go of what is verified, or has another API serve what there is. It is no error: who reviews the commit decides. Where an operator syncs, the Landscape in the cluster bounds most of it.",
			"spec.review", "spec.deletionGate", "spec.forceConflicts", "spec.source.verify", "spec.catalogue", "spec.gardenAPI"))),
		asChangeRule(warning(rule("landscape/renamed", kindLandscape, "commands/preview/settings.go", sourceFiles, "A landscape keeps its name",
			"Inventories of what was applied have the name of the landscape in theirs. Under another name nothing is taken over or pruned, and the former landscape still has its objects. pergola validate --from and pergola diff tell when a commit changes it. Keep the name, or move the declarations to a landscape of the new name in a folder of its own.",
			"metadata.name"))),
		rule("landscape/layer", kindLandscape, "landscapes/loader.go", sourceFiles, "Layers are other folders of the repository, each listed once, and not in a circle",
			"Paths are relative to landscape.yaml and stay within the repository: the closest folder above that holds .git.", "spec.layers"),
		rule("landscape/facts", kindLandscape, "render/factsfile.go", sourceFiles, "Recorded facts are a file that can be read, by owners that there are",
			"Facts are what is known of a cluster before there is one, by owner such as \"garden local\", with fields that a component asks for.", "spec.facts"),
		rule("landscape/catalogue", kindLandscape, "render/check.go", sourceCatalogue, "The catalogue has the version and the components that the landscape names",
			"Take a program with that version of the catalogue, or review the change of the render and raise the version. Components are those of an owner: garden, seed or shoot. One that is switched on has to be asked for by the declaration, too.",
			"spec.catalogue.version", "spec.components"),
		rule("landscape/component-needed", kindLandscape, "render/disabledcomponents.go", sourceCatalogue, "No component uses another one that the landscape switches off",
			"Without it these could never work: their webhooks are not sent, their objects are of a kind or in a namespace that there is not, their pods do not start or do not find a server that they wait for or that a kubeconfig of them names, as that of a webhook does, or an address stays unknown. Leave the component on, or switch off who needs it. If what is missing exists all the same, because another tool makes it, list it in spec.external, such as {kind: CustomResourceDefinition, name: prometheuses.monitoring.coreos.com}.",
			"spec.components"),
		warning(rule("landscape/component-awaited", kindLandscape, "render/disabledcomponents.go", sourceCatalogue, "No component misses another one that the landscape switches off",
			"Others come after it in the flow, once it is healthy, or their pods connect to a Service of it. They may be able to do without, or find it elsewhere: see what they do in components/garden. Nothing waits for what is off.",
			"spec.components")),
		rule("landscape/image", kindLandscape, "render/imageoverrides.go", sourceCatalogue, "An image override is one of an image that the catalogue has, by a name that can be one",
			"Names are those of components/imagevector.yaml; a repository has no scheme and no tag; a version is a range of Kubernetes versions.", "spec.images"),
		warning(rule("landscape/gardenlet-version", "Gardenlet", "render/skew.go", sourceCatalogue, skew, skewDoc, "spec.deployment.image.tag", "spec.deployment.helm.ociRepository")),
		warning(rule("landscape/gardenlet-version", "ManagedSeed", "render/skew.go", sourceCatalogue, skew, skewDoc, "spec.gardenlet.deployment.image.tag")),
		rule("landscape/binding", "Shoot", "render/owners.go", sourceCatalogue, binding, bindingDoc, "metadata.namespace", "spec.cloudProfile.name", "spec.seedName"),
		rule("landscape/binding", "NamespacedCloudProfile", "render/profiles.go", sourceCatalogue, binding, bindingDoc, "spec.parent.name", "spec.providerConfig"),
		rule("landscape/kubernetes-version", "Garden", "render/owners.go", sourceCatalogue, version, versionDoc, "spec.virtualCluster.kubernetes.version"),
		rule("landscape/kubernetes-version", "Shoot", "render/owners.go", sourceCatalogue, version, versionDoc, "spec.kubernetes.version"),
		rule("landscape/cluster-name", "Seed", "render/check.go", sourceCatalogue, "A Seed has no name of another cluster of the landscape",
			"runtime, virtual and shoot are names of clusters in --kubeconfig NAME=PATH and in paths of the render. Name the Seed differently.", "metadata.name"),
	}
}
