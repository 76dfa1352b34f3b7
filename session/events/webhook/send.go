package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"unicode"

	"github.com/stasisd/stasis/egress"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
)

// network returns a transport that uses no proxy and connects only where the policy allows
// it.
func network(policy egress.Policy) *http.Transport {
	dialer := &net.Dialer{Timeout: attemptTimeout, Control: policy.Control}
	return &http.Transport{DialContext: dialer.DialContext, DisableKeepAlives: true, DisableCompression: true,
		MaxResponseHeaderBytes: 32 << 10, TLSHandshakeTimeout: attemptTimeout, TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12}}
}

// send makes one attempt; nil means success.
func (s *Sender) send(ctx context.Context, d profiles.Delivery) error {
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	secrets, err := s.Secrets.For(ctx, d)
	if err != nil {
		return errors.New("the secret of the receiver cannot be read: " + fault.MessageOf(err))
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, d.URL, bytes.NewReader(d.Body))
	if err != nil {
		return errors.New("the webhook's URL is not valid")
	}
	at := s.Now()
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", "stasis-webhook/1")
	request.Header.Set("webhook-id", d.ID)
	request.Header.Set("webhook-timestamp", strconv.FormatInt(at.Unix(), 10))
	request.Header.Set("webhook-signature", signatures(secrets, d.ID, at, d.Body))
	answer, err := s.client.Do(request)
	if err != nil {
		return publicError(err)
	}
	defer func() { _ = answer.Body.Close() }() // the status is known, so an error here does not matter
	if answer.StatusCode >= 200 && answer.StatusCode <= 299 {
		return nil
	}
	body, _ := io.ReadAll(io.LimitReader(answer.Body, excerptBytes)) // as much as can be read
	if text := printable(body); text != "" {
		return fmt.Errorf("the receiver answered %d: %s", answer.StatusCode, text)
	}
	return fmt.Errorf("the receiver answered %d", answer.StatusCode)
}

// errNotPublic is [egress.ErrNotPublic] with the flags for webhooks.
var errNotPublic = errors.New("the address is private, local or reserved; webhooks are sent there only with --webhook-allow-private or --allow-private")

// publicError returns an error that reveals nothing about the network around the daemon.
func publicError(err error) error {
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.Is(err, egress.ErrNever):
		return egress.ErrNever
	case errors.Is(err, egress.ErrNotPublic):
		return errNotPublic
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("no answer within %s", attemptTimeout)
	case errors.As(err, &certificate):
		return errors.New("the receiver's certificate is not valid")
	}
	return errors.New("the receiver could not be reached, or did not speak HTTP")
}

func printable(body []byte) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(string(body), "")))
}
