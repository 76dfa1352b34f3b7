package answer

import "time"

// Usage is what a live session uses now.
type Usage struct {
	// Clients is the number of connected CDP clients, Viewers that of the live view.
	Clients int `json:"clients"`
	Viewers int `json:"viewers"`
	// MemoryBytes is the proportional set size of Chrome's processes when it was last
	// measured; 0: it was not measured yet.
	MemoryBytes int64      `json:"memory_bytes,omitempty"`
	MeasuredAt  *time.Time `json:"measured_at,omitempty"`
}
