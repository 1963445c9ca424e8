package browser

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// sound is a page without a fault. Each page that must be rejected differs from
// it in one place.
const sound = `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>A sound page</title>
<style>
:root { color-scheme: light dark; --ink: #222; --paper: #fff; --mark: #ffe9a8; }
@media (prefers-color-scheme: dark) { :root { --ink: #ddd; --paper: #111; --mark: #333; } }
body { margin: 0; font: 16px sans-serif; color: var(--ink); background: var(--paper); }
a, summary { color: inherit; }
:focus-visible { outline: 3px solid var(--ink); }
.scroll { overflow-x: auto; margin: 8px; }
.wide { width: 2000px; }
svg text { font: 12px sans-serif; fill: var(--ink); }
/*style*/
</style>
</head>
<body>
<!--before-->
<header><h1>Does it hold?</h1><p class="verdict">GO, it holds</p></header>
<nav aria-label="Parts"><a href="#more">More</a></nav>
<main>
<h2 id="more">More</h2>
<div class="scroll" tabindex="0" role="region" aria-label="Figures"><table class="wide">
<caption>Figures</caption><thead><tr><th scope="col">Arm</th><th scope="col">Mean</th></tr></thead>
<tbody><tr><th scope="row">control</th><td>1</td></tr></tbody></table></div>
<details><summary>The rest</summary><p>Folded up, with <a href="#more">a link</a>.</p></details>
<svg width="200" height="40" role="img" aria-labelledby="t"><title id="t">A chart</title><rect width="100" height="40" fill="var(--mark)"/><text x="10" y="24">left</text><text x="120" y="24">right</text></svg>
<!--after-->
</main>
</body>
</html>
`

