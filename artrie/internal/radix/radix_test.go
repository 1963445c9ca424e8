package radix

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// disk keeps blocks in memory and stands for the file and the store round it.
type disk struct {
	gen    uint64
	blocks map[uint64][]byte
	end    int64
	live   int64 // bytes of blocks that the tree reaches, as edits and packers count them
	kept   int64 // memory of what faults have brought
	owner  Ref
	fold   bool // what is read stays a block, if it can
}

func newDisk() *disk {
	return &disk{gen: 1, blocks: map[uint64][]byte{}, end: 64, owner: Ref(new(int))}
}

func (d *disk) write(gen uint64) func(payload []byte) (uint64, error) {
	return func(payload []byte) (uint64, error) {
		w := Word(gen, d.end, int(BlockSize(len(payload))))
		d.end += BlockSize(len(payload))
		d.live += BlockSize(len(payload))
		d.blocks[w] = bytes.Clone(payload)
		return w, nil
	}
}

func (d *disk) read(s Ref) (Ref, error) {
	w, owner, ok := Stub(s)
	if !ok {
		return nil, fmt.Errorf("read of a node in memory")
	}
	b, ok := d.blocks[Address(w)]
	if !ok {
		return nil, fmt.Errorf("no block at %#x", w)
	}
	if d.fold {
		if p, ok := NewBlock(b, w); ok {
			return p, nil
		}
	}
	p, err := Decode(b, genOf(w), owner)
	if err == nil {
		Stamp(p, w)
	}
	return p, err
}

func (d *disk) source() *Source {
	return &Source{Touch: true, Read: d.read, Fault: func(slot *Ref, s Ref, _ string) (Ref, error) {
		p, err := d.read(s)
		if err == nil && !atomic.CompareAndSwapPointer(slot, s, p) {
			return nil, fmt.Errorf("slot changed under one goroutine")
		}
		d.kept += Weigh(p) - Weigh(s)
		return p, err
	}}
}

// reached is how many bytes the blocks have that the one at address w reaches, its own
// included.
func (d *disk) reached(t interface{ Fatal(...any) }, w uint64) (n int64) {
	root := NewStub(w, d.owner)
	src := &Source{Read: func(s Ref) (Ref, error) {
		w, _, _ := Stub(s)
		n += BlockSize(len(d.blocks[Address(w)]))
		return d.read(s)
	}}
	if err := Scan(&root, "", src, func(_, _ []byte) bool { return true }); err != nil {
		t.Fatal(err)
	}
	return n
}

// keys draws from few letters, so that prefixes, forks and merges are common,
// and now and then makes a long or wide one.
func keys() *rapid.Generator[string] {
	letter := rapid.SampledFrom([]string{"a", "b", "c", "\x00", "\xff", "語", "é"})
	return rapid.OneOf(
		rapid.Map(rapid.SliceOfN(letter, 0, 6), func(s []string) string { return strings.Join(s, "") }),
		rapid.Map(rapid.SliceOfN(letter, 0, 40), func(s []string) string { return strings.Join(s, "") }),
		rapid.Map(rapid.Byte(), func(b byte) string { return "wide" + string([]byte{b}) }),
		rapid.Map(rapid.Byte(), func(b byte) string { return "wide" + string([]byte{b}) + "\x00below" }),
	)
}

func values() *rapid.Generator[[]byte] {
	return rapid.OneOf(rapid.Just([]byte(nil)), rapid.SliceOfN(rapid.Byte(), 1, 9), rapid.SliceOfN(rapid.Byte(), 150, 260))
}

func dump(t interface{ Fatal(...any) }, slot *Ref, prefix string, src *Source) map[string][]byte {
	m := map[string][]byte{}
	last, first := "", true
	if err := Scan(slot, prefix, src, func(k, v []byte) bool {
		if !first && string(k) <= last {
			t.Fatal(fmt.Sprintf("%q after %q", k, last))
		}
		first, last = false, string(k)
		m[string(k)] = bytes.Clone(v)
		return true
	}); err != nil {
		t.Fatal(err)
	}
	return m
}

