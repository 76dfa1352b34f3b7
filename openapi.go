// Package stasis contains the description of the HTTP API, which all packages share.
//
// openapi.yaml is the only description of the API: package api serves it, and tests check
// every request and answer against it.
package stasis

import _ "embed"

//go:embed openapi.yaml
var openAPI string

// OpenAPI returns openapi.yaml (OpenAPI 3.0.3).
func OpenAPI() []byte { return []byte(openAPI) }
