package replset

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"sync"
	"time"

	"github.com/assaylab/assay/internal/peak"
	"github.com/assaylab/assay/replset/member"
	"github.com/assaylab/assay/replset/server"
)

// process is a member in a process of its own.
type process struct {
	command  []string
	keeper   *keeper
	onChange func()

	mu     sync.Mutex
	config member.Config // with the faults of its next start
	peak   int64         // of the lives before this one
	life   *life         // nil while it is down
}

func newProcess(c member.Config, command []string, k *keeper, onChange func()) *process {
	return &process{config: c, command: command, keeper: k, onChange: onChange}
}

const (
	obeyTimeout  = 10 * time.Second // for what a member does at once
	closeTimeout = 10 * time.Second // for its end in order
)

func (p *process) now() *life {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.life
}

func (p *process) start() error {
	p.mu.Lock()
	c := p.config
	p.mu.Unlock()
	l, err := begin(p.command, c, p.keeper, p.onChange)
	if err != nil {
		return fmt.Errorf("member %d as a process: %w", c.Index, err)
	}
	p.mu.Lock()
	p.life = l
	p.mu.Unlock()
	p.onChange()
	return nil
}

// end takes the life out, with what it has used.
func (p *process) end() *life {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.life
	p.life = nil
	if l != nil {
		p.peak = max(p.peak, l.peakMemory())
	}
	return l
}

func (p *process) kill() error {
	l := p.end()
	if l == nil {
		return nil
	}
	l.dying()
	l.kill()
	<-l.ended
	return nil
}

func (p *process) close() error {
	l := p.end()
	if l == nil {
		return nil
	}
	l.dying()
	_ = l.resume()
	err := l.in.Close()
	late := time.AfterFunc(closeTimeout, func() { l.kill() })
	<-l.ended
	if !late.Stop() {
		err = errors.Join(err, fmt.Errorf("replset: member %d did not end within %v and was killed", p.config.Index, closeTimeout))
	}
	return err
}

// mute stops the process.
func (p *process) mute() error {
	if err := p.now().pause(); !errors.Is(err, errDown) {
		return err
	}
	return nil // it has died by itself; kill takes note
}

func (p *process) pause() error { return p.now().pause() }

func (p *process) resume() error {
	l := p.now()
	if err := l.resume(); err != nil {
		return err
	}
	return p.inform(l)
}

func (p *process) role() (server.Role, bool) {
	if l := p.now(); l != nil {
		return l.role()
	}
	return server.Role{Primary: -1}, false
}

func (p *process) err() error {
	if l := p.now(); l != nil {
		return l.err()
	}
	return nil
}

func (p *process) ask(ctx context.Context, o order) (report, error) {
	l := p.now()
	if l == nil {
		return report{}, errDown
	}
	return l.ask(ctx, o)
}

func (p *process) stepDown(ctx context.Context) error {
	_, err := p.ask(ctx, order{Do: doStepDown})
	return err
}

func (p *process) stepUp(ctx context.Context) error {
	_, err := p.ask(ctx, order{Do: doStepUp})
	return err
}

func (p *process) clean(ctx context.Context) error {
	_, err := p.ask(ctx, order{Do: doClean})
	return err
}

func (p *process) check(ctx context.Context) ([]string, error) {
	r, err := p.ask(ctx, order{Do: doCheck})
	return r.Found, err
}

func (p *process) setFaults(f member.Faults) error {
	p.mu.Lock()
	p.config.Faults = f
	l := p.life
	p.mu.Unlock()
	if l == nil || l.isPaused() {
		return nil // told when it resumes or starts
	}
	return p.inform(l)
}

func (p *process) inform(l *life) error {
	p.mu.Lock()
	f := p.config.Faults
	p.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), obeyTimeout)
	defer cancel()
	if _, err := l.ask(ctx, order{Do: doFaults, Faults: &f}); err != nil && !errors.Is(err, errDown) {
		return fmt.Errorf("telling member %d of its faults: %w", p.config.Index, err)
	}
	return nil
}

func (p *process) pid() int {
	if l := p.now(); l != nil && !l.isOver() {
		return l.cmd.Process.Pid
	}
	return 0
}

func (p *process) peakMemory() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.life == nil {
		return p.peak
	}
	return max(p.peak, p.life.peakMemory())
}

// life is one process, from its start to its end.
type life struct {
	cmd      *exec.Cmd
	in       io.WriteCloser
	orders   *lines
	onChange func()
	stderr   tail
	ended    chan struct{} // closed when it was waited for

	mu      sync.Mutex
	last    *server.Role // nil before it is ready
	failed  string
	ready   chan struct{}
	waiting map[int]chan report
	nextID  int
	paused  bool
	wanted  bool // its end is
	status  error
	peak    int64
}

