//go:build linux

// Package netns gives each Chrome of an ordinary user's daemon its own network namespace,
// so that what it connects to can be limited without root.
//
// Three processes take part:
//
//   - The stage ([Enter]) starts inside the new user and network namespace, with the rights
//     that it needs there. It turns off what would change addresses later ([DisableAutoconf]),
//     opens sockets, sends them to the daemon, waits until the rules are in place and pasta has
//     made a route, gives up all rights and becomes Chrome.
//   - The daemon ([Network]) puts the rules in place and changes them through these sockets.
//     It also connects Chrome to what listens on the machine itself: there is nothing at
//     127.0.0.1 in a new namespace, so it accepts these connections there and makes them
//     again outside. It answers the DNS queries of a session with hosts through two more pairs
//     of sockets, to which the rules then redirect them.
//   - pasta ([StartPasta]) is the way to everything else. It runs outside and has a network
//     interface inside (passt.top). It starts after [DisableAutoconf].
//
// Nothing in the namespace has a right over its network, except pasta, which has no sockets
// that Chrome can connect to.
package netns
