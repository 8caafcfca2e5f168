// SPDX-License-Identifier: Apache-2.0

// Package volumes provisions volumes of a living cluster as folders of this machine, for claims of
// every StorageClass with the provisioner Provisioner.
//
// The controller manager and the scheduler bind claims and wait for a Pod; kubelets mount. The
// package ignores other provisioners, and claims that select volumes or request a block device.
//
// It needs: persistentvolumeclaims and storageclasses list, watch; persistentvolumes list, watch,
// create, delete.
package volumes
