// Package api is the HTTP face of Stasis: routes, wire types, authentication,
// and the one table from error codes to HTTP statuses.
//
// It decides nothing about sessions: every call is decoded strictly, given to
// a [Service], and its answer written as openapi.yaml at the root of the
// repository says. Echo stays inside this package.
//
// A request passes, in this order: request ID and log ([Server.observe]),
// authentication ([authorizer]), strict decoding of query and body, the
// service, and the answer. Whatever returns an error on the way ends in one
// place, [Server.fail].
package api
