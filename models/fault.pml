/* Fault-in against eviction, writes, and other faults. docs/artrie.md, sections 2 and 7.
 *
 * A version's root R holds one subtree X, and X holds Y, the leaf of the key
 * that is read. X and Y have a block each and are cold at the start. A write
 * copies the path to what it changes: R only, R and X, or all three. What it
 * does not change it shares, so an old version and a new one may hold the same stub in
 * two slots. In an owned store a write with a snapshot open does the same;
 * without one it is alone under the lock and has no part in any race.
 *
 * Resident is the count that a memory budget is held by: nodes that the current
 * version reaches. A count that drifts ends in a store that evicts for ever.
 *
 * invariants
 *   N2  code Trie.faultCounted  test TestHistoriesAreLinearizable
 *       a version means for ever what it meant when it was published
 *   E1  code radix.Locate  test TestLocateFindsTheVeryStub
 *       a fetched node takes the place of its own stub and of nothing else
 *   E2  code Trie.flight  test TestHistoriesAreLinearizable
 *       every read and write ends: nobody waits in a circle (no invalid end state)
 *   B1  code Trie.sweep  test TestResidentIsExact
 *       with a budget, resident is what the current version reaches
 *
 * variants
 *   FREE    no budget: a reader keeps the node in its own slot, nothing is counted
 *   TWO     a second reader of the same key
 *   CAS     the other committer: two writers at once
 *   OWNED   readers under the read lock, a snapshot without
 */

/* switches of the unsafe twins:
 * OVERWRITE      a fetched node goes where its key is now, whatever is there
 * OWN_SLOT       a fetched node stays in the reader's version, and is counted
 * STORE          FREE: the slot is stored without compare
 * CAS_SHARED     CAS: the writers share the lock that the count needs
 * EVICT_SHARED   OWNED: the evictor shares the lock with readers
 * SNAPSHOT_KEEPS OWNED: a snapshot keeps what it fetches, and counts it
 */

#define OBJECTS 20
#if defined(CAS) || defined(TWO)
#define SWEEPS 1
#else
#define SWEEPS 2
#endif

bool N2 = true, E1 = true, B1 = true;
#define MUST(name, cond) name = (cond); assert(name)

mtype = { ROOT, NODE, STUB };
mtype kind[OBJECTS];
byte ch[OBJECTS];	/* what the slot below holds */
byte val[OBJECTS];	/* of Y */
byte addr[OBJECTS];	/* of a stub; of a node with an address: X is at 1, Y at 2 */
byte meaning[OBJECTS];	/* of a root: the value of the key in its version */
byte objects = 1;
byte cur;
short resident;

bool evict, flight[3];
byte readers;		/* of the lock that is apply in an overlay and tree in an owned store */
bool writer;

inline lock(l) { atomic { !l -> l = true } }
inline rlock() { atomic { !writer -> readers++ } }
inline runlock() { readers-- }
inline wlock() { atomic { !writer && readers == 0 -> writer = true } }
inline wunlock() { writer = false }

inline make(o, k) { assert(objects < OBJECTS); o = objects; objects++; kind[o] = k }

/* Decode of the block at a: X comes with a stub for Y. */
inline decode(n, a) {
	atomic {
		make(n, NODE);
		addr[n] = a;
		if :: a == 1 -> ch[n] = objects; kind[objects] = STUB; addr[objects] = 2; objects++ :: else fi
	}
}

/* faultAlone: what slot o holds, fetched and kept; counted. */
inline keep(o, p, n) {
	do
	:: kind[p] != STUB -> break
	:: else ->
		decode(n, addr[p]);
#ifdef STORE
		d_step { MUST(E1, ch[o] == p); ch[o] = n; p = n; n = 0; resident++ }
#else
		if
		:: d_step { ch[o] == p -> ch[o] = n; p = n; n = 0; resident++ }
		:: ch[o] != p -> d_step { p = ch[o]; n = 0 }
		fi
#endif
	od;
	skip
}

/* faultCounted: the node goes where the current version has the same stub. */
inline keepCounted(o, p, n, deep) {
	lock(flight[addr[p]]);
	a = addr[p];
	p = ch[o];
	if
	:: kind[p] != STUB -> skip
	:: else ->
		decode(n, addr[p]);
		wlock();
		d_step {
#ifdef OVERWRITE
			t = cur;
			if :: deep && kind[ch[t]] == NODE -> t = ch[t] :: else fi;
			MUST(E1, ch[t] == p);
			ch[t] = n; resident++;
#endif
#ifdef OWN_SLOT
			ch[o] = n; resident++;
#endif
#ifndef OVERWRITE
#ifndef OWN_SLOT
			t = cur;
			if :: ch[t] != p && kind[ch[t]] == NODE -> t = ch[t] :: else fi;
			if :: ch[t] == p -> ch[t] = n; resident++ :: else fi;
#endif
#endif
			t = 0
		}
		wunlock();
		d_step { p = n; n = 0 }
	fi;
	d_step { flight[a] = false; a = 0 }
}