// begin starts the process and waits until its member serves clients.
func begin(command []string, c member.Config, k *keeper, onChange func()) (*life, error) {
	l := &life{onChange: onChange, ended: make(chan struct{}), ready: make(chan struct{}), waiting: map[int]chan report{}}
	l.cmd = exec.Command(command[0], command[1:]...)
	l.cmd.SysProcAttr = ownProcess()
	l.cmd.Stderr = &l.stderr
	var err error
	if l.in, err = l.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := l.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := k.start(l.cmd); err != nil {
		return nil, err
	}
	l.orders = &lines{w: l.in}
	go l.listen(out)
	err = l.orders.send(c)
	if err == nil {
		select {
		case <-l.ready:
			return l, nil
		case <-l.ended:
		case <-time.After(startTimeout):
			err = fmt.Errorf("it did not become ready within %v", startTimeout)
		}
	}
	l.kill()
	<-l.ended
	if own := l.err(); own != nil {
		return nil, own
	}
	return nil, err
}

// listen takes in what the process reports, until it ends.
func (l *life) listen(out io.Reader) {
	reports := json.NewDecoder(out)
	for {
		var r report
		err := reports.Decode(&r)
		if err == nil {
			l.take(r)
			continue
		}
		if !errors.Is(err, io.EOF) {
			l.take(report{Failed: fmt.Sprintf("what it writes is not a member's report (%v); does %s call replset.RunMember?", err, l.cmd.Path)})
			l.kill()
		}
		break
	}
	_, _ = io.Copy(io.Discard, out)
	status := l.cmd.Wait()
	if status == nil {
		status = errors.New("exit status 0")
	}
	l.mu.Lock()
	l.status = status
	for id, w := range l.waiting {
		close(w)
		delete(l.waiting, id)
	}
	l.mu.Unlock()
	close(l.ended)
	l.onChange()
}

func (l *life) take(r report) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if w := l.waiting[r.ID]; w != nil {
		delete(l.waiting, r.ID)
		w <- r
	}
	if r.Failed != "" {
		l.failed = r.Failed
	}
	if r.Role != nil {
		if l.last == nil {
			close(l.ready)
		}
		l.last = r.Role
	}
	l.onChange()
}

// ask sends an order and waits for its report. The error is what the member said,
// or that it could not be asked.
func (l *life) ask(ctx context.Context, o order) (report, error) {
	if d, ok := ctx.Deadline(); ok {
		o.Within = max(1, time.Until(d))
	}
	answer := make(chan report, 1)
	l.mu.Lock()
	if l.status != nil {
		l.mu.Unlock()
		return report{}, errDown
	}
	l.nextID++
	o.ID = l.nextID
	l.waiting[o.ID] = answer
	l.mu.Unlock()
	if err := l.orders.send(o); err != nil {
		return report{}, errors.Join(errDown, err)
	}
	select {
	case r, ok := <-answer:
		switch {
		case !ok:
			return r, errDown
		case r.NotLeader:
			return r, server.ErrNotLeader
		case r.TooLate: // by the member's clock; ctx may have a moment left
			return r, fmt.Errorf("%s: %w", r.Error, context.DeadlineExceeded)
		case r.Error != "" && ctx.Err() != nil:
			return r, fmt.Errorf("%s: %w", r.Error, ctx.Err())
		case r.Error != "":
			return r, errors.New(r.Error)
		}
		return r, nil
	case <-ctx.Done():
		l.mu.Lock()
		delete(l.waiting, o.ID)
		paused := l.paused
		l.mu.Unlock()
		if !paused { // whose pipe might fill
			_ = l.orders.send(order{Do: doCancel, Instead: o.ID})
		}
		return report{}, ctx.Err()
	}
}

func (l *life) role() (server.Role, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return *l.last, l.status == nil
}

// kill ends the process, unless it was waited for: its number may be another's then.
func (l *life) kill() {
	if !l.isOver() {
		_ = killProcess(l.cmd.Process)
	}
}

func (l *life) dying() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wanted = true
}

func (l *life) isOver() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.status != nil
}

func (l *life) isPaused() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.paused
}

// err is why the member does not take part although it should.
func (l *life) err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.wanted:
		return nil
	case l.failed != "":
		return errors.New(l.failed)
	case l.status != nil:
		return fmt.Errorf("its process ended: %w%s", l.status, l.stderr.text())
	}
	return nil
}

func (l *life) pause() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.status != nil {
		return errDown
	}
	l.paused = true
	return stopProcess(l.cmd.Process)
}

func (l *life) resume() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.paused {
		return nil
	}
	l.paused = false
	return continueProcess(l.cmd.Process)
}

func (l *life) peakMemory() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.status == nil {
		now, _ := peak.Of(l.cmd.Process.Pid) // 0 where the system does not say
		l.peak = max(l.peak, now)
	}
	return l.peak
}

// tail keeps the end of what is written to it.
type tail struct {
	mu sync.Mutex
	b  []byte
}

const tailSize = 8 << 10

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, b...)
	if over := len(t.b) - tailSize; over > 0 {
		t.b = append(t.b[:0], t.b[over:]...)
	}
	return len(b), nil
}

func (t *tail) text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.b) == 0 {
		return ""
	}
	return "; it said: " + string(t.b)
}
