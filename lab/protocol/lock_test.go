package protocol

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

var frozenAt = time.Date(2026, 6, 2, 10, 11, 12, 13, time.FixedZone("", 7200))

func evidence() Evidence {
	return Evidence{
		Tool: "v1.2.3", Now: frozenAt, Source: "exp.yaml",
		Receipts: []Receipt{{Arm: "old", Program: "old", SHA256: "aa", Version: "old 1.0 <é>"}, {Arm: "new", Rev: "0123", Dirty: true}},
		Inputs:   []File{{Path: "corpus.txt", SHA256: "bb", Bytes: 12}},
	}
}

// The bytes are what old locks and ledgers were hashed from: a change of them
// makes every earlier run unverifiable.
func TestCanonicalGolden(t *testing.T) {
	p := load(t, "testdata/full.yaml")
	sum := sha256.Sum256(p.Canonical())
	golden(t, "testdata/full.canonical", string(p.Canonical())+"\n"+hex.EncodeToString(sum[:])+"\n")
	preset := fourBranch(t, true, true)
	sum = sha256.Sum256(preset.Canonical())
	golden(t, "testdata/preset.canonical", string(preset.Canonical())+"\n"+hex.EncodeToString(sum[:])+"\n")
}

func TestLockGolden(t *testing.T) {
	lock, err := Freeze(load(t, "testdata/full.yaml"), evidence())
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "testdata/full.lock.json", string(lock.Bytes()))
	// The file in testdata, and not only what was just made, can be read.
	if _, _, err := ReadLock(read(t, "testdata/full.lock.json")); err != nil {
		t.Error(err)
	}
}

// Leaving a key out and writing its default down is the same protocol.
func TestDefaultsAreWrittenOut(t *testing.T) {
	short := parse(t, base)
	long := base
	for _, e := range [][2]string{
		{"{name: old, shell: ./old}", "{name: old, shell: ./old, timeout: 600s, ok_exit: [0], class: compared}"},
		{"seed: 7", "seed: 7, isolation: process, stop: fixed, scratch: any, scratch_gib: 0"},
		{"source: wall", "source: wall, key: wall, count: false, summarise: mean"},
		{"{name: bytes, better: lower", "{name: bytes, key: bytes, better: lower"},
		{"shell: ./check", "shell: ./check, operations: 1, timeout: 10m, reported: false"},
		{"primary: {metric: wall", "primary: {metric: wall, treatment: new, test: paired, alpha: 0.05, floor: {}"},
		{"metric: bytes, require", "metric: bytes, arm: new, statistic: mean, class: gated, require"},
		{"max: 10, action: warn", "max: 10, action: warn, unavailable: warn"},
	} {
		if strings.Count(long, e[0]) != 1 {
			t.Fatal(e[0])
		}
		long = strings.Replace(long, e[0], e[1], 1)
	}
	if a, b := short.Canonical(), parse(t, long).Canonical(); !bytes.Equal(a, b) {
		t.Errorf("\n%s\n%s", a, b)
	}
	for _, src := range []string{edited(t, "source: wall", "source: cpu"), edited(t, "unit: ms, ", "")} {
		if bytes.Equal(parse(t, src).Canonical(), short.Canonical()) {
			t.Error("another protocol has the same bytes")
		}
	}
	if u := parse(t, edited(t, "unit: ms, ", "")).Metrics[0].Unit; u != "s" {
		t.Errorf("the default unit of a time is %q", u)
	}
	if u := parse(t, edited(t, "unit: ms, better: lower, source: wall", "better: lower, source: peak_memory")).Metrics[0].Unit; u != "MiB" {
		t.Errorf("the default unit of memory is %q", u)
	}
}

// fill gives every value below v something that is not zero.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i))
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(v.Index(0))
		fill(v.Index(1))
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		x := reflect.New(v.Type().Elem()).Elem()
		fill(x)
		v.SetMapIndex(reflect.ValueOf("k"), x)
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(7)
	case reflect.Uint64:
		v.SetUint(7)
	case reflect.Float64:
		v.SetFloat(0.5)
	default:
		panic(v.Type().String())
	}
}

