// Package mux lets many CDP clients drive one Chrome over its one pipe.
//
// A [Mux] owns the pipe of --remote-debugging-pipe: JSON messages, each ended
// by a NUL, of any size, both ways. Every client gets a browser-level CDP
// session of its own (Target.attachToBrowserTarget), so that what it enables,
// overrides or auto-attaches is Chrome's to forget when it leaves. The mux
// renumbers ids, routes replies by who asked and events by who owns the
// session they arrived on; Target.attachedToTarget makes an owner.
//
// Clients are not trusted. Every message of theirs is checked to be one JSON
// object, rebuilt from its parts, and held against the policy table (see
// [Policy]). The daemon itself uses a [Driver], which the table does not bind.
//
// Goroutines: one reader and one writer of the pipe, two for each client while
// [Mux.Serve] runs, one for each subscription of a driver. [Mux.Close] waits
// for all of them. The writers are for what must wait: where nothing does, a
// message is written by the goroutine that read it (see [Prompt] and [Eager]).
package mux
