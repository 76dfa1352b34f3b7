// Package api serves the HTTP API of Stasis: routes, wire types, authentication, and the
// one table from error codes to HTTP statuses.
//
// It makes no decisions about sessions. It decodes every call strictly, passes it to the
// interface of its domain, such as [Sessions], and writes the answer as openapi.yaml at the
// root of the repository describes it. Only this package uses Echo.
//
// Each domain has one handler type. The handler's file also declares the interface that it
// calls. routes.go has all routes; handlers.go makes the handlers.
//
// A request passes, in this order: request ID and log (observer.observe), authentication
// (authenticator), strict decoding of query and body, the service, and the answer. Every
// error on this path ends in observer.fail.
package api
