// Package mux lets many CDP clients drive one Chrome over its one pipe.
//
// A [Mux] owns the pipe of --remote-debugging-pipe. Both directions carry JSON messages
// of any size, each ended by a NUL. Every client gets its own browser-level CDP session
// (Target.attachToBrowserTarget). When the client disconnects, Chrome itself drops what
// the client enabled, overrode or auto-attached. The mux renumbers request IDs. It routes
// answers to the client that sent the request, and events to the owner of the session
// that they arrive on. Target.attachedToTarget makes the owner of the parent session the
// owner of the new one.
//
// Clients are not trusted. The mux checks that each of their messages is one JSON object,
// rebuilds it from its parts and checks it against the policy table (see [Policy]). The
// daemon itself uses a [Driver], to which the table does not apply.
//
// A client may ask that the browser contexts which it creates are the session's own profile; see
// [SharedContexts].
//
// Goroutines: one reader and one writer of the pipe, two for each client while
// [Mux.Serve] runs, and one for each subscription of a driver. [Mux.Close] waits for all
// of them. If a write would not block, the goroutine that read the message writes it
// itself (see [NonblockingWriter] and [NonblockingConn]). The writers handle the rest.
package mux
