package report

import (
	"fmt"
	"strconv"
)

// Bounds of the page. A protocol may have ten thousand cells; a page of that
// size would help nobody, and what is left out stands in the CSV.
const (
	pageFigureBytes   = 2_100_000 // of all charts and the tables beside them
	pageTableBytes    = 400_000   // of tables that go on once there is no room for charts
	pageProtocolBytes = 120_000   // of the frozen protocol
	pageRows          = 240       // of one table
	pageItems         = 40        // of one list
	pageText          = 2_000     // characters of one text from outside
	checkText         = 160       // of what a check says, in the table of checks
	headText          = 300       // of the question on the first screen, so that the verdict is on it too
	forestRows        = 64        // of one forest plot
)

// pageRoom is what is left of the page's size for figures. Its charts get
// their ids from it, so that these are unique.
type pageRoom struct {
	left   int
	charts int
}

func (r *pageRoom) id() string {
	r.charts++
	return "f" + strconv.Itoa(r.charts)
}

// full says that no further chart is drawn; spent, that no further table is.
func (r *pageRoom) full() bool { return r.left <= 0 }

func (r *pageRoom) spent() bool { return r.left <= -pageTableBytes }

func (r *pageRoom) take(n int) { r.left -= n }

// shorten cuts a text from outside and says how much it cut.
func shorten(s string) string { return shortenTo(s, pageText) }

func shortenTo(s string, most int) string {
	runes := []rune(s)
	if len(runes) <= most {
		return s
	}
	return string(runes[:most]) + fmt.Sprintf("… (%s more)", counted(len(runes)-most, "character"))
}

// firstOf cuts a list and adds a line that says how much it cut.
func firstOf(list []string, most int) []string {
	out := make([]string, 0, min(len(list), most+1))
	for i, s := range list {
		if i == most {
			return append(out, fmt.Sprintf("and %s more", thousands(strconv.Itoa(len(list)-most))))
		}
		out = append(out, shorten(s))
	}
	return out
}

// leftOut says that a table or chart ends early, and where the rest is.
func leftOut(n int, what string) string {
	if n <= 0 {
		return ""
	}
	return "Left out here, to keep the page small: " + counted(n, what) + ". All of it stands in the csv format of this report."
}
