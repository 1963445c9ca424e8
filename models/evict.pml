/* Eviction against concurrent writes, checkpoints and readers of any version.
 * docs/artrie.md, sections 2, 6 and 7.
 *
 * One slot of the tree: what a version's parent holds under one key. A write
 * replaces what is in it by an edited copy in a new version, or in place in
 * an owned store; a checkpoint gives a node an address, or fails and takes it back;
 * the evictor puts a stub where a node with an address is.
 *
 * invariants
 *   N2  code Clock.Sweep  test TestModel
 *       a version means for ever what it meant when it was published
 *   N3  code Edit.own  test TestModel
 *       a node with an address means the block at that address
 *   E1  code sweep.slot  test TestEvictionNeedsTheVeryNode
 *       an acknowledged write is not replaced by an older image
 *   K4  code Packer.Abort  test TestFaultAtEveryStep
 *       a stub names a block that is published and stays
 *
 * variants
 *   NO_APPLY   the evictor does not wait for a commit: right as well (E2), but
 *              what it frees could not be counted
 *   OWNED      one tree, changed in place under its lock
 */

/* switches of the unsafe twins:
 * BLIND          the victim's address is kept, and goes where the key is now
 * IN_PLACE       OWNED: a node with an address is changed in place
 * EVICT_PENDING  a node whose block is not published yet may go
 */

#define VERSIONS 3
#define OBJECTS 10
#define BLOCKS 6

bool N2 = true, N3 = true, E1 = true, K4 = true;
#define MUST(name, cond) name = (cond); assert(name)

mtype = { NODE, STUB };
mtype kind[OBJECTS];
byte val[OBJECTS];	/* of a node */
byte addr[OBJECTS];	/* of a stub; of a node that has one, else 0 */
bool pending[OBJECTS];
byte objects = 1;	/* 0 is no object */

byte block[BLOCKS];	/* the value in it */
bool published[BLOCKS];
byte end = 1;		/* where the next block goes; a failed checkpoint goes back */

byte slot[VERSIONS], meaning[VERSIONS];
byte cur;
bool apply, evict;
byte acked;

#define onDisk(o) (kind[o] == NODE && addr[o] != 0 && !pending[o])

inline lock(l) { atomic { !l -> l = true } }

inline make(o, k) { assert(objects < OBJECTS); o = objects; objects++; kind[o] = k }

proctype Writer() {
	byte p, n, w, x;
	do
	:: w == 2 -> break
	:: else ->
		w++;
		lock(apply);
		p = slot[cur];
		if
		:: kind[p] == STUB -> /* fault-in by the edit itself */
			x = block[addr[p]];
			d_step { make(n, NODE); val[n] = x; addr[n] = addr[p] }
			atomic { slot[cur] == p -> slot[cur] = n }
			p = n
		:: else
		fi;
#ifdef OWNED
		if
#ifdef IN_PLACE
		:: true -> d_step { val[p] = w; meaning[0] = w }
#else
		:: addr[p] == 0 -> d_step { val[p] = w; meaning[0] = w }
		:: else -> d_step { make(n, NODE); val[n] = w; slot[0] = n; meaning[0] = w }
#endif
		fi;
#else
		d_step { make(n, NODE); val[n] = w; slot[cur + 1] = n; meaning[cur + 1] = w; cur++ }
#endif
		d_step { apply = false; acked = w; p = 0; n = 0; x = 0 }
	od
}

/* In an overlay it excludes nobody. In an owned store it shuts writers and the
 * evictor out. */
proctype Checkpointer() {
	byte p, a, times;
	do
	:: times == 2 -> break
	:: else ->
		times++;
#ifdef OWNED
		lock(evict);
		lock(apply);
#endif
		p = slot[cur];
		if
		:: kind[p] == NODE && addr[p] == 0 ->
			/* the block is written before the node is marked */
			d_step { assert(end < BLOCKS); a = end; block[a] = val[p]; published[a] = false }
			d_step { addr[p] = a; pending[p] = true }
			if
			:: d_step { published[a] = true; end = a + 1; } pending[p] = false
			:: d_step { addr[p] = 0; pending[p] = false } /* failed: the next block overwrites it */
			fi
		:: else
		fi;
#ifdef OWNED
		d_step { apply = false; evict = false; p = 0; a = 0 }
#else
		d_step { p = 0; a = 0 }
#endif
	od
}

proctype Evictor() {
	byte p, n, a, times;
	do
	:: times == 2 -> break
	:: else ->
		times++;
		lock(evict);
#ifdef BLIND
		d_step { p = slot[cur]; if :: onDisk(p) -> a = addr[p] :: else -> a = 0 fi }
		lock(apply);
		if
		:: a != 0 -> d_step { make(n, STUB); addr[n] = a; slot[cur] = n; MUST(E1, block[a] == meaning[cur]) }
		:: else
		fi;
		apply = false;
#else
#ifndef NO_APPLY
		lock(apply);
#endif
		byte v = cur;
		p = slot[v];
		if
#ifdef EVICT_PENDING
		:: kind[p] == NODE && addr[p] != 0 ->
#else
		:: onDisk(p) ->
#endif
			d_step { MUST(N3, !onDisk(p) || val[p] == block[addr[p]]); make(n, STUB); addr[n] = addr[p] }
			if
			:: atomic { slot[v] == p -> slot[v] = n; MUST(K4, published[addr[n]]); MUST(E1, !onDisk(p) || block[addr[n]] == meaning[v]) }
			:: slot[v] != p
			fi
		:: else
		fi;
#ifndef NO_APPLY
		apply = false;
#endif
		v = 0;
#endif
		d_step { evict = false; p = 0; n = 0; a = 0 }
	od
}

/* Reads the version that was current when it began. */
proctype Reader() {
	byte v, p, low, x;
#ifdef OWNED
	lock(apply); /* reads under the read lock, so against a write as good as alone */
#endif
	d_step { low = acked; v = cur }
	p = slot[v];
	if
	:: kind[p] == STUB ->
		MUST(K4, published[addr[p]]);
		x = block[addr[p]]
	:: else -> x = val[p]
	fi;
	d_step {
		MUST(E1, x >= low);
		MUST(N2, x == meaning[v])
	}
#ifdef OWNED
	apply = false
#endif
}

init {
	atomic {
		make(slot[0], NODE);
		run Writer(); run Checkpointer(); run Evictor(); run Reader()
	}
}
