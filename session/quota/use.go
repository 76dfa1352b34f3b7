package quota

import "context"

// Used is how much a holder has, and the quota that is in force; nil: there is none. It is
// the wire format.
type Used struct {
	Used  int64  `json:"used"`
	Limit *int64 `json:"limit"`
}

// Use returns how much a holder has of everything that quotas limit.
type Use func(ctx context.Context, h Holder) (map[Name]int64, error)

// Of returns how much a holder has, with its quotas. Keys have no standbys.
func (u Use) Of(ctx context.Context, h Holder, quotas Quotas) (map[Name]Used, error) {
	held, err := u(ctx, h)
	if err != nil {
		return nil, err
	}
	use := map[Name]Used{}
	for name, n := range held {
		if h.Kind != Key || name != Standbys {
			use[name] = Used{Used: n, Limit: quotas.Of(name)}
		}
	}
	return use, nil
}
