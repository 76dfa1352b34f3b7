package snapshot

import (
	"context"
	"iter"
)

// usersFolder is the folder that holds all locations.
var usersFolder = Key{"users"}

// Locations lists every location in a store that holds something, in ascending order. It
// skips names that no location has.
func Locations(ctx context.Context, s Store) ([]Location, error) {
	var all []Location
	for p := range foundEntries(ctx, s) {
		if p.err != nil {
			return nil, p.err
		}
		if !p.unknown {
			all = append(all, p.location)
		}
	}
	return all, nil
}

// Environments yields the locations that hold browser snapshots, in ascending order, each
// as soon as it is found. It skips agents' locations.
func (v *Vault) Environments(ctx context.Context) iter.Seq2[Location, error] {
	return func(yield func(Location, error) bool) {
		for p := range foundEntries(ctx, v.store) {
			if p.err == nil && (p.unknown || p.location.ScopeID != environments) {
				continue
			}
			if p.err == nil {
				ids, _, err := listIDs(ctx, v.store, p.location, 1, "")
				if p.err = err; err == nil && len(ids) == 0 {
					continue // an empty folder may remain
				}
			}
			if !yield(p.location, p.err) || p.err != nil {
				return
			}
		}
	}
}

// scopes lists the locations of one session of an owner.
func scopes(ctx context.Context, s Store, of Location) ([]Location, error) {
	folder := of.scopesFolder()
	var all []Location
	for scope, err := range names(ctx, s, folder) {
		if err != nil {
			return nil, err
		}
		for id, err := range names(ctx, s, Key{folder.path + "/" + scope}) {
			if err != nil {
				return nil, err
			}
			of.Scope, of.ScopeID = scope, id
			if of.Check() == nil {
				all = append(all, of)
			}
		}
	}
	return all, nil
}

// names yields the names in a folder, page by page.
func names(ctx context.Context, s Store, folder Key) iter.Seq2[string, error] {
	const page = 1000
	return func(yield func(string, error) bool) {
		for after := ""; ; {
			list, err := s.List(ctx, folder, page, after)
			if err != nil {
				yield("", err)
				return
			}
			for _, name := range list {
				if !yield(name, nil) {
					return
				}
			}
			if len(list) < page {
				return
			}
			after = list[len(list)-1]
		}
	}
}
