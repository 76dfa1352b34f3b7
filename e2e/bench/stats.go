package main

import (
	"math"
	"math/rand/v2"
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

// bootstraps is how many samples [bootstrap] draws.
const bootstraps = 2000

// bootstrap returns the interval that holds 95 % of the ratios of medians in samples of the
// same size, drawn from pairs with repetition (Efron's percentile interval). Pairs stay
// together: a disturbance of both cancels out. It returns NaNs for no pairs.
func bootstrap(pairs [][2]float64, random *rand.Rand) (low, high float64) {
	return bootstrapOf(pairs, random, func(of, to float64) float64 { return of / to })
}

// bootstrapOf is bootstrap of something else than the ratio of two medians.
func bootstrapOf(pairs [][2]float64, random *rand.Rand, compare func(of, to float64) float64) (low, high float64) {
	drawn := make([]float64, bootstraps)
	of, to := make([]float64, len(pairs)), make([]float64, len(pairs))
	for n := range drawn {
		for i := range pairs {
			p := pairs[random.IntN(len(pairs))]
			of[i], to[i] = p[0], p[1]
		}
		drawn[n] = compare(quantile(of, 0.5), quantile(to, 0.5))
	}
	return quantile(drawn, 0.025), quantile(drawn, 0.975)
}
