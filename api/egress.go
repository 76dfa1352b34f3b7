package api

import (
	"fmt"
	"net/netip"

	"github.com/stasisd/stasis/egress"
	"github.com/stasisd/stasis/session/settings"
)

// maxNetworks is how many networks and hosts one list may have.
const maxNetworks = 256

// egressBody is the egress of a create.
type egressBody struct {
	Allow []string `json:"allow"`
	Deny  []string `json:"deny"`
}

func (b egressBody) check(in string) error {
	return firstOf(areNetworksOrHosts(in+"allow", b.Allow), areNetworksOrHosts(in+"deny", b.Deny))
}

func (b egressBody) list() egress.List {
	return egress.NewList(networksAndHosts(b.Allow), networksAndHosts(b.Deny))
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
	return &settings.Egress{Allow: networksAndHosts(b.Allow), Deny: networksAndHosts(b.Deny), AllowPrivate: networks(b.AllowPrivate)}, nil
}

// areNetworksOrHosts checks a list of networks and hosts.
func areNetworksOrHosts(field string, list []string) error {
	return each(field, list, func(text string) error {
		_, err := egress.ParseEntry(text)
		return err
	}, "must be a network such as 203.0.113.0/24, an address, a host such as example.org, or *.example.org for all hosts below it")
}

// areNetworks checks a list of networks.
func areNetworks(field string, list []string) error {
	return each(field, list, func(text string) error {
		_, err := egress.ParseNetwork(text)
		return err
	}, "must be a network such as 203.0.113.0/24, or an address")
}

func each(field string, list []string, check func(string) error, allowed string) error {
	if len(list) > maxNetworks {
		return invalid(field, "must have at most %d entries", maxNetworks)
	}
	for i, text := range list {
		if check(text) != nil {
			return invalid(fmt.Sprintf("%s[%d]", field, i), "%s", allowed)
		}
	}
	return nil
}

// networksAndHosts converts a list that was checked.
func networksAndHosts(list []string) []egress.Entry {
	all := make([]egress.Entry, 0, len(list))
	for _, text := range list {
		e, _ := egress.ParseEntry(text)
		all = append(all, e)
	}
	return all
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
