package server

import (
	"slices"
	"sync"
	"time"

	"github.com/assaylab/assay/replset/query/value"
)

// failPoints are the fail points of one member.
type failPoints struct {
	mu    sync.Mutex
	named map[string]*failPoint
}

type failPoint struct {
	name  string
	times int64 // -1: for ever
	skip  int64
	hits  int64

	commands []string
	all      bool
	app      string
	ns       string
	hangUp   bool
	code     int32
	block    time.Duration
	labels   []string
	wcError  *Error
	extra    document
}

func newFailPoints() *failPoints { return &failPoints{named: map[string]*failPoint{}} }

func (f *failPoints) clear() {
	f.mu.Lock()
	defer f.mu.Unlock()
	clear(f.named)
}

// fired consumes one use.
func (p *failPoint) fired() bool {
	switch {
	case p.skip > 0:
		p.skip--
		return false
	case p.times == 0:
		return false
	case p.times > 0:
		p.times--
	}
	p.hits++
	return true
}

func (p *failPoint) concerns(k *call) bool {
	if p.app != "" && p.app != k.conn.app {
		return false
	}
	if p.ns != "" {
		if coll := value.Str(k.get(k.name)); p.ns != k.db+"."+coll {
			return false
		}
	}
	if p.all {
		return k.cmd.name != "configureFailPoint"
	}
	return slices.Contains(p.commands, k.cmd.name) || slices.Contains(p.commands, k.name) ||
		slices.ContainsFunc(k.cmd.aliases, func(a string) bool { return slices.Contains(p.commands, a) })
}

// check lets failCommand act on a command. The returned point, if any, lets the
// command run and has its write concern error attached.
func (f *failPoints) check(k *call) (*failPoint, error) {
	if k.cmd.name == "configureFailPoint" {
		return nil, nil
	}
	f.mu.Lock()
	p := f.named["failCommand"]
	if p == nil || !p.concerns(k) || !p.fired() {
		f.mu.Unlock()
		return nil, nil
	}
	hit := *p
	f.mu.Unlock()
	if hit.block > 0 {
		sleep(k.conn.ctx, hit.block)
	}
	switch {
	case hit.hangUp:
		return nil, errHangUp
	case hit.code != 0:
		// Labels depend on the session, which is parsed later otherwise.
		if err := k.parseSession(); err != nil {
			return nil, err
		}
		return nil, hit.error()
	case hit.wcError != nil || hit.labels != nil:
		return &hit, nil
	}
	return nil, nil
}

// checkGetMore lets failGetMoreAfterCursorCheckout act.
func (f *failPoints) checkGetMore() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if p := f.named["failGetMoreAfterCursorCheckout"]; p != nil && p.fired() {
		return p.error()
	}
	return nil
}

// checkWrite lets onPrimaryTransactionalWrite act on a statement of a retryable write:
// before it, or after it has been committed. Both end the connection unless the fail
// point says otherwise.
func (f *failPoints) checkWrite() (before error, after bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	p := f.named[onWrite]
	switch {
	case p == nil || !p.fired():
		return nil, false
	case p.code != 0 && p.hangUp:
		return errHangUp, false
	case p.code != 0:
		return p.error(), false
	}
	return nil, p.hangUp
}

const onWrite = "onPrimaryTransactionalWrite"

func (p *failPoint) error() error {
	return &Error{Code: p.code, Message: "Failing command via 'failCommand' failpoint", Labels: p.labels, Extra: p.extra, Staged: true}
}

func cmdConfigureFailPoint(k *call) error {
	name := k.text(k.name)
	if !slices.Contains([]string{"failCommand", "failGetMoreAfterCursorCheckout", onWrite}, name) {
		return errorf(1, "failpoint '%s' not found", name)
	}
	p := &failPoint{name: name, times: -1}
	mode := k.get("mode")
	switch {
	case value.IsString(mode) && value.Str(mode) == "off":
		p = nil
	case value.IsString(mode) && value.Str(mode) == "alwaysOn":
	case value.IsDocument(mode):
		a := &args{what: "mode", doc: mode.Data}
		if err := a.only([]string{"times", "skip"}); err != nil {
			return err
		}
		p.times, p.skip = a.count("times", -1), a.count("skip", 0)
		if a.err != nil {
			return a.err
		}
	default:
		return errorf(codeBadValue, "unknown mode of a fail point: %s", value.Show(mode))
	}
	if p != nil {
		if err := p.parse(k.document("data")); err != nil {
			return err
		}
	}
	if k.err != nil {
		return k.err
	}
	f := k.s.points
	f.mu.Lock()
	defer f.mu.Unlock()
	was := int64(0)
	if old := f.named[name]; old != nil {
		was = old.hits
	}
	if p == nil {
		delete(f.named, name)
	} else {
		f.named[name] = p
	}
	k.out.AppendInt32("count", int32(was))
	return nil
}

func (p *failPoint) parse(data document) error {
	a := &args{what: "data", doc: data}
	if data == nil {
		a.doc = emptyDoc
	}
	err := a.only([]string{
		"failCommands", "closeConnection", "errorCode", "errorLabels", "writeConcernError", "appName", "namespace",
		"failAllCommands", "blockConnection", "blockTimeMS", "errorExtraInfo", "failInternalCommands", "failBeforeCommitExceptionCode",
	})
	if err != nil {
		return err
	}
	texts := func(name string) []string {
		v := a.array(name)
		if value.IsMissing(v) {
			return nil
		}
		out := []string{}
		for e := range value.Elements(v.Data) {
			out = append(out, value.Str(e))
		}
		return out
	}
	p.commands, p.labels = texts("failCommands"), texts("errorLabels")
	p.all, p.app, p.ns = a.boolean("failAllCommands", false), a.text("appName"), a.text("namespace")
	p.hangUp, p.code = a.boolean("closeConnection", false), int32(a.integer("errorCode", 0))
	if p.name == onWrite {
		p.hangUp, p.code = a.boolean("closeConnection", true), int32(a.integer("failBeforeCommitExceptionCode", 0))
	}
	p.extra = a.document("errorExtraInfo")
	if a.boolean("blockConnection", false) {
		if !a.has("blockTimeMS") {
			return errorf(codeInvalidOptions, "'blockTimeMS' must be set when 'blockConnection' is true")
		}
		p.block = time.Duration(a.count("blockTimeMS", 0)) * time.Millisecond
	}
	if d := a.document("writeConcernError"); d != nil {
		wc := &args{what: "writeConcernError", doc: d}
		p.wcError = &Error{Code: int32(wc.integer("code", 0)), Message: wc.text("errmsg"), Staged: true}
		extra := newDoc()
		for key, v := range value.Fields(d) {
			switch key {
			case "code", "errmsg", "codeName", "errorLabels":
			default:
				extra.AppendValue(key, v)
			}
		}
		p.wcError.Extra = extra.Build()
		if v := wc.array("errorLabels"); !value.IsMissing(v) && p.labels == nil {
			p.labels = []string{}
			for e := range value.Elements(v.Data) {
				p.labels = append(p.labels, value.Str(e))
			}
		}
	}
	return a.err
}
