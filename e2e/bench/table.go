package main

import (
	"fmt"
	"math"
	"strings"
)

// section is a section of the page, with an introduction and a table.
type section struct {
	title string
	text  string
	head  []string
	rows  [][]string
}

// markdown returns the section in Markdown.
func (s section) markdown() string {
	var out strings.Builder
	fmt.Fprintf(&out, "## %s\n\n", s.title)
	if s.text != "" {
		fmt.Fprintf(&out, "%s\n\n", strings.TrimSpace(s.text))
	}
	if len(s.head) > 0 {
		line := func(cells []string) { fmt.Fprintf(&out, "| %s |\n", strings.Join(cells, " | ")) }
		line(s.head)
		out.WriteString(strings.Repeat("|---", len(s.head)) + "|\n")
		for _, row := range s.rows {
			line(row)
		}
		out.WriteString("\n")
	}
	return out.String()
}

// number formats a number with three significant digits, without a fraction from 100 on.
func number(n float64) string {
	switch size := math.Abs(n); {
	case math.IsNaN(n):
		return "–"
	case size >= 100:
		return fmt.Sprintf("%.0f", n)
	case size >= 10:
		return fmt.Sprintf("%.1f", n)
	case size >= 1:
		return fmt.Sprintf("%.2f", n)
	}
	return fmt.Sprintf("%.3f", n)
}

// String formats a median and its middle half; "" if there is no median.
func (q quartiles) String() string {
	switch {
	case math.IsNaN(q.median):
		return ""
	case q.low == q.high: // a single number
		return number(q.median)
	}
	return fmt.Sprintf("%s (%s–%s)", number(q.median), number(q.low), number(q.high))
}

// ratio formats the median of a ratio; "" if there is none.
func (q quartiles) ratio() string {
	if math.IsNaN(q.median) {
		return ""
	}
	return number(q.median) + " ×"
}
