// Package stasis holds what the whole product shares: the description of its
// wire.
//
// openapi.yaml is the one truth about the HTTP interface: package api serves
// it, and tests hold every request and answer against it.
package stasis

import _ "embed"

//go:embed openapi.yaml
var openAPI string

// OpenAPI returns openapi.yaml (OpenAPI 3.0.3).
func OpenAPI() []byte { return []byte(openAPI) }
