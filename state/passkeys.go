package state

import (
	"maps"
	"slices"

	"github.com/stasisd/stasis/state/report"
)

// Passkeys is the virtual authenticator of an environment: its WebAuthn credentials,
// including private keys. Only the sealed archive holds it.
type Passkeys struct {
	// Enabled means that the environment's pages have the authenticator.
	Enabled     bool      `json:"enabled"`
	Credentials []Passkey `json:"credentials,omitempty"`
}

// Passkey is one credential (CDP WebAuthn.Credential).
type Passkey struct {
	ID          []byte `json:"credential_id"`
	RPID        string `json:"rp_id"`       // the site: "example.com"
	PrivateKey  []byte `json:"private_key"` // PKCS#8
	UserHandle  []byte `json:"user_handle,omitempty"`
	UserName    string `json:"user_name,omitempty"`
	DisplayName string `json:"user_display_name,omitempty"`
	SignCount   int64  `json:"sign_count"` // of the last signature; -1: no counter
	LargeBlob   []byte `json:"large_blob,omitempty"`
	Resident    bool   `json:"resident"` // can be found without its ID (discoverable)
	// The backup flags of its signatures (WebAuthn, "Credential Backup State").
	BackupEligible bool `json:"backup_eligible"`
	BackedUp       bool `json:"backed_up"`
}

// EnabledFor reports whether an environment's pages get the authenticator: as asked, or by
// default if the environment had it or has credentials.
func (p Passkeys) EnabledFor(asked *bool) bool {
	if asked != nil {
		return *asked
	}
	return p.Enabled || len(p.Credentials) > 0
}

// Lines counts the saved credentials of each site.
func (p Passkeys) Lines() []Component {
	saved := map[string]int{}
	for _, c := range p.Credentials {
		saved[c.RPID]++
	}
	lines := make([]Component, 0, len(saved))
	for _, rp := range slices.Sorted(maps.Keys(saved)) {
		lines = append(lines, Component{Name: ComponentPasskeys, Origin: rp, Saved: saved[rp]})
	}
	return lines
}

// PasskeyLines reports which saved credentials were restored. refused has the IDs of
// credentials that Chrome refused. Without an authenticator (enabled is false) pages have
// no credentials.
func PasskeyLines(saved Passkeys, enabled bool, refused map[string]bool) []Component {
	lines := saved.Lines()
	for i := range lines {
		line := &lines[i]
		for _, c := range saved.Credentials {
			switch {
			case c.RPID != line.Origin:
			case !enabled:
				line.Dropped++
				line.Reason = report.PasskeysUnwanted.With("passkeys is false; they are kept for the next snapshot")
			case refused[string(c.ID)]:
				line.Dropped++
				line.Reason = report.Refused.With("Chrome refused the credential; it is kept for the next snapshot")
			default:
				line.Restored++
			}
		}
	}
	return lines
}
