package storetest

import "context"

// NotInUse is a [snapshot.InUse] of a catalogue that knows no other snapshot.
func NotInUse(context.Context, string) (bool, error) { return false, nil }
