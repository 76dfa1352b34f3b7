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
	return quartiles{low: quantile(numbers, 0.25), median: quantile(numbers, 0.5), high: quantile(numbers, 0.75)}
}

// quantile returns the number below which a share of the numbers lies, by the same
// interpolation; NaN for an empty list.
func quantile(numbers []float64, share float64) float64 {
	if len(numbers) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(numbers))
	place := share * float64(len(sorted)-1)
	below := int(place)
	above := min(below+1, len(sorted)-1)
	return sorted[below] + (place-float64(below))*(sorted[above]-sorted[below])
}

// ratios are the quartiles of two measures' ratios.
func ratios(of, to []float64) quartiles { return spread(dividedBy(of, to)) }

// dividedBy divides two measures round by round, so that a disturbance of a whole round
// cancels out.
func dividedBy(of, to []float64) []float64 {
	each := make([]float64, min(len(of), len(to)))
	for i := range each {
		each[i] = of[i] / to[i]
	}
	return each
}

// medianInterval returns the interval in which the median of the distribution lies with a
// probability of 95 %, by order statistics (the normal approximation of the binomial
// distribution); NaNs for less than six numbers.
func medianInterval(numbers []float64) (low, high float64) {
	n := len(numbers)
	if n < 6 {
		return math.NaN(), math.NaN()
	}
	sorted := slices.Sorted(slices.Values(numbers))
	half := 1.96 * math.Sqrt(float64(n)) / 2
	first := max(int(math.Floor(float64(n)/2-half)), 0)
	last := min(int(math.Ceil(float64(n)/2+half)), n-1)
	return sorted[first], sorted[last]
}
