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

// Secret is the key that signs deliveries.
type Secret []byte

const secretPrefix = "whsec_"

// ParseSecret reads a secret in the format of Standard Webhooks: whsec_ and 24 to 64
// bytes in base64.
func ParseSecret(text string) (Secret, error) {
	data, there := strings.CutPrefix(strings.TrimSpace(text), secretPrefix)
	key, err := base64.StdEncoding.DecodeString(data)
	if !there || err != nil || len(key) < 24 || len(key) > 64 {
		return nil, fault.New(fault.Config, "webhook.secret", "webhook secret: is not valid; it must be %s followed by 24 to 64 bytes in base64", secretPrefix)
	}
	return key, nil
}

// NewSecret makes a random secret.
func NewSecret() Secret {
	s := make(Secret, 32)
	_, _ = rand.Read(s) // never fails
	return s
}

// Text returns the secret in the format that receivers need.
func (s Secret) Text() string { return secretPrefix + base64.StdEncoding.EncodeToString(s) }

// signatures returns the signatures of a message by each secret, as the header
// webhook-signature has them. A receiver needs one that it knows.
func signatures(secrets []Secret, id string, at time.Time, body []byte) string {
	var all []string
	for _, s := range secrets {
		all = append(all, s.sign(id, at, body))
	}
	return strings.Join(all, " ")
}

// sign returns the signature of a message in the format of Standard Webhooks.
func (s Secret) sign(id string, at time.Time, body []byte) string {
	mac := hmac.New(sha256.New, s)
	mac.Write([]byte(id + "." + strconv.FormatInt(at.Unix(), 10) + "."))
	mac.Write(body)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}
