package api

import (
	"reflect"
	"slices"
	"testing"

	"github.com/stasisd/stasis/session/request"
)

// A resume compares or changes each field of a create, or does not use it.
func TestEveryFieldOfACreateHasAMeaningInAResume(t *testing.T) {
	for _, f := range reflect.VisibleFields(reflect.TypeFor[createBody]()) {
		name := f.Tag.Get("json")
		if name == "" || f.Anonymous {
			continue
		}
		if request.IsOption(name) == slices.Contains(request.Unused, name) {
			t.Errorf("%s must be one of: an option of a resume in request/changes.go, or unused there", name)
		}
	}
}
