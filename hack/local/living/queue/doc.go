// Package queue works off the keys of objects that have changed, one at a time, and again after a
// failure.
//
// What is done for a key, and what adds keys, is the business of the controllers of a living
// cluster.
package queue
