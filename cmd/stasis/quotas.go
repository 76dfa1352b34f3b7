package main

import (
	"maps"
	"slices"
	"strings"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session/quota"
)

// quotasOf reads the quotas of a flag, by name.
func quotasOf(flag string, given map[string]int64) (q quota.Quotas, err error) {
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if q.Set(quota.Name(name), given[name]) {
			continue
		}
		var names []string
		for _, n := range quota.Names() {
			names = append(names, string(n))
		}
		if !slices.Contains(names, name) {
			return q, fault.New(fault.Config, "quotas", "%s: has no quota %q; the quotas are %s", flag, name, strings.Join(names, ", "))
		}
		return q, fault.New(fault.Config, "quotas", "%s: %s must be from %d to %d", flag, name, quota.Least(quota.Name(name)), quota.Largest(quota.Name(name)))
	}
	return q, nil
}
