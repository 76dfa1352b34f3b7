package capacity

// Kept is what a Manager keeps ready, for the choice of a daemon among several.
type Kept struct {
	Spares           map[string]int // by engine
	Parked, Standbys []string       // the snapshots of these Chromes
}

// Kept returns what is kept ready.
func (m *Manager[P, S, B]) Kept() Kept {
	k := Kept{Spares: map[string]int{}, Parked: m.parked.IDs(), Standbys: m.standbys.ready.Snapshots()}
	for engine, p := range m.spares.pools {
		k.Spares[engine] = p.Len()
	}
	return k
}
