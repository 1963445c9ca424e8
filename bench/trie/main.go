// Command trie holds artrie against its bars: other embedded stores, its own
// control arms, and the machine's sync. It prints one line per figure, met or
// missed, and judges nothing else; what the misses mean is in docs/artrie.md.
//
//	cd bench/trie && go run .            everything, about ten minutes
//	go run . -only memory,checkpoint     some sections
//	go run . -quick                      a few seconds: does it still work
//
// Every measurement is a process of its own, because some compare memory. Within a
// round the arms of a section run one after the other, in turning order; a ratio is
// the median of the rounds' ratios, any other figure the median over the rounds.
// Lines that begin with "figure:" are for bench/bars in the module above.
// S is the median time that one sync of a small write takes, measured in each round.
//
// It is a module of its own, so that nobody who uses artrie downloads its peers. It
// must never know how a store works inside.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"slices"
	"strings"
	"time"
)

// config is what every measurement is told.
type config struct {
	Dir   string // scratch, on the disk that is to be measured
	Quick bool
	// Profile is a folder for a processor profile of each measurement; "": none.
	Profile string
	// Keys is the size of the large tree, Ops the writes of one durable run, Few those
	// beside spinning readers; Limit ends a durable run before that.
	Keys, Ops, Few int
	Limit          time.Duration
}

func (c config) scaled() config {
	c.Keys, c.Ops, c.Few, c.Limit = 1_000_000, 16_000, 4_000, 4*time.Second
	if c.Quick {
		c.Keys, c.Ops, c.Few, c.Limit = 20_000, 400, 160, time.Second
	}
	return c
}

// figures are what one measurement found, by name.
type figures map[string]float64

// arm is one thing that is measured, in a process of its own.
type arm struct {
	name string
	env  []string
	run  func(config) (figures, error)
}

// section is a group of arms that are compared with each other.
type section struct {
	name string
	arms []arm
	rows func(results) []row
}

func sections() []section {
	return []section{peersSection(), emptySection(), largeSection(), spinSection(), memorySection(), checkpointSection(), recoverySection(), evictionSection()}
}

// armEnv and configEnv make a process measure one arm and print its figures.
const armEnv, configEnv = "ASSAY_TRIE_ARM", "ASSAY_TRIE_CONFIG"

func main() {
	if os.Getenv(armEnv) != "" {
		exit(child(os.Stdout))
	}
	var c config
	var names []string
	for _, s := range sections() {
		names = append(names, s.name)
	}
	only := flag.String("only", "", "sections, separated by commas: "+strings.Join(names, ", "))
	runs := flag.Int("runs", 5, "rounds")
	flag.StringVar(&c.Dir, "dir", os.TempDir(), "a folder on the disk that is to be measured; 1 GiB is used for a while")
	flag.StringVar(&c.Profile, "profile", "", "a folder for processor profiles, one of each measurement")
	flag.BoolVar(&c.Quick, "quick", false, "small sizes and one round: the figures mean nothing")
	flag.Parse()
	exit(parent(os.Stdout, c, *only, *runs))
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// child measures the arm that the environment names.
func child(out io.Writer) error {
	var c config
	if err := json.Unmarshal([]byte(os.Getenv(configEnv)), &c); err != nil {
		return fmt.Errorf("%s: %w", configEnv, err)
	}
	for _, s := range append(sections(), prepareSection()) {
		for _, a := range s.arms {
			if s.name+"/"+a.name != os.Getenv(armEnv) {
				continue
			}
			f, err := profiled(c, s.name+"-"+a.name, a.run)
			if err != nil {
				return err
			}
			return json.NewEncoder(out).Encode(f)
		}
	}
	return fmt.Errorf("no arm %q", os.Getenv(armEnv))
}

func profiled(c config, name string, run func(config) (figures, error)) (figures, error) {
	if c.Profile == "" {
		return run(c)
	}
	f, err := os.CreateTemp(c.Profile, name+"-*.prof")
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	got, err := run(c)
	pprof.StopCPUProfile()
	return got, errors.Join(err, f.Close())
}

// parent runs the sections and prints their rows.
func parent(out io.Writer, c config, only string, runs int) (err error) {
	c = c.scaled()
	if c.Quick {
		runs = 1
	}
	chosen, err := choose(only)
	if err != nil {
		return err
	}
	if c.Profile != "" {
		// A measurement may run in another folder.
		if c.Profile, err = filepath.Abs(c.Profile); err != nil {
			return err
		}
	}
	if c.Dir, err = os.MkdirTemp(c.Dir, "assay-trie-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(c.Dir)) }()
	fmt.Fprintf(out, "%d processors, %s, GOMAXPROCS %d, %d rounds, scratch in %s\n",
		runtime.NumCPU(), runtime.Version(), runtime.GOMAXPROCS(0), runs, filepath.Dir(c.Dir))
	for _, a := range prepareSection().arms {
		if _, err := measure(c, "prepare", a); err != nil {
			return err
		}
	}
	for _, s := range chosen {
		start, before := time.Now(), cpuNow()
		got := results{}
		for round := range runs {
			for i := range s.arms {
				a := s.arms[(i+round)%len(s.arms)]
				f, err := measure(c, s.name, a)
				if err != nil {
					return err
				}
				got[a.name] = append(got[a.name], f)
			}
		}
		fmt.Fprintf(out, "\n%s (%.0f s; other processes used %.0f %% of the machine)\n", s.name, time.Since(start).Seconds(), cpuNow().foreign(before))
		for _, r := range s.rows(got) {
			fmt.Fprintln(out, r)
			fmt.Fprintf(out, "figure: %s.%s %g\n", s.name, r.name, r.got)
		}
	}
	return nil
}

func choose(only string) ([]section, error) {
	all := sections()
	if only == "" {
		return all, nil
	}
	var out []section
	for name := range strings.SplitSeq(only, ",") {
		i := slices.IndexFunc(all, func(s section) bool { return s.name == name })
		if i < 0 {
			return nil, fmt.Errorf("no section %q", name)
		}
		out = append(out, all[i])
	}
	return out, nil
}

// measure runs one arm in a process of its own.
func measure(c config, section string, a arm) (figures, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	b, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self)
	cmd.Env = append(append(os.Environ(), armEnv+"="+section+"/"+a.name, configEnv+"="+string(b)), a.env...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	text, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s/%s: %w\n%s", section, a.name, err, stderr.Bytes())
	}
	var f figures
	if err := json.Unmarshal(text, &f); err != nil {
		return nil, fmt.Errorf("%s/%s printed %q: %w", section, a.name, text, err)
	}
	return f, nil
}