// mutants calls visit after each single change of a value below v, and undoes
// it.
func mutants(path string, v reflect.Value, visit func(path string)) {
	change := func(x any) {
		old := reflect.New(v.Type()).Elem()
		old.Set(v)
		v.Set(reflect.ValueOf(x).Convert(v.Type()))
		visit(fmt.Sprint(path, "=", x))
		v.Set(old)
	}
	switch v.Kind() {
	case reflect.Pointer:
		old := v.Elem().Interface()
		mutants(path, v.Elem(), visit)
		v.SetZero()
		visit(path + "=nil")
		v.Set(reflect.New(v.Type().Elem()))
		v.Elem().Set(reflect.ValueOf(old))
	case reflect.Struct:
		for i := range v.NumField() {
			mutants(path+"."+v.Type().Field(i).Name, v.Field(i), visit)
		}
	case reflect.Slice:
		change(v.Slice(0, 1).Interface())
		for i := range v.Len() {
			mutants(fmt.Sprintf("%s[%d]", path, i), v.Index(i), visit)
		}
	case reflect.Map:
		old := v.MapIndex(reflect.ValueOf("k"))
		v.SetMapIndex(reflect.ValueOf("k2"), old)
		visit(path + " with another key")
		v.SetMapIndex(reflect.ValueOf("k2"), reflect.Value{})
		x := reflect.New(v.Type().Elem()).Elem()
		x.Set(old)
		mutants(path+".k", x, func(p string) {
			v.SetMapIndex(reflect.ValueOf("k"), x)
			visit(p)
		})
		v.SetMapIndex(reflect.ValueOf("k"), old)
	case reflect.String:
		change("y")
	case reflect.Bool:
		change(false)
	case reflect.Int, reflect.Int64, reflect.Uint64:
		change(8)
		change(0)
	case reflect.Float64:
		change(0.25)
		change(0.0)
	}
}

// Whatever changes in a protocol changes its bytes and so its digest.
func TestEveryFieldIsInTheDigest(t *testing.T) {
	p := &Protocol{}
	fill(reflect.ValueOf(p).Elem())
	want := p.Canonical()
	seen := map[string]string{string(want): "the original"}
	mutants("", reflect.ValueOf(p).Elem(), func(path string) {
		b := string(p.Canonical())
		if other, dup := seen[b]; dup {
			t.Errorf("%s has the same bytes as %s", path, other)
		}
		seen[b] = path
	})
	if !bytes.Equal(p.Canonical(), want) {
		t.Error("the test did not undo its changes")
	}
	if len(seen) < 150 {
		t.Errorf("only %d changes tried", len(seen))
	}
	var back Protocol
	if err := json.Unmarshal(want, &back); err != nil || !reflect.DeepEqual(&back, p) {
		t.Errorf("%v\n%+v", err, back)
	}
}

