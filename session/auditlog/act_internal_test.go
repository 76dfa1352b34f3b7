package auditlog

import (
	"testing"

	"github.com/stasisd/stasis/session/access"
)

// A key or a ticket is in no entry, also if it is a part of a text.
func TestPlain(t *testing.T) {
	key := access.NewSecret()
	random := key[len(access.KeyPrefix):]
	for text, want := range map[string]string{
		"": "", "ada": "ada", "Å-1_b": "Å-1_b", key: "***", random + "-rest": "***", "see " + key: "see ***",
		"a=" + key + "&b=" + random: "a=***&b=***", "x\n" + key + "\n": "x\n***\n",
	} {
		if got := plain(text); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}
