// Package mutation fills in what the Gardener API fills in from other objects when an object is
// made or changed: versions and machine images from the cloud profile, networks and the domain from
// the Seed, tolerations from the Project. It is pure: what stands around an object comes through
// Around, time is given.
//
// A mutation never invents a value: where the object is missing that it takes the value from, the
// field stays as it is. Each says what it filled in and why. Defaults that no other object decides
// are not here (SetDefaults_* in api), nor is what depends on who asks (the annotation created-by,
// the creator of a Project), nor tasks that admission gives to controllers.
package mutation
