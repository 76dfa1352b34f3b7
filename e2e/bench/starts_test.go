package main

import (
	"math/rand/v2"
	"os"
	"strings"
	"testing"
)

// What this process takes is counted.
func TestTaken(t *testing.T) {
	got, err := taken(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	for i, what := range startCounts {
		if got[i] < 1 {
			t.Errorf("%s: %v", what, got[i])
		}
	}
}

// A row has the difference of the medians, its interval, and a verdict if there is a limit.
func TestDifferenceRow(t *testing.T) {
	var pairs [][2]float64
	for i := range 50 {
		pairs = append(pairs, [2]float64{2.5 + float64(i%3)/100, 1 + float64(i%3)/100})
	}
	random := rand.New(rand.NewPCG(1, 2))
	row := strings.Join(differenceRow("x", pairs, true, random), " | ")
	if !strings.Contains(row, "| 1.500 |") || !strings.Contains(row, "**missed**") {
		t.Error(row)
	}
	if row := differenceRow("x", pairs, false, random); row[6] != "" {
		t.Errorf("without a limit: %q", row)
	}
	for i := range pairs {
		pairs[i][0] = 1.1
	}
	if row := differenceRow("x", pairs, true, random); row[6] != "1, met" {
		t.Errorf("within the limit: %q", row)
	}
}

// Both sections have their rows and head, and the limits are named.
func TestStartsSection(t *testing.T) {
	b := &bench{settings: settings{base: "0123456789abcdef"}, machine: [][]string{{"date", "today"}, {"cores", "2"}}}
	pairs := map[string][][2]float64{}
	for _, what := range startCounts {
		pairs[what] = [][2]float64{{10, 10}, {11, 10}}
	}
	for _, kind := range startKinds {
		pairs[kind.name] = [][2]float64{{100, 100}, {101, 100}}
	}
	text := b.startsSection(pairs).markdown()
	if strings.Count(text, "\n| ") != 1+len(startKinds)+len(startCounts) || !strings.Contains(text, "`01234567`") || !strings.Contains(text, "1.05, met") {
		t.Error(text)
	}
}
