package main

import "context"

// method is a way of keeping a browser and restoring it: one column of the table. Each
// value is used once, and its functions are called in this order.
type method interface {
	// name is the column's heading.
	name() string
	// passkeys reports whether pages have an authenticator without one added over CDP.
	passkeys() bool
	// open starts a browser with a copy of a user data directory and the method's
	// overrides. It returns the browser's CDP address.
	open(ctx context.Context, desktop string) (endpoint string, err error)
	// restore saves the browser's state, ends the browser, and restores the state in
	// another one. It returns the CDP address of that one.
	restore(ctx context.Context) (endpoint string, err error)
	// end closes the restored browser and returns its user data directory.
	end(ctx context.Context) (dir string, err error)
	// excluded returns the fields of a create (see fieldOf) with which the restore
	// takes another path, and why. It is called after restore. The first browser did
	// not get these fields.
	excluded() (fields []string, why string)
	// release ends whatever still runs, at any stage.
	release() error
}
