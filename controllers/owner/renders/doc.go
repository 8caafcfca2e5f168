// Package renders caches the renderings of owners.
package renders
