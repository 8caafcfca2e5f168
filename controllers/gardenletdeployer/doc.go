// Package gardenletdeployer installs gardenlets for the first time: for a Gardenlet of the virtual
// garden whose Seed is not there yet, the chart that it names is rendered and applied to the
// runtime cluster, or to the cluster of its kubeconfig, with a bootstrap token for the virtual
// garden. From when the Seed is there the gardenlet looks after itself.
//
// How charts are pulled is package charts' matter, how they are rendered package render's.
package gardenletdeployer