// The same holds for all that a lock says beside the protocol.
func TestEveryLockFieldIsInTheDigest(t *testing.T) {
	l := &Lock{
		Schema: 1, Version: 2, Tool: "t", Frozen: frozenAt, Source: "s", Protocol: json.RawMessage(`{"a":1}`), SHA256: "x",
		Receipts: evidence().Receipts, Inputs: evidence().Inputs, Exploratory: "e",
		Deviations: []Deviation{{Version: 2, Reason: "r", When: frozenAt, Previous: "p", Changed: []string{"arms"}}},
	}
	seen := map[string]bool{l.digest(): true}
	try := func(what string, change func(l *Lock)) {
		c := *l
		c.Receipts, c.Inputs, c.Deviations = slices.Clone(l.Receipts), slices.Clone(l.Inputs), slices.Clone(l.Deviations)
		change(&c)
		if d := c.digest(); seen[d] {
			t.Errorf("%s is not in the digest", what)
		} else {
			seen[d] = true
		}
	}
	try("schema", func(l *Lock) { l.Schema = 2 })
	try("version", func(l *Lock) { l.Version = 3 })
	try("tool", func(l *Lock) { l.Tool = "u" })
	try("frozen", func(l *Lock) { l.Frozen = frozenAt.Add(time.Second) })
	try("source", func(l *Lock) { l.Source = "u" })
	try("protocol", func(l *Lock) { l.Protocol = json.RawMessage(`{"a":2}`) })
	try("sha256", func(l *Lock) { l.SHA256 = "y" })
	try("exploratory", func(l *Lock) { l.Exploratory = "" })
	try("receipt", func(l *Lock) { l.Receipts[0].SHA256 = "ab" })
	try("receipts", func(l *Lock) { l.Receipts = l.Receipts[:1] })
	try("dirty", func(l *Lock) { l.Receipts[1].Dirty = false })
	try("input", func(l *Lock) { l.Inputs[0].Bytes++ })
	try("inputs", func(l *Lock) { l.Inputs = nil })
	try("reason", func(l *Lock) { l.Deviations[0].Reason = "q" })
	try("deviations", func(l *Lock) { l.Deviations = nil })
	c := *l
	c.Digest = "anything"
	if c.digest() != l.digest() {
		t.Error("the digest is in the digest")
	}
}

func TestFreezeAndReadLock(t *testing.T) {
	for _, file := range []string{"testdata/full.yaml", "../cli/template.yaml", "../../examples/compressors/compressors.yaml"} {
		p := load(t, file)
		e := evidence()
		lock, err := Freeze(p, e)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if lock.Version != 1 || lock.Schema != LockVersion || lock.Tool != e.Tool || lock.Source != e.Source || len(lock.Deviations) != 0 {
			t.Errorf("%+v", lock)
		}
		if want := frozenAt.UTC().Truncate(time.Second); !lock.Frozen.Equal(want) || lock.Frozen.Location() != time.UTC {
			t.Errorf("frozen %v, want %v", lock.Frozen, want)
		}
		back, q, err := ReadLock(lock.Bytes())
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if !reflect.DeepEqual(p, q) {
			t.Errorf("%s: another protocol came back:\n%s\n%s", file, p.Canonical(), q.Canonical())
		}
		if !reflect.DeepEqual(lock, back) {
			t.Errorf("%s: another lock came back:\n%+v\n%+v", file, lock, back)
		}
	}
}

func smallLock(t *testing.T) []byte {
	t.Helper()
	lock, err := Freeze(parse(t, base), Evidence{Tool: "t", Now: frozenAt, Source: "exp.yaml"})
	if err != nil {
		t.Fatal(err)
	}
	return lock.Bytes()
}

// No byte of a lock can be another.
func TestAnyFlippedByteIsFound(t *testing.T) {
	lock := smallLock(t)
	flips := []byte{1, 0x20, 0x80}
	if !thorough {
		flips = flips[:1]
	}
	for _, flip := range flips {
		for i := range lock {
			b := bytes.Clone(lock)
			b[i] ^= flip
			l, p, err := ReadLock(b)
			if err == nil || l != nil || p != nil {
				t.Fatalf("byte %d: %q became %q and was read", i, lock[i], b[i])
			}
			if !errors.Is(err, ErrLock) && !strings.Contains(err.Error(), "use a newer assay") {
				t.Fatalf("byte %d: %v", i, err)
			}
		}
	}
}

