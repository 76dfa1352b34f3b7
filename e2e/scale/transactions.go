package main

import (
	"maps"
	"slices"
	"sync"
)

// transactions counts the transactions of all nodes by what they do, such as
// "profiles.commit". It is safe for concurrent use.
type transactions struct {
	mu   sync.Mutex
	done map[string]transaction
}

// transaction is how often one kind of transaction was run, and how often it was tried again
// because of a conflict.
type transaction struct{ times, conflicts int }

// ended counts a transaction.
func (t *transactions) ended(op string, conflicts int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.done == nil {
		t.done = map[string]transaction{}
	}
	was := t.done[op]
	t.done[op] = transaction{was.times + 1, was.conflicts + conflicts}
}

// counts returns a copy of the counts.
func (t *transactions) counts() map[string]transaction {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.done)
}

// since returns what was counted after before, the most frequent first.
func since(before, after map[string]transaction) []counted {
	var all []counted
	for op, n := range after {
		n.times -= before[op].times
		n.conflicts -= before[op].conflicts
		if n.times > 0 {
			all = append(all, counted{op, n})
		}
	}
	slices.SortFunc(all, func(a, b counted) int {
		if a.times != b.times {
			return b.times - a.times
		}
		if a.op < b.op {
			return -1
		}
		return 1
	})
	return all
}

// counted is a kind of transaction with its counts.
type counted struct {
	op string
	transaction
}
