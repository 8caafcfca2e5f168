// Package queue processes the keys of changed objects, one at a time, and retries failures.
package queue