func equal(a, b map[string][]byte) bool { return maps.EqualFunc(a, b, bytes.Equal) }

// TestModel compares random edits, packs, evictions and snapshots with a map.
func TestModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := newDisk()
		d.fold = rapid.Bool().Draw(t, "blocks")
		whole := rapid.SampledFrom([]int{0, 768}).Draw(t, "whole")
		src := d.source()
		model := map[string][]byte{}
		var root Ref
		type snap struct {
			root Ref
			want map[string][]byte
		}
		var snaps []*snap
		edit := &Edit{ID: 1, Src: src}
		inPlace := rapid.Bool().Draw(t, "in place")
		var clock Clock
		bytesNow := int64(0)
		next := func() {
			bytesNow += edit.Bytes
			d.live -= edit.Dead
			edit = &Edit{ID: edit.ID + 1, Src: src}
		}
		pack := func(all bool) {
			next()
			p := &Packer{Gen: d.gen, All: all, Whole: whole, Owner: d.owner, Src: src}
			if all {
				d.gen++
				p.Gen = d.gen
				d.live = 0
			}
			before := d.live
			p.Write = d.write(p.Gen)
			w, err := p.Pack(&root)
			if err != nil {
				t.Fatal(err)
			}
			if rapid.Bool().Draw(t, "commit") || all {
				p.Commit()
			} else {
				p.Abort()
				d.live = before
				return
			}
			if root == nil || stateOf(root) == nil {
				d.live = before // nothing remembers the block of the empty tree or of one leaf
			} else if got := d.reached(t, w); got != d.live {
				t.Fatalf("counts %d live bytes, the tree reaches %d", d.live, got)
			}
			again := NewStub(w, d.owner)
			if got := dump(t, &again, "", src); !equal(got, model) {
				t.Fatalf("packed %d keys, want %d", len(got), len(model))
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				k, v, rep := keys().Draw(t, "k"), values().Draw(t, "v"), rapid.Bool().Draw(t, "replace")
				old, had := model[k]
				added, err := edit.Put(&root, k, v, rep)
				if err != nil || added == had {
					t.Fatalf("put %q: added %v, had %v, %v", k, added, had, err)
				}
				if !had || rep {
					old = v
				}
				model[k] = old
			},
			"delete": func(t *rapid.T) {
				k := keys().Draw(t, "k")
				if len(model) > 0 && rapid.Bool().Draw(t, "known") {
					k = rapid.SampledFrom(slices.Sorted(maps.Keys(model))).Draw(t, "of")
				}
				_, had := model[k]
				removed, err := edit.Delete(&root, k)
				if err != nil || removed != had {
					t.Fatalf("delete %q: %v, had %v, %v", k, removed, had, err)
				}
				delete(model, k)
			},
			"get": func(t *rapid.T) {
				k := keys().Draw(t, "k")
				want, had := model[k]
				v, ok, err := Get(&root, k, src)
				if err != nil || ok != had || !bytes.Equal(v, want) {
					t.Fatalf("get %q: %q %v %v, want %q %v", k, v, ok, err, want, had)
				}
			},
			"commit": func(t *rapid.T) {
				if !inPlace {
					next()
				}
			},
			"snapshot": func(t *rapid.T) {
				next()
				snaps = append(snaps, &snap{root, maps.Clone(model)})
				if len(snaps) > 3 {
					snaps = snaps[1:]
				}
			},
			"pack":    func(t *rapid.T) { pack(false) },
			"compact": func(t *rapid.T) { pack(true) },
			"evict": func(t *rapid.T) {
				next()
				freed, _, _ := clock.Sweep(&root, d.gen, d.owner, rapid.Int64Range(1, 2000).Draw(t, "want"), rapid.Bool().Draw(t, "force"))
				bytesNow -= freed
			},
			"prefix": func(t *rapid.T) {
				p := keys().Draw(t, "p")
				want := map[string][]byte{}
				for k, v := range model {
					if strings.HasPrefix(k, p) {
						want[k] = v
					}
				}
				if got := dump(t, &root, p, src); !equal(got, want) {
					t.Fatalf("prefix %q: %v, want %v", p, got, want)
				}
			},
			"": func(t *rapid.T) {
				n, err := Check(&root, src)
				if err != nil || n != int64(len(model)) {
					t.Fatalf("check: %d keys, want %d, %v", n, len(model), err)
				}
				if got, want := bytesNow+edit.Bytes+d.kept, Weigh(root); got != want {
					t.Fatalf("counts %d bytes in memory, the tree weighs %d", got, want)
				}
				for _, s := range snaps {
					if !equal(dump(t, &s.root, "", src), s.want) {
						t.Fatal("a snapshot changed")
					}
				}
			},
		})
		if !equal(dump(t, &root, "", src), model) {
			t.Fatal("tree and model differ")
		}
	})
}