// twins are pages that must be rejected, each by the rule that is meant for it.
var twins = []struct {
	name string
	old  string // of the sound page
	new  string
	rule string
	look Look
}{
	{"a picture from elsewhere", "<!--after-->", `<img alt="a picture" src="https://example.com/a.png">`, RuleLoad, wide},
	{"a style sheet from elsewhere", "<!--before-->", `<link rel="stylesheet" href="http://192.0.2.1/a.css">`, RuleLoad, wide},
	{"a file that is not there", "<!--after-->", `<img alt="a picture" src="missing.png">`, RuleLoad, wide},
	{"a script that fails", "<!--after-->", `<script>nothing.there()</script>`, RuleConsole, wide},
	{"a script that complains", "<!--after-->", `<script>console.error("oh")</script>`, RuleConsole, wide},
	{"a script that the page itself forbids", "<!--before-->", `<meta http-equiv="Content-Security-Policy" content="script-src 'none'"><script>1</script>`, RuleConsole, wide},

	{"the verdict below the fold", "<!--before-->", `<div style="height: 790px">An introduction</div>`, RuleFirst, wide},
	{"the verdict beside a narrow screen", `class="verdict"`, `class="verdict" style="margin-left: 350px; white-space: nowrap"`, RuleFirst, narrow},
	{"another verdict", "GO, it holds", "NO-GO", RuleFirst, wide},
	{"a verdict that is hidden", `class="verdict"`, `class="verdict" style="visibility: hidden"`, RuleFirst, wide},
	{"a verdict behind a banner", "<!--before-->", `<div style="position: fixed; inset: 0 0 auto; height: 200px; background: var(--paper)">Banner</div>`, RuleFirst, wide},
	{"no verdict", `class="verdict"`, ``, RuleFirst, wide},

	{"a table that widens the page", `class="scroll" tabindex="0"`, `class="plain"`, RuleOverflow, narrow},
	{"a word that widens the page", "<!--after-->", "<p>" + strings.Repeat("wide", 40) + "</p>", RuleOverflow, narrow},

	{"low contrast in light", "--ink: #222", "--ink: #999", RuleContrast, wide},
	{"low contrast in dark only", "--ink: #ddd", "--ink: #444", RuleContrast, Look{1280, 800, true}},
	{"low contrast by opacity", "/*style*/", "h2 { opacity: .4; font-weight: 400 }", RuleContrast, wide},
	{"low contrast of a label in a chart", "/*style*/", "svg text { fill: #aaa }", RuleContrast, wide},
	{"low contrast on a shape in a chart", "--mark: #ffe9a8", "--mark: #555", RuleContrast, wide},
	{"low contrast by a modern colour", "/*style*/", ".verdict { color: oklch(0.8 0.05 200) }", RuleContrast, wide},
	{"text on a picture", "/*style*/", "header { background-image: linear-gradient(#fff, #000) }", RuleContrast, wide},

	{"a button that is none", "<!--after-->", `<div onclick="1" role="button">Press</div>`, RuleKeyboard, wide},
	{"a link out of the order", `<a href="#more">More</a>`, `<a href="#more" tabindex="-1">More</a>`, RuleKeyboard, wide},
	{"a region that scrolls without the keyboard", `class="scroll" tabindex="0"`, `class="scroll"`, RuleKeyboard, wide},
	{"what scrolls downwards only", "<!--after-->", `<pre style="height: 20px; overflow-y: auto">` + "1\n2\n3\n4" + `</pre>`, RuleKeyboard, wide},
	{"a fold that no key opens", "<!--after-->", `<details style="pointer-events: none" inert><summary>Shut</summary>text</details>`, RuleKeyboard, wide},
	{"no outline", "outline: 3px solid var(--ink)", "outline: none", RuleFocus, wide},
	{"an outline that is not seen", "outline: 3px solid var(--ink)", "outline: 3px solid #eee", RuleFocus, wide},
	{"an outline that is cut off", `<div class="scroll" tabindex="0"`, `<div style="overflow: hidden"><div class="scroll" style="margin: 0" tabindex="0"`, RuleFocus, wide},
	{"a link that stays outside when it has the focus", "<!--before-->", `<a href="#more" style="position: fixed; left: -900px">Skip</a>`, RuleFocus, wide},

	{"no language", ` lang="en"`, ``, RuleStructure, wide},
	{"no title", `<title>A sound page</title>`, ``, RuleStructure, wide},
	{"a heading left out", `<h2 id="more">More</h2>`, `<h3 id="more">More</h3>`, RuleStructure, wide},
	{"a table without heads", `<thead><tr><th scope="col">Arm</th><th scope="col">Mean</th></tr></thead>`, ``, RuleStructure, wide},
	{"heads without scope", ` scope="row"`, ``, RuleStructure, wide},
	{"a column without a head", `<td>1</td>`, `<td>1</td><td>2</td>`, RuleStructure, wide},
	{"a chart without a name", `aria-labelledby="t"><title id="t">A chart</title>`, `>`, RuleStructure, wide},
	{"a chart named by nothing", `aria-labelledby="t"`, `aria-labelledby="u"`, RuleStructure, wide},
	{"a drawing that is no picture", `role="img" `, ``, RuleStructure, wide},
	{"a picture without words", "<!--after-->", `<img src="data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7">`, RuleStructure, wide},
	{"a region without a name", ` aria-label="Figures"`, ``, RuleStructure, wide},
	{"a link to nowhere", `<a href="#more">More</a>`, `<a href="#less">More</a>`, RuleStructure, wide},
	{"an id twice", "<!--after-->", `<p id="more">Again</p>`, RuleStructure, wide},
	{"labels on each other", `<text x="120"`, `<text x="16"`, RuleOverlap, wide},
}

var (
	wide   = Look{Width: 1280, Height: 800}
	narrow = Look{Width: 390, Height: 844}
)

// faultsOf looks at a page in every way that can find faults of the rules; none are
// all.
func faultsOf(t *testing.T, b *Browser, html string, look Look, rules ...string) []Fault {
	t.Helper()
	path := filepath.Join(t.TempDir(), "page.html")
	if err := os.WriteFile(path, []byte(html), 0o644); err != nil {
		t.Fatal(err)
	}
	p, err := b.OpenFile(path, look)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	var all []Fault
	for _, one := range []struct {
		look  func() ([]Fault, error)
		rules []string
	}{
		{func() ([]Fault, error) { return p.FirstScreen(".verdict", "GO, it holds") }, []string{RuleFirst}},
		{p.Walk, []string{RuleKeyboard, RuleFocus}},
		{p.Overflow, []string{RuleOverflow}},
		{p.Contrast, []string{RuleContrast}},
		{p.Structure, []string{RuleStructure, RuleOverlap}},
		{p.Loading, []string{RuleLoad, RuleConsole}},
	} {
		if len(rules) > 0 && !slices.ContainsFunc(one.rules, func(r string) bool { return slices.Contains(rules, r) }) {
			continue
		}
		faults, err := one.look()
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, faults...)
	}
	return all
}