inline fetch(o, p, n, deep) {
	p = ch[o];
	if
	:: kind[p] == STUB ->
#ifdef FREE
		lock(flight[addr[p]]);
		a = addr[p];
		p = ch[o];
		keep(o, p, n);
		d_step { flight[a] = false; a = 0 }
#else
#ifdef OWNED
		if
#ifndef SNAPSHOT_KEEPS
		:: snapshot -> decode(n, addr[p]); d_step { p = n; n = 0 } /* read and not kept */
#endif
		:: else ->
			lock(flight[addr[p]]);
			a = addr[p];
			p = ch[o];
			keep(o, p, n);
			d_step { flight[a] = false; a = 0 }
		fi
#else
		keepCounted(o, p, n, deep)
#endif
#endif
	:: else
	fi
}

proctype Reader(bool snapshot) {
	byte v, o, p, n, a, t;
#ifdef OWNED
	if
	:: snapshot -> v = 1 /* the first version */
	:: else -> rlock(); v = cur
	fi;
#else
	v = cur;
#endif
	fetch(v, p, n, false);
	d_step { o = p; p = 0 }
	fetch(o, p, n, true);
	MUST(N2, val[p] == meaning[v]);
#ifdef OWNED
	if
	:: snapshot
	:: else -> runlock()
	fi
#endif
}

proctype Writer(byte w) {
	byte v, x, y, n, r, x2, y2, how;
	if /* how deep the change is */
	:: how = 1
	:: how = 2
	:: how = 3
	fi;
#ifdef CAS_SHARED
	rlock();
#else
	wlock();
#endif
	do
	:: v = cur;
		if
		:: how > 1 -> x = ch[v]; keep(v, x, n)
		:: else
		fi;
		if
		:: how > 2 -> y = ch[x]; keep(x, y, n)
		:: else
		fi;
		d_step {
			make(r, ROOT); meaning[r] = meaning[v]; ch[r] = ch[v];
			if :: how > 1 -> make(x2, NODE); ch[x2] = ch[x]; ch[r] = x2 :: else fi;
			if :: how > 2 -> make(y2, NODE); val[y2] = w; ch[x2] = y2; meaning[r] = w :: else fi
		}
		if
		:: d_step { cur == v -> cur = r; x = 0; y = 0; v = 0; r = 0; x2 = 0; y2 = 0 } break
		:: cur != v -> skip /* lost: again on the new root */
		fi
	od;
	skip;
#ifdef CAS_SHARED
	runlock()
#else
	wunlock()
#endif
}

/* The evictor counts what it freed after it has cut it off. */
proctype Evictor() {
	byte o, p, n, freed, times;
	do
	:: times == SWEEPS -> break
	:: else ->
		times++;
#ifdef EVICT_SHARED
		rlock();
#else
		wlock();
#endif
		o = cur;
		p = ch[o];
		if /* X, or else Y below it */
		:: kind[p] == NODE && addr[p] != 0
		:: kind[p] == NODE -> d_step { o = p; p = ch[o] }
		:: kind[p] == STUB
		fi;
		if
		:: kind[p] == NODE && addr[p] != 0 ->
			d_step { make(n, STUB); addr[n] = addr[p] }
			if
			:: d_step { ch[o] == p -> ch[o] = n; freed = 1 }
				if
				:: ch[p] != 0 && kind[ch[p]] == NODE -> freed = 2
				:: else
				fi;
				resident = resident - freed
			:: ch[o] != p
			fi
		:: else
		fi;
#ifdef EVICT_SHARED
		runlock();
#else
		wunlock();
#endif
		d_step { o = 0; p = 0; n = 0; freed = 0 }
	od
}

init {
	byte s, n;
	atomic {
		make(cur, ROOT); make(s, STUB); addr[s] = 1; ch[cur] = s; s = 0;
		run Reader(false);
#ifdef OWNED
		run Reader(true);
#endif
#ifdef TWO
		run Reader(false);
#endif
		run Writer(1);
#ifdef CAS
		run Writer(2);
#endif
		run Evictor()
	}
	_nr_pr == 1;
	d_step {
		s = ch[cur]; n = 0;
		if :: kind[s] == NODE -> n++; s = ch[s]; if :: kind[s] == NODE -> n++ :: else fi :: else fi
	}
#ifndef FREE
	MUST(B1, resident == n)
#endif
}