// TestBytesAreCounted keeps the running count equal to the weight of the tree.
func TestBytesAreCounted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var root Ref
		var sum int64
		for i := range rapid.IntRange(1, 60).Draw(t, "n") {
			e := &Edit{ID: uint64(i/5 + 1), Src: &Source{}}
			k := keys().Draw(t, "k")
			var err error
			if rapid.IntRange(0, 2).Draw(t, "op") == 0 {
				_, err = e.Delete(&root, k)
			} else {
				_, err = e.Put(&root, k, values().Draw(t, "v"), true)
			}
			if err != nil {
				t.Fatal(err)
			}
			if sum += e.Bytes; sum != Weigh(root) {
				t.Fatalf("counted %d bytes, tree weighs %d", sum, Weigh(root))
			}
		}
	})
}

func levenshtein(a, b []rune) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i, x := range a {
		diag := row[0]
		row[0] = i + 1
		for j, y := range b {
			d := diag
			if x != y {
				d = 1 + min(diag, row[j], row[j+1])
			}
			diag, row[j+1] = row[j+1], d
		}
	}
	return row[len(b)]
}

func TestFuzzyAgainstEveryKey(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var root Ref
		e := &Edit{ID: 1, Src: &Source{}}
		set := map[string]bool{}
		for _, k := range rapid.SliceOfN(keys(), 0, 40).Draw(t, "keys") {
			set[k] = true
			if _, err := e.Put(&root, k, nil, true); err != nil {
				t.Fatal(err)
			}
		}
		pattern, limit := keys().Draw(t, "pattern"), rapid.IntRange(0, 3).Draw(t, "limit")
		var want []Match
		for k := range set {
			if d := levenshtein([]rune(k), []rune(pattern)); d <= limit {
				want = append(want, Match{Key: k, Distance: d})
			}
		}
		slices.SortFunc(want, func(a, b Match) int {
			return cmp.Or(cmp.Compare(a.Distance, b.Distance), strings.Compare(a.Key, b.Key))
		})
		got, err := Fuzzy(&root, pattern, limit, e.Src)
		if err != nil || !slices.EqualFunc(got, want, func(a, b Match) bool { return a.Key == b.Key && a.Distance == b.Distance }) {
			t.Fatalf("%q within %d: %v, want %v (%v)", pattern, limit, got, want, err)
		}
	})
}

func TestByteOrderIsCodePointOrder(t *testing.T) {
	var root Ref
	e := &Edit{ID: 1, Src: &Source{}}
	for _, r := range []rune{'a', 'é', '語', '𝄞', 0x7ff, 0x800, 0xffff, 0x10000} {
		if _, err := e.Put(&root, string(r), nil, true); err != nil {
			t.Fatal(err)
		}
	}
	last := rune(-1)
	if err := Walk(&root, "", e.Src, func(k, _ []byte) bool {
		r, _ := utf8.DecodeRune(k)
		if r <= last {
			t.Errorf("%U after %U", r, last)
		}
		last = r
		return true
	}); err != nil {
		t.Fatal(err)
	}
}

