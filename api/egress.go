package api

import (
	"fmt"
	"net/netip"

	"github.com/stasisd/stasis/egress"
	"github.com/stasisd/stasis/session/settings"
)

// maxNetworks is how many networks one list may have.
const maxNetworks = 256

// egressBody is the egress of a create.
type egressBody struct {
	Allow []string `json:"allow"`
	Deny  []string `json:"deny"`
}

func (b egressBody) check(in string) error {
	return firstOf(areNetworks(in+"allow", b.Allow), areNetworks(in+"deny", b.Deny))
}

func (b egressBody) list() egress.List {
	return egress.List{Allow: networks(b.Allow), Deny: networks(b.Deny)}
}

// userEgressBody is the egress of a user's settings.
type userEgressBody struct {
	egressBody
	AllowPrivate []string `json:"allow_private"`
}

// setting checks the body and converts it.
func (b *userEgressBody) setting() (*settings.Egress, error) {
	if b == nil {
		return nil, nil
	}
	if err := firstOf(b.check("egress."), areNetworks("egress.allow_private", b.AllowPrivate)); err != nil {
		return nil, err
	}
	list := b.list()
	return &settings.Egress{Allow: list.Allow, Deny: list.Deny, AllowPrivate: networks(b.AllowPrivate)}, nil
}

func areNetworks(field string, list []string) error {
	if len(list) > maxNetworks {
		return invalid(field, "must be at most %d networks", maxNetworks)
	}
	for i, text := range list {
		if _, err := egress.ParseNetwork(text); err != nil {
			return invalid(fmt.Sprintf("%s[%d]", field, i), "must be a network such as 203.0.113.0/24, or an address; names of hosts are not supported")
		}
	}
	return nil
}

// networks converts a list that was checked.
func networks(list []string) []netip.Prefix {
	all := make([]netip.Prefix, 0, len(list))
	for _, text := range list {
		n, _ := egress.ParseNetwork(text)
		all = append(all, n)
	}
	return all
}
