package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strconv"

	"github.com/stasisd/stasis/client"
)

// webhookCmd holds the verbs for what a running daemon sends to webhooks. Sessions and the
// daemon's flags name the receivers.
type webhookCmd struct {
	Deliveries webhookDeliveriesCmd `cmd:"" help:"List what was sent, and what is still to be sent, newest first."`
	Resend     webhookResendCmd     `cmd:"" help:"Send a delivery again."`
	Secret     webhookSecretCmd     `cmd:"" help:"Give receivers their own secrets, list and remove them."`
}

type webhookDeliveriesCmd struct {
	remoteDaemon
	printed
	State string `help:"List only deliveries in this state: pending, delivered or failed." env:"-"`
	Limit int    `help:"List at most this many; 0 lists all." default:"50" env:"-"`
}

// Run prints a line for each delivery. It shows no query of a receiver: that can be a secret.
func (c *webhookDeliveriesCmd) Run(ctx context.Context) error {
	list, err := take(c.Limit, c.api().Deliveries(ctx, c.State))
	if err != nil {
		return c.explain(err)
	}
	return c.print(list, func() error {
		t := newTable("ID", "CREATED", "EVENT", "SESSION", "STATE", "ATTEMPTS", "RECEIVER", "LAST ERROR")
		for _, d := range list {
			t.row(d.ID, local(&d.CreatedAt), d.Event, d.SessionID, d.State, strconv.Itoa(d.Attempts), shownURL(d.URL), d.LastError)
		}
		return t.Flush()
	})
}

// shownURL returns the host, port and path of a receiver: two receivers can be on one host.
func shownURL(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Host + u.EscapedPath()
}

type webhookResendCmd struct {
	remoteDaemon
	printed
	ID string `arg:"" help:"The delivery's ID."`
}

// Run sends the delivery again.
func (c *webhookResendCmd) Run(ctx context.Context) error {
	var d client.Delivery
	return c.show(ctx, &c.remoteDaemon, http.MethodPost, "/v1/webhooks/deliveries/"+url.PathEscape(c.ID)+"/resend", nil, &d, func() error {
		_, err := fmt.Fprintf(os.Stdout, "Stasis sends %s to %s again at %s.\n", d.Event, shownURL(d.URL), local(d.NextAttemptAt))
		return err
	})
}
