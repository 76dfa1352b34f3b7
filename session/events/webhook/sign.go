package webhook

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"strconv"
	"strings"
	"time"

	"github.com/stasisd/stasis/fault"
)

// Secret is what deliveries are signed with.
type Secret []byte

const secretPrefix = "whsec_"

// ParseSecret reads a secret as Standard Webhooks writes it: whsec_ and 24 to 64
// bytes in base64.
func ParseSecret(text string) (Secret, error) {
	data, there := strings.CutPrefix(strings.TrimSpace(text), secretPrefix)
	key, err := base64.StdEncoding.DecodeString(data)
	if !there || err != nil || len(key) < 24 || len(key) > 64 {
		return nil, fault.New(fault.Config, "webhook.secret", "a webhook secret is %s and 24 to 64 bytes in base64", secretPrefix)
	}
	return key, nil
}

// NewSecret makes one.
func NewSecret() Secret {
	s := make(Secret, 32)
	_, _ = rand.Read(s) // never fails
	return s
}

// Text is the secret as receivers are given it.
func (s Secret) Text() string { return secretPrefix + base64.StdEncoding.EncodeToString(s) }

// sign is the signature of a message, as Standard Webhooks has it.
func (s Secret) sign(id string, at time.Time, body []byte) string {
	mac := hmac.New(sha256.New, s)
	mac.Write([]byte(id + "." + strconv.FormatInt(at.Unix(), 10) + "."))
	mac.Write(body)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}