func TestASoundPageHasNoFault(t *testing.T) {
	b := start(t)
	for _, look := range []Look{wide, narrow, {1280, 800, true}, {390, 844, true}} {
		for _, f := range faultsOf(t, b, sound, look) {
			t.Errorf("%v: %v", look, f)
		}
	}
}

func TestEveryRuleRejects(t *testing.T) {
	b := start(t)
	rejected := map[string]bool{}
	for _, c := range twins {
		rejected[c.rule] = true
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if strings.Count(sound, c.old) < 1 {
				t.Fatalf("the sound page has no %q", c.old)
			}
			faults := faultsOf(t, b, strings.Replace(sound, c.old, c.new, 1), c.look, c.rule)
			if !slices.ContainsFunc(faults, func(f Fault) bool { return f.Rule == c.rule }) {
				t.Errorf("passes rule %s; found: %v", c.rule, faults)
			}
			for _, f := range faults {
				if f.Where == "" || f.What == "" {
					t.Errorf("a fault that does not say where or what: %+v", f)
				}
			}
		})
	}
	for _, rule := range []string{RuleLoad, RuleConsole, RuleFirst, RuleOverflow, RuleKeyboard, RuleFocus, RuleContrast, RuleStructure, RuleOverlap} {
		if !rejected[rule] {
			t.Errorf("no page here must be rejected by rule %s", rule)
		}
	}
}

// What is folded up is opened by the walk, and looked at then.
func TestTheWalkOpensWhatIsFolded(t *testing.T) {
	b := start(t)
	hidden := strings.Replace(sound, `<a href="#more">a link</a>.`, `<a href="#more">a link</a>. <span style="color: #bbb; background: #fff">Pale</span> <span onclick="1">Press</span>`, 1)
	faults := faultsOf(t, b, hidden, wide)
	for _, rule := range []string{RuleContrast, RuleKeyboard} {
		if !slices.ContainsFunc(faults, func(f Fault) bool { return f.Rule == rule }) {
			t.Errorf("nothing of rule %s in what was folded up: %v", rule, faults)
		}
	}
}

func TestAPageThatIsNotThere(t *testing.T) {
	b := start(t)
	if _, err := b.OpenFile(filepath.Join(t.TempDir(), "none.html"), wide); err == nil {
		t.Error("opened")
	}
}

func TestAddresses(t *testing.T) {
	file := &url.URL{Scheme: "file", Path: "/tmp/a.html"}
	server := &url.URL{Scheme: "http", Host: "127.0.0.1:8080"}
	for address, want := range map[string][2]bool{
		"file:///tmp/b.png": {true, false}, "file://host/share": {false, false},
		"http://127.0.0.1:8080/runs/a?b=c": {false, true}, "http://127.0.0.1:8081/": {false, false}, "http://127.0.0.1/": {false, false},
		"https://127.0.0.1:8080/": {false, false}, "http://me@127.0.0.1:8080/": {false, false}, "ws://127.0.0.1:8080/": {false, false}, "http://localhost:8080/": {false, false},
		"data:image/png;base64,": {true, true}, "about:blank": {true, true},
		"https://example.com": {false, false}, "": {false, false}, "ftp://x": {false, false}, "://": {false, false},
	} {
		if got := [2]bool{belongs(file, address), belongs(server, address)}; got != want {
			t.Errorf("%q belongs to a file and to a server: %v, want %v", address, got, want)
		}
	}
	if s := fmt.Sprint(Look{390, 844, true}); s != "390x844 dark" {
		t.Error(s)
	}
}

// Nobody may look at a page that others can change.
func TestOnlyThisMachineIsOpened(t *testing.T) {
	for _, address := range []string{"http://192.0.2.1:80/", "http://localhost:80/", "https://127.0.0.1:80/", "http://127.0.0.1/", "file:///tmp/a.html", "://"} {
		if _, err := (&Browser{}).OpenServed(address, wide); err == nil {
			t.Errorf("%s was opened", address)
		}
	}
}
