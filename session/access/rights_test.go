package access

import (
	"slices"
	"testing"
)

// Stored keys keep their permissions: what each right allows must not change.
func TestRightsAreStable(t *testing.T) {
	for right, want := range map[Right][]Permission{
		"use": {Look, Begin, Restore, Drive, Manage}, "view": {Look}, "create": {Begin}, "restore": {Restore},
		"secrets": {Secrets}, "admin": {Administer}, "of a newer Stasis": nil,
	} {
		if got := allows(right); !slices.Equal(got, want) {
			t.Errorf("%q allows %q, want %q", right, got, want)
		}
	}
	if got := Rights(); !slices.Equal(got, []Right{"use", "view", "create", "restore", "secrets", "admin"}) {
		t.Errorf("rights: %q", got)
	}
}