func TestDamagedLocks(t *testing.T) {
	lock := smallLock(t)
	for i := range lock {
		if _, _, err := ReadLock(lock[:i]); !errors.Is(err, ErrLock) {
			t.Fatalf("cut at %d of %d: %v", i, len(lock), err)
		}
	}
	one := func(old, new string) []byte {
		if bytes.Count(lock, []byte(old)) != 1 {
			t.Fatalf("%q stands %d times", old, bytes.Count(lock, []byte(old)))
		}
		return bytes.Replace(lock, []byte(old), []byte(new), 1)
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, lock); err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string][]byte{
		"empty":             nil,
		"garbage":           []byte("not a lock\n"),
		"null":              []byte("null\n"),
		"a list":            []byte("[]\n"),
		"an empty object":   []byte("{}\n"),
		"a protocol":        []byte(base),
		"twice":             append(bytes.Clone(lock), lock...),
		"trailing space":    append(bytes.Clone(lock), ' '),
		"leading space":     append([]byte(" "), lock...),
		"byte order mark":   append([]byte("\ufeff"), lock...),
		"Windows line ends": bytes.ReplaceAll(lock, []byte("\n"), []byte("\r\n")),
		"on one line":       append(compact.Bytes(), '\n'),
		"a key more":        one(`"version": 1`, `"version": 1, "extra": 1`),
		"a key twice":       one(`"version": 1`, `"version": 1, "version": 1`),
		"a key's case":      one(`"tool"`, `"Tool"`),
		"escaped letter":    one(`"tool": "t"`, `"tool": "\u0074"`),
		"no protocol":       one(`"protocol": {`, `"protokoll": {`),
		"fewer rounds":      one(`"rounds": 20`, `"rounds": 19`),
	} {
		l, p, err := ReadLock(b)
		if !errors.Is(err, ErrLock) || l != nil || p != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A digest has no key. Whoever makes a new one must at least not crash what
// reads the file.
func TestForgedLocks(t *testing.T) {
	for name, protocol := range map[string]string{
		"null":              "null",
		"empty":             "{}",
		"no primary":        `{"assay":1,"arms":[{"name":"a"},{"name":"b"}]}`,
		"one arm":           `{"assay":1,"arms":[{"name":"a"}],"primary":{"metric":"wall"}}`,
		"unknown key":       `{"assay":1,"arms":[{"name":"a"},{"name":"b"}],"primary":{"metric":"wall"},"colour":"red"}`,
		"wrong type":        `{"assay":"1"}`,
		"not JSON at all":   `"{"`,
		"negative seed":     `{"design":{"seed":-1}}`,
		"timeout in words":  `{"arms":[{"timeout":"soon"}]}`,
		"too many cells":    `{"arms":[{"name":"a"},{"name":"b"}],"primary":{"metric":"wall"},"factors":[` + strings.TrimSuffix(strings.Repeat(`{"name":"f","levels":["1","2","3","4","5","6","7","8"]},`, 40), ",") + `]}`,
		"too many trials":   `{"arms":[{"name":"a"},{"name":"b"}],"primary":{"metric":"wall"},"design":{"rounds":1000000000}}`,
		"too many arms":     `{"arms":[` + strings.Repeat(`{"name":"a"},`, maxItems) + `{"name":"b"}],"primary":{"metric":"wall"}}`,
		"too many excluded": `{"arms":[{"name":"a"},{"name":"b"}],"primary":{"metric":"wall"},"exclude":[` + strings.Repeat(`{},`, maxItems) + `{}]}`,
		// Indented, this would have some gigabytes.
		"too deep": `{"arms":[` + strings.TrimSuffix(strings.Repeat(strings.Repeat("[", 9000)+strings.Repeat("]", 9000)+",", 20), ",") + `]}`,
	} {
		l := &Lock{Schema: 1, Version: 1, Frozen: frozenAt.UTC().Truncate(time.Second), Protocol: json.RawMessage(protocol)}
		l.seal()
		var b []byte
		if name == "too deep" {
			b, _ = json.Marshal(l)
		} else {
			b = l.Bytes()
		}
		if _, p, err := ReadLock(b); !errors.Is(err, ErrLock) || p != nil || strings.Contains(err.Error(), "byte for byte") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestNewerLockIsRefusedByNumber(t *testing.T) {
	for _, b := range []string{
		strings.Replace(string(smallLock(t)), `"assay_lock": 1`, `"assay_lock": 2`, 1),
		`{"assay_lock": 2, "receipts": {"now": "a mapping"}, "frozen": 17}`,
	} {
		_, _, err := ReadLock([]byte(b))
		if err == nil || errors.Is(err, ErrLock) || !strings.Contains(err.Error(), "format version 2; this assay reads up to 1") {
			t.Errorf("%v", err)
		}
	}
	for _, n := range []string{"0", "-1"} {
		b := strings.Replace(string(smallLock(t)), `"assay_lock": 1`, `"assay_lock": `+n, 1)
		if _, _, err := ReadLock([]byte(b)); !errors.Is(err, ErrLock) {
			t.Errorf("version %s: %v", n, err)
		}
	}
}

func TestAmend(t *testing.T) {
	first, err := Freeze(parse(t, base), evidence())
	if err != nil {
		t.Fatal(err)
	}
	before := first.Bytes()
	later := evidence()
	later.Now = frozenAt.Add(time.Hour)

	changed := parse(t, edited(t, "rounds: 20", "rounds: 30"))
	changed.Question = "Which one now?"
	for _, reason := range []string{"", " \t\n"} {
		if l, err := Amend(first, changed, later, reason); err == nil || l != nil {
			t.Errorf("amended for reason %q", reason)
		}
	}
	if l, err := Amend(first, parse(t, base+"# a comment changes nothing\n"), later, "none"); !errors.Is(err, ErrUnchanged) || l != nil {
		t.Errorf("unchanged: %v", err)
	}

	second, err := Amend(first, changed, later, "the first 20 rounds were too few")
	if err != nil {
		t.Fatal(err)
	}
	want := []Deviation{{Version: 2, Reason: "the first 20 rounds were too few", When: later.Now.UTC().Truncate(time.Second), Previous: first.Digest, Changed: []string{"question", "design"}}}
	if second.Version != 2 || !reflect.DeepEqual(second.Deviations, want) {
		t.Errorf("version %d, %+v", second.Version, second.Deviations)
	}
	if _, q, err := ReadLock(second.Bytes()); err != nil || !reflect.DeepEqual(q, changed) {
		t.Errorf("%v", err)
	}

	// Back again is a change too, and so is another program.
	later.Receipts[0].SHA256 = "cc"
	later.Inputs = nil
	third, err := Amend(second, parse(t, base), later, "back")
	if err != nil {
		t.Fatal(err)
	}
	if d := third.Deviations; third.Version != 3 || len(d) != 2 || !reflect.DeepEqual(d[0], want[0]) || d[1].Previous != second.Digest || !slices.Equal(d[1].Changed, []string{"question", "design", "receipts", "inputs"}) {
		t.Errorf("version %d, %+v", third.Version, d)
	}
	if len(second.Deviations) != 1 || !bytes.Equal(first.Bytes(), before) {
		t.Error("an earlier lock was changed")
	}
	if third.SHA256 != first.SHA256 || third.Digest == first.Digest {
		t.Error("the protocol is the first one, and the lock is not")
	}

	var infeasible *InfeasibleError
	if l, err := Amend(first, parse(t, edited(t, "rounds: 20", "rounds: 2")), later, "hurry"); !errors.As(err, &infeasible) || l != nil {
		t.Errorf("an infeasible amendment: %v", err)
	}
}

// Nothing given and an empty list are the same evidence, as they are in the
// file.
func TestEmptyEvidenceIsNoChange(t *testing.T) {
	e := evidence()
	e.Receipts, e.Inputs = nil, nil
	first, err := Freeze(parse(t, base), e)
	if err != nil {
		t.Fatal(err)
	}
	read, _, err := ReadLock(first.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	e.Receipts, e.Inputs = []Receipt{}, []File{}
	if _, err := Amend(read, parse(t, base), e, "none"); !errors.Is(err, ErrUnchanged) {
		t.Error(err)
	}
}
