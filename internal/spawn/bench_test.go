//go:build linux

package spawn

import (
	"context"
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// BenchmarkTrue compares what a run costs in total with the two usual ways.
func BenchmarkTrue(b *testing.B) {
	program := lookTrue(b)
	env := []string{"PATH=/usr/bin:/bin"}
	b.Run("launcher", func(b *testing.B) {
		l := start1(b)
		for b.Loop() {
			if _, err := l.Run(context.Background(), Cmd{Path: program, Env: env}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("os-exec", func(b *testing.B) {
		for b.Loop() {
			c := exec.Command(program)
			c.Env = env
			if err := c.Run(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("fork-wait4", func(b *testing.B) {
		null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
		if err != nil {
			b.Fatal(err)
		}
		defer null.Close()
		attr := &syscall.ProcAttr{Env: env, Files: []uintptr{null.Fd(), null.Fd(), null.Fd()}}
		var status syscall.WaitStatus
		var use syscall.Rusage
		for b.Loop() {
			pid, err := syscall.ForkExec(program, []string{program}, attr)
			if err != nil {
				b.Fatal(err)
			}
			if _, err := syscall.Wait4(pid, &status, 0, &use); err != nil {
				b.Fatal(err)
			}
		}
	})
}
