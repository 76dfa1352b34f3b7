//go:build linux

package main

import (
	"net/url"

	"github.com/stasisd/stasis/fault"
)

// secretText is a setting that is or may contain a secret.
type secretText string

// secret reports whether the value must not be shown.
func (secretText) secret() bool { return true }

// storeAddress is the text of --store.
type storeAddress string

// secret reports whether the value must not be shown: only a valid one contains no secret.
func (s storeAddress) secret() bool {
	_, err := parseStore(string(s))
	return err != nil
}

// webAddress is a setting that is an http or https address. It is text until check, because
// kong repeats a value of the environment that it cannot parse.
type webAddress string

// parse returns the URL; nil if the setting is "". Its error is config and repeats nothing
// of the address.
func (a webAddress) parse(flag string) (*url.URL, error) {
	if a == "" {
		return nil, nil
	}
	u, err := url.Parse(string(a))
	if err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil {
		return nil, fault.New(fault.Config, "serve", "%s: must be an http or https address without a user name", flag)
	}
	return u, nil
}

// secret reports whether the value must not be shown.
func (a webAddress) secret() bool {
	u, err := a.parse("")
	return err != nil || u != nil && u.RawQuery != ""
}
