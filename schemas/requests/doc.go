// Package requests knows the words that requests to API servers have: groups, resources and verbs.
// API servers take any words in roles, audit policies, encryption and quotas, and those that no
// request has do nothing. It is pure.
package requests
