// Package references reads the ConfigMaps and Secrets that a Garden or Shoot refers to and that its
// control plane needs, each by its name: nothing is listed or watched. Of a Shoot it makes the
// copies that the namespace of its control plane gets, and of the credentials behind its binding
// the Secret that extensions work with.
//
// Which these are, and what they have to be, is said in schemas/across. How copies are sent,
// repaired and taken away is the matter of owner, as with all bundles. The content of a Secret is
// in its copy and nowhere else: not in facts, not in errors.
package references
