// Package library is what is kept and looked at without a live session: stored
// snapshots, users' defaults, and the rules by which snapshots go.
package library