func TestLayouts(t *testing.T) {
	for kind := uint8(kind4); kind <= kind256; kind++ {
		h := newInner(kind, 7)
		for c := range capacity(kind) {
			h.append(byte(c), newLeaf(fmt.Sprint(c), nil, 0))
		}
		for c := range 256 {
			s := find(h, byte(c))
			if (s != nil) != (c < capacity(kind)) || s != nil && leafRest(*s) != fmt.Sprint(c) {
				t.Fatalf("kind %d, byte %d: wrong child", kind, c)
			}
		}
		if *stateOf(Ref(h)) != 7 {
			t.Fatalf("kind %d: state not where it should be", kind)
		}
	}
	w := Word(3, 1<<30, 4096)
	if n, exact := Length(w); Offset(w) != 1<<30 || n != 4096 || !exact || !SameGeneration(w, 3) || !SameGeneration(w, 3+8192) {
		t.Fatalf("address %#x does not come apart", w)
	}
}

// TestEvictionNeedsTheVeryNode is the race that lost an acknowledged overwrite in
// another implementation: the victim is chosen, the key is overwritten, the victim is evicted.
func TestEvictionNeedsTheVeryNode(t *testing.T) {
	d := newDisk()
	src := d.source()
	var root Ref
	e := &Edit{ID: 1, Src: src}
	for i := range 400 {
		if _, err := e.Put(&root, fmt.Sprintf("k%03d", i), []byte("old"), true); err != nil {
			t.Fatal(err)
		}
	}
	p := &Packer{Gen: 1, Src: src, Write: d.write(1)}
	if _, err := p.Pack(&root); err != nil {
		t.Fatal(err)
	}
	p.Commit()
	chosen := root
	e = &Edit{ID: 2, Src: src}
	if _, err := e.Put(&root, "k123", []byte("new"), true); err != nil {
		t.Fatal(err)
	}
	var c Clock
	c.Sweep(&chosen, 1, d.owner, 1<<40, true)
	c.Sweep(&root, 1, d.owner, 1<<40, true)
	if v, _, err := Get(&root, "k123", src); string(v) != "new" || err != nil {
		t.Fatalf("read %q, %v: the overwrite was evicted to its old image", v, err)
	}
	if v, _, err := Get(&chosen, "k123", src); string(v) != "old" || err != nil {
		t.Fatalf("read %q, %v in the version before", v, err)
	}
}

