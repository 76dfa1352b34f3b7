package main

import "context"

// way is a way to keep a browser and come back: one column of the table. It is
// used once, in this order.
type way interface {
	// name heads the column.
	name() string
	// passkeys tells whether its pages have an authenticator without being given
	// one over CDP.
	passkeys() bool
	// open starts a browser that begins with a copy of a user data directory
	// and tells its pages what told says, and gives its CDP address.
	open(ctx context.Context, desktop string) (endpoint string, err error)
	// comeBack keeps the browser's state, ends it, brings the state into
	// another one and gives that one's address.
	comeBack(ctx context.Context) (endpoint string, err error)
	// end closes that one too, and gives its user data directory as it was left.
	end(ctx context.Context) (dir string, err error)
	// otherwise names the fields of a create (see fieldOf) with which an environment
	// does not come back in this way but in another, and why; known once it has
	// come back. The first browser was not given them.
	otherwise() (fields []string, why string)
	// release ends whatever still runs, however far it came.
	release() error
}
