package browser

import "context"

// renew sets every target up again after the last client has left.
func (a *attendance) renew(ctx context.Context) {
	for _, t := range a.all() {
		for _, s := range a.setups {
			if s.wants(t.info.Type) {
				s.renew(ctx, t)
			}
		}
	}
}

// all are the targets that are attended, in no order.
func (a *attendance) all() []*attended {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := make([]*attended, 0, len(a.targets))
	for _, t := range a.targets {
		all = append(all, t)
	}
	return all
}

// forPages are the setups that a page is given; none without an attendance.
func (a *attendance) forPages() []setup {
	if a == nil {
		return nil
	}
	var all []setup
	for _, s := range a.setups {
		if s.wants("page") {
			all = append(all, s)
		}
	}
	return all
}

// wait returns when the attendance has ended: after the browser and its pipe.
func (a *attendance) wait() {
	if a != nil {
		a.work.Wait()
	}
}