func FuzzDecode(f *testing.F) {
	var root Ref
	e := &Edit{ID: 1, Src: &Source{}}
	for i := range 70 {
		if _, err := e.Put(&root, fmt.Sprintf("k%d/語", i*i), bytes.Repeat([]byte{1}, i*4), true); err != nil {
			f.Fatal(err)
		}
	}
	p := &Packer{Gen: 1, Src: e.Src, Write: func(b []byte) (uint64, error) {
		f.Add(bytes.Clone(b))
		return Word(1, 64, len(b)), nil
	}}
	if _, err := p.Pack(&root); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		n, err := Decode(b, 1, nil)
		block, ok := NewBlock(b, Word(1, 64, 64))
		if ok && err != nil {
			t.Fatalf("kept as a block, and cannot be decoded: %v", err)
		}
		if err != nil || n == nil {
			return
		}
		if !ok && isInner(n) && !hasRefs(n) {
			t.Fatal("well encoded, without references, and no block")
		}
		src := &Source{Read: func(Ref) (Ref, error) { return newLeaf("x", nil, 0), nil }}
		if _, err := Check(&n, src); err != nil {
			return // well encoded, not canonical: the checker says so
		}
		// What the checker accepts can be read, edited and packed again.
		m := dump(t, &n, "", src)
		src.Fault = func(slot *Ref, stub Ref, _ string) (Ref, error) { return src.Read(stub) }
		e := &Edit{ID: 1, Src: src}
		left := len(m)
		for _, k := range slices.Sorted(maps.Keys(m)) {
			if v, ok, err := Get(&n, k, src); !ok || err != nil || !bytes.Equal(v, m[k]) {
				t.Fatalf("get %q: %q %v %v, want %q", k, v, ok, err, m[k])
			}
			if block != nil {
				if _, _, err := e.put(&block, k+"/more", []byte("x"), true); err != nil {
					t.Fatal(err)
				}
				if v, ok, err := Get(&block, k, src); !ok || err != nil || !bytes.Equal(v, m[k]) {
					t.Fatalf("get %q of the block: %q %v %v, want %q", k, v, ok, err, m[k])
				}
			}
			if _, err := e.Put(&n, k+"/more", []byte("x"), true); err != nil {
				t.Fatal(err)
			}
			if removed, err := e.Delete(&n, k); !removed || err != nil {
				t.Fatalf("delete %q: %v %v", k, removed, err)
			}
			if left--; left < len(m)-20 {
				break
			}
		}
		if _, err := Check(&n, src); err != nil {
			t.Fatalf("after edits: %v", err)
		}
		var last []byte
		p := &Packer{Gen: 2, All: true, Src: src, Write: func(b []byte) (uint64, error) {
			last = bytes.Clone(b)
			return Word(2, 64, len(b)), nil
		}}
		if _, err := p.Pack(&n); err != nil {
			t.Fatal(err)
		}
		if _, err := Decode(last, 2, nil); err != nil {
			t.Fatalf("packed again: %v", err)
		}
	})
}

// TestABlockAnswersAsItsNodesDo looks keys up in encoded subtrees.
func TestABlockAnswersAsItsNodesDo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var root Ref
		e := &Edit{ID: 1, Src: &Source{}}
		known := rapid.SliceOfN(keys(), 2, 40).Draw(t, "keys")
		for _, k := range known {
			if _, err := e.Put(&root, k, values().Draw(t, "v"), true); err != nil {
				t.Fatal(err)
			}
		}
		blocks := 0
		p := &Packer{Gen: 1, Whole: 1 << 20, Src: e.Src, Write: func(b []byte) (uint64, error) {
			w := Word(1, 64, int(BlockSize(len(b))))
			n, err := Decode(b, 1, nil)
			if err != nil {
				t.Fatal(err)
			}
			block, ok := NewBlock(b, w)
			if refs := hasRefs(n); ok != (isInner(n) && !refs) {
				t.Fatalf("a block of %d bytes, references %v, is kept as it is: %v", len(b), refs, ok)
			}
			if !ok {
				return w, nil
			}
			blocks++
			for range 20 {
				k := keys().Draw(t, "k")
				if rapid.Bool().Draw(t, "known") {
					k = rapid.SampledFrom(known).Draw(t, "of")
				}
				k = k[rapid.IntRange(0, len(k)).Draw(t, "from"):]
				v, found, err := Get(&block, k, e.Src)
				want, there, _ := Get(&n, k, e.Src)
				if found != there || !bytes.Equal(v, want) || err != nil {
					t.Fatalf("%q: %q %v in the block, %q %v in its nodes", k, v, found, want, there)
				}
			}
			return w, nil
		}}
		if _, err := p.Pack(&root); err != nil {
			t.Fatal(err)
		}
		if blocks == 0 && !hasBig(root) && isInner(root) {
			t.Fatal("nothing was looked up")
		}
	})
}

// hasRefs says whether a decoded subtree has stubs.
func hasRefs(p Ref) (yes bool) {
	eachBelow(p, func(n Ref) { yes = yes || kindOf(n) == kindStub })
	return yes
}

// hasBig says whether a tree has leaves that need blocks of their own.
func hasBig(p Ref) (yes bool) {
	eachBelow(p, func(n Ref) { yes = yes || kindOf(n) == kindBig })
	return yes
}

