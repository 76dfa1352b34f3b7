package state

// Missing counts the keys of the area that in lacks.
func (a Area) Missing(in Area) int {
	there := make(map[string]bool, len(in.Items))
	for _, item := range in.Items {
		there[item.Key] = true
	}
	n := 0
	for _, item := range a.Items {
		if !there[item.Key] {
			n++
		}
	}
	return n
}
