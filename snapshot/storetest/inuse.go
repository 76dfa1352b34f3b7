package storetest

import "context"

// NotInUse is a [snapshot.InUse] of a catalogue without other snapshots.
func NotInUse(context.Context, string) (bool, error) { return false, nil }