func eachBelow(p Ref, f func(Ref)) {
	if p == nil {
		return
	}
	f(p)
	if isInner(p) {
		h := (*head)(p)
		eachBelow(h.value(), f)
		h.each(func(_ byte, s *Ref) bool { eachBelow(*s, f); return true })
	}
}

// TestAChainSplitTwiceIsWhole: a link that is split below its parent link may leave
// a rest that the parent takes in.
func TestAChainSplitTwiceIsWhole(t *testing.T) {
	var root Ref
	e := &Edit{ID: 1, Src: &Source{}}
	for i, k := range []string{"x", "\x00", "ababababababab-x", "ababababababab-y", "abx", "ababababab-x"} {
		if _, err := e.Put(&root, k, nil, true); err != nil {
			t.Fatal(err)
		}
		if n, err := Check(&root, e.Src); err != nil || n != int64(i+1) {
			t.Fatalf("after %q: %d keys, %v", k, n, err)
		}
		if e.Bytes != Weigh(root) {
			t.Fatalf("after %q: counted %d bytes, the tree weighs %d", k, e.Bytes, Weigh(root))
		}
	}
}

// TestLocateFindsTheVeryStub: a fetched node takes the place of its own stub; where
// the key's subtree has been written since, there is no place for it.
func TestLocateFindsTheVeryStub(t *testing.T) {
	d := newDisk()
	src := d.source()
	var root Ref
	e := &Edit{ID: 1, Src: src}
	for i := range 400 {
		if _, err := e.Put(&root, fmt.Sprintf("k%03d", i), []byte("old"), true); err != nil {
			t.Fatal(err)
		}
	}
	p := &Packer{Gen: 1, Src: src, Write: d.write(1)}
	if _, err := p.Pack(&root); err != nil {
		t.Fatal(err)
	}
	p.Commit()
	var c Clock
	c.Sweep(&root, 1, d.owner, 1<<40, true)
	old := root
	var met Ref
	watch := &Source{Read: d.read, Fault: func(_ *Ref, stub Ref, _ string) (Ref, error) {
		if met == nil {
			met = stub
		}
		return d.read(stub)
	}}
	if _, _, err := Get(&old, "k123", watch); err != nil || met == nil {
		t.Fatalf("no stub on the way (%v)", err)
	}
	first := met
	for met != nil { // down to the last stub, each kept where it is
		first, met = met, nil
		slot := Locate(&old, "k123", first)
		if slot == nil {
			t.Fatal("a stub that is there is not found")
		}
		n, err := d.read(first)
		if err != nil {
			t.Fatal(err)
		}
		*slot = n
		if _, _, err := Get(&old, "k123", watch); err != nil {
			t.Fatal(err)
		}
	}
	next := old
	e = &Edit{ID: 2, Src: src}
	if _, err := e.Put(&next, "k123", []byte("new"), true); err != nil {
		t.Fatal(err)
	}
	if Locate(&next, "k123", first) != nil {
		t.Fatal("a place was found for the node that an acknowledged write has replaced")
	}
}

// TestSweepIsShort evicts from a large tree of which nothing is on disk: each sweep ends
// soon, whatever there is to walk over, and together they come round.
func TestSweepIsShort(t *testing.T) {
	var root Ref
	e := Edit{ID: 1, Src: &Source{}}
	const keys = 30_000
	for i := range keys {
		if _, err := e.Put(&root, fmt.Sprintf("%x", uint32(i)*2654435761), bytes.Repeat([]byte("v"), maxLeaf), true); err != nil {
			t.Fatal(err)
		}
	}
	var c Clock
	sweeps := 1
	for {
		freed, n, end := c.Sweep(&root, 1, nil, 1<<40, false)
		if freed != 0 || n != 0 {
			t.Fatalf("evicted %d subtrees that are nowhere else", n)
		}
		if end {
			break
		}
		sweeps++
	}
	if least := keys / maxVisits; sweeps < least || sweeps > 3*least {
		t.Errorf("%d sweeps over %d keys", sweeps, keys)
	}
}
