package docs_test

import (
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
)

// The page of the configuration names every field of a create, of a user's settings and
// of a login check.
func TestFieldsAreDocumented(t *testing.T) {
	page := read(t, "configuration.md")
	for _, name := range []string{"CreateSession", "UserPatch", "LoginCheck"} {
		for field := range schema(t, name).Properties {
			if !strings.Contains(page, "`"+field+"`") {
				t.Errorf("configuration.md does not name the field %s of %s", field, name)
			}
		}
	}
}

// The page of troubles names every error code that a call can answer. Those for
// something that does not exist are one line.
func TestErrorCodesAreDocumented(t *testing.T) {
	page := read(t, "troubleshooting.md")
	startUp := map[string]bool{"chrome_missing": true, "sandbox_failed": true, "config": true, "data_dir_in_use": true}
	for _, value := range schema(t, "ErrorCode").Enum {
		code, ok := value.(string)
		if !ok {
			t.Fatalf("the code %v is no text", value)
		}
		if !startUp[code] && !strings.HasSuffix(code, "not_found") && !strings.Contains(page, "`"+code+"`") {
			t.Errorf("troubleshooting.md does not name the code %s", code)
		}
	}
}

// schema is a schema of openapi.yaml.
func schema(t *testing.T, name string) *openapi3.Schema {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromFile("../openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	ref := doc.Components.Schemas[name]
	if ref == nil || ref.Value == nil {
		t.Fatalf("openapi.yaml has no schema %s", name)
	}
	return ref.Value
}
