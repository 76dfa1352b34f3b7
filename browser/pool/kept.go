package pool

import (
	"maps"
	"slices"
)

// IDs returns the snapshots whose Chromes are parked.
func (p *Parked[T]) IDs() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Sorted(maps.Keys(p.slots))
}

// Snapshots returns the snapshots that standbys hold, each once.
func (p *Standbys[T]) Snapshots() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var ids []string
	for _, s := range p.ready {
		ids = append(ids, s.key.Snapshot)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}
