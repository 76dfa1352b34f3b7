package passkey

import (
	"github.com/chromedp/cdproto/webauthn"

	"github.com/stasisd/stasis/state"
)

// addCredential has the parameters of WebAuthn.addCredential. cdproto's type always sets
// a key group too, which Chrome refuses.
type addCredential struct {
	AuthenticatorID webauthn.AuthenticatorID `json:"authenticatorId"`
	Credential      credential               `json:"credential"`
}

type credential struct {
	ID             []byte `json:"credentialId"`
	Resident       bool   `json:"isResidentCredential"`
	RPID           string `json:"rpId"`
	PrivateKey     []byte `json:"privateKey"`
	UserHandle     []byte `json:"userHandle,omitempty"`
	SignCount      int64  `json:"signCount"`
	LargeBlob      []byte `json:"largeBlob"` // always sent: a credential created without a blob, even an empty one, can never get one
	BackupEligible bool   `json:"backupEligibility"`
	BackedUp       bool   `json:"backupState"`
	UserName       string `json:"userName,omitempty"`
	DisplayName    string `json:"userDisplayName,omitempty"`
}

func toCDP(c state.Passkey) credential {
	return credential{
		ID: c.ID, Resident: c.Resident, RPID: c.RPID, PrivateKey: c.PrivateKey, UserHandle: c.UserHandle, SignCount: c.SignCount,
		LargeBlob: c.LargeBlob, BackupEligible: c.BackupEligible, BackedUp: c.BackedUp, UserName: c.UserName, DisplayName: c.DisplayName,
	}
}

func fromCDP(c *webauthn.Credential) state.Passkey {
	return state.Passkey{
		ID: c.CredentialID, Resident: c.IsResidentCredential, RPID: c.RpID, PrivateKey: c.PrivateKey,
		UserHandle: c.UserHandle, SignCount: int64(c.SignCount), LargeBlob: c.LargeBlob,
		BackupEligible: c.BackupEligibility, BackedUp: c.BackupState, UserName: c.UserName, DisplayName: c.UserDisplayName,
	}
}
