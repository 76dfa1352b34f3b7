package main

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"
)

// measure is something that is timed in the rounds.
type measure struct {
	id string // such as "login/warm"
	// take prepares, times once and cleans up. It returns milliseconds by the name of
	// the step; "" is the measure itself.
	take func(context.Context) (map[string]float64, error)
}

// times has the results of each measure, round by round. Steps of a measure are under
// its id and their name, as in "login/warm created".
type times map[string][]float64

// inRounds takes every measure once in each round, in a random order. A warm-up round
// comes first and is dropped.
func (b *bench) inRounds(ctx context.Context, measures []measure) (times, error) {
	if len(measures) == 0 {
		return nil, nil
	}
	all := times{}
	order := rand.New(rand.NewPCG(b.seed, 0))
	for round := range b.rounds + 1 {
		progress("round %d of %d", round, b.rounds)
		order.Shuffle(len(measures), func(i, j int) { measures[i], measures[j] = measures[j], measures[i] })
		for _, m := range measures {
			got, err := m.take(ctx)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", m.id, err)
			}
			if round == 0 {
				continue
			}
			for _, name := range slices.Sorted(maps.Keys(got)) {
				id := m.id
				if name != "" {
					id += " " + name
				}
				all[id] = append(all[id], got[name])
			}
		}
	}
	return all, nil
}

// timed returns how long do took, in milliseconds.
func timed(do func() error) (float64, error) {
	start := time.Now()
	err := do()
	return milliseconds(time.Since(start)), err
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
