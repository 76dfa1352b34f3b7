package main

import (
	"math"
	"slices"
)

// quartiles are the median of a list of numbers and the bounds of its middle half.
type quartiles struct{ low, median, high float64 }

// spread returns the quartiles of numbers in any order, by linear interpolation between
// neighbours (type 7 of Hyndman and Fan). It returns NaNs for an empty list.
func spread(numbers []float64) quartiles {
	sorted := slices.Sorted(slices.Values(numbers))
	at := func(share float64) float64 {
		if len(sorted) == 0 {
			return math.NaN()
		}
		place := share * float64(len(sorted)-1)
		below := int(place)
		above := min(below+1, len(sorted)-1)
		return sorted[below] + (place-float64(below))*(sorted[above]-sorted[below])
	}
	return quartiles{low: at(0.25), median: at(0.5), high: at(0.75)}
}

// ratios divides two measures round by round, so that a disturbance of a whole round
// cancels out.
func ratios(of, to []float64) quartiles {
	each := make([]float64, min(len(of), len(to)))
	for i := range each {
		each[i] = of[i] / to[i]
	}
	return spread(each)
}
