// Package api is the HTTP face of Stasis: routes, wire types, authentication,
// and the one table from error codes to HTTP statuses.
//
// It decides nothing about sessions: every call is decoded strictly, given to the
// interface of its domain, such as [Sessions], and its answer written as openapi.yaml
// at the root of the repository says. Echo stays inside this package.
//
// Each domain has one handler type, in the file that also declares the interface which
// the handler calls. routes.go is the one table of routes; handlers.go makes the
// handlers.
//
// A request passes, in this order: request ID and log (observer.observe),
// authentication (authenticator), strict decoding of query and body, the
// service, and the answer. Whatever returns an error on the way ends in one
// place, observer.fail.
package api
