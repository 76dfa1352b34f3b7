package api

// How many items a page has where a call does not say, and at most.
const defaultPage, largestPage = 100, 1000

// listing are the query's parameters that every list by page has; a list with
// filters embeds it.
type listing struct {
	Limit      int64  `json:"limit"`       // items, 1 to largestPage
	StartAfter string `json:"start_after"` // the ID that the page begins behind; "" for the first page
}

// firstPage is what a call without parameters asks for.
func firstPage() listing { return listing{Limit: defaultPage} }

// check is the invalid_field of what a page cannot be.
func (l listing) check() error {
	return firstOf(within("limit", l.Limit, 1, largestPage), isID("start_after", l.StartAfter))
}
