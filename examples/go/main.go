// Command go starts a browser with a user's default environment, visits a page with chromedp,
// and saves the environment as the user's new default.
//
//	STASIS_URL=http://127.0.0.1:8080 STASIS_API_KEY=… go run ./examples/go alice https://example.com/
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/remote"

	"github.com/stasisd/stasis/client"
)

func main() {
	if len(os.Args) != 3 {
		log.Fatal("usage: go USER URL")
	}
	if err := visit(context.Background(), os.Args[1], os.Args[2]); err != nil {
		log.Fatal(err)
	}
}

func visit(ctx context.Context, user, url string) error {
	stasis := client.New(os.Getenv("STASIS_URL"), os.Getenv("STASIS_API_KEY"))
	session, err := stasis.CreateSession(ctx, client.CreateOptions{FromDefaultOf: user, IfMissing: "fresh"})
	if err != nil {
		return err
	}
	title, err := titleOf(ctx, session.CDPURL, url)
	if err != nil {
		_, _ = stasis.EndSession(ctx, session.ID, client.EndOptions{}) // nothing to save
		return err
	}
	fmt.Printf("%q\n", title)
	ended, err := stasis.EndSession(ctx, session.ID, client.EndOptions{Mode: "filesystem", SaveAsDefault: true})
	if err != nil {
		return err
	}
	fmt.Println(ended.Message)
	return nil
}

// titleOf visits a page in the session's browser and returns its title.
func titleOf(ctx context.Context, cdpURL, url string) (string, error) {
	allocator, disconnect := remote.NewAllocator(ctx, cdpURL, remote.NoModifyURL)
	defer disconnect()
	tab, leave := chromedp.NewContext(allocator)
	defer leave()
	if err := chromedp.Do(tab, chromedp.Navigate(url)); err != nil {
		return "", err
	}
	return chromedp.Run(tab, chromedp.Title())
}
