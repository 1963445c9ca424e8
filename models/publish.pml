/* Durable publish: append, sync, apply, visible, acknowledged; a checkpoint
 * bounded by the watermark; the log reclaimed behind it; a crash at any point,
 * recovery, more of the same, and a second crash. docs/artrie.md, sections 3, 4, 6, 8.
 *
 * A crash keeps what was synced and any subset of the rest, records and folder
 * entries alike. The swap of a lost root is tried again on the new root, so the
 * loop of the CAS committer is one step here. A recovery is one step: what a crash in
 * the middle of it may keep is what a crash right after it may keep.
 *
 * invariants
 *   C1  code Trie.commitBatch  test TestCrashAtEveryStep
 *       what was visible, and what was acknowledged, is there after a crash
 *   C2  code Trie.applyEdit  test TestCrashAtEveryStep
 *       what recovery shows is the log up to one number, in order
 *   C4  code Trie.commitCAS  test TestHistoriesAreLinearizable
 *       per key the visible order is the order of the log
 *   C5  code watermark.done  test TestConcurrentCrash
 *       an image has everything up to the number that it says it covers
 *   C6  code Trie.poison  test TestFaultAtEveryStep
 *       after a failed sync nothing is acknowledged
 *   K1  code Trie.writeImage  test TestEverySyncIsNeeded
 *       the manifest that recovery takes names durable blocks
 *   K2  code Slots.Publish  test TestEverySyncIsNeeded
 *       whatever becomes of the manifest that is being written, one is there, and the
 *       log from its number on
 *   K6  code newest  test TestNamesOfALostCheckpointAreNotUsedAgain
 *       the blocks are those that this manifest was written for
 *   K7  code Trie.publish  test TestEverySyncIsNeeded
 *       the log reaches at least as far as the image
 *
 * variants
 *   CAS       the other committer: own record, own swap, a watermark
 *   RELAXED   Periodic and None: acknowledged when written, the checkpoint syncs
 *   DAMAGE    the node file of the newest checkpoint is found damaged, once
 */

/* switches of the unsafe twins; the list in list.go says what each must break:
 * FRONTIER        the checkpoint covers all that was appended
 * VISIBLE_FIRST   applied before it is synced
 * RETRY_SYNC      a failed sync is called again, and says yes
 * ROOT_FIRST      CAS: the root is read before the watermark
 * NO_STRIPE       CAS: two writes of one key may swap in any order
 * NO_NODE_SYNC    the node file is not synced before the manifest
 * NO_SLOT_SYNC    the manifest is not synced
 * NO_FOLDER_SYNC  the name of a new node file is not synced
 * ONE_SLOT        the manifest is written over the newest one
 * RECLAIM_EARLY   the log is reclaimed before the manifest is synced
 * RECLAIM_LAST    DAMAGE: the log is reclaimed up to the newest checkpoint
 * REUSE_NAMES     DAMAGE: the names of a checkpoint that was passed over are used again
 * NO_OPEN_SYNC    opening does not sync the log that a killed process wrote
 * NO_LOG_SYNC     RELAXED: the checkpoint does not sync the log
 */

#define LSNS 6
#define NUMS 5	/* checkpoints, generations, stamps: 1 to 4 */

bool C1 = true, C2 = true, C4 = true, C5 = true, C6 = true, K1 = true, K2 = true, K6 = true, K7 = true;
#define MUST(name, cond) name = (cond); assert(name)

/* The process, which a crash takes. */
bool down;		/* the power is off */
bool turn, stripe[2];	/* locks */
bool poisoned;
byte written, durable;	/* highest number written; believed to be synced */
bool swapped[LSNS];	/* CAS: of numbers above low */
byte low;		/* CAS: the watermark */
byte tree[2];		/* per key, the number of its last visible write */
byte vlsn;		/* batch: the number of the visible version */
byte last, prev;	/* numbers of the kept checkpoints, 0 for none */
byte freshNum, freshGen;	/* the highest that any name in the folder has had */

/* The disk. A name is there or not, and the change synced or not. */
#define NONE 0
#define SEEN 1	/* made, not synced */
#define FIRM 2
#define GOING 3	/* removed, not synced */
byte keyOf[LSNS];	/* of each record */
byte firm;		/* records up to here survive any crash */
bool sticky;		/* a sync has failed: the kernel has forgotten what was dirty */
bool failedOnce;
byte reclaimed;		/* records up to here are gone */
byte mGen[NUMS], mCovered[NUMS], mStamp[NUMS], mVal0[NUMS], mVal1[NUMS];
#define SLOTS 3
byte sNum[SLOTS];	/* per slot, the checkpoint whose manifest is read there; 0 for none */
byte sWas[SLOTS];	/* and what it is if the last writing is lost */
bool soft[SLOTS];	/* the last writing is not synced */
#ifdef DAMAGE
bool damaged;
#endif
byte gName[NUMS];
byte gHas[NUMS];	/* stamps whose blocks the file has, as bits */
byte gSynced[NUMS];	/* and those that are synced */
byte stamp;

/* What clients know; survives everything. */
bool acked[LSNS];

byte k, g, i, e, c;	/* of the atomic steps */

inline lock(l) { atomic { !l -> l = true } }

inline syncLog(ok) {
	/* Not one step: a crash or an append may come between. */
	to = written;
	atomic {
		if
		:: durable = (durable > to -> durable : to);
		   firm = (sticky || firm > to -> firm : to); ok = true
		:: !failedOnce ->
			failedOnce = true; sticky = true;
#ifdef RETRY_SYNC
			durable = to; ok = true
#else
			poisoned = true; ok = false
#endif
		fi;
		to = 0
	}
}

inline ack(n) {
	atomic {
		MUST(C6, !sticky || n <= firm);
		acked[n] = true
	}
}

/* One leader's turn: n writes, to key a and then key 1. */
proctype Leader(byte a, n) {
	byte to, from; bool ok;
	{
		lock(turn);
		if
		:: poisoned -> skip
		:: else ->
			atomic {
				from = written + 1;
				keyOf[from] = a; written++;
				if :: n == 2 -> keyOf[from + 1] = 1; written++ :: else fi
			}
#ifndef VISIBLE_FIRST
#ifdef RELAXED
			ok = true;
#else
			syncLog(ok);
#endif
#endif
#ifdef VISIBLE_FIRST
			ok = true;
#endif
			if
			:: !ok
			:: ok ->
				atomic {
					tree[a] = from; vlsn = from;
					if :: n == 2 -> tree[1] = from + 1; vlsn = from + 1 :: else fi
				}
#ifdef VISIBLE_FIRST
				syncLog(ok);
#endif
#ifndef RELAXED
				if
				:: ok -> ack(from); if :: n == 2 -> ack(from + 1) :: else fi
				:: !ok
				fi
#endif
			fi
		fi;
		turn = false
	} unless { down }
}

/* A write under the CAS committer, to key a. */
proctype Swapper(byte a) {
	byte to, n; bool ok;
	{
#ifndef NO_STRIPE
		lock(stripe[a]);
#endif
		lock(turn);
		if
		:: poisoned -> turn = false
		:: else ->
			atomic { written++; n = written; keyOf[n] = a }
			syncLog(ok);
			turn = false;
			if
			:: !ok
			:: ok ->
				atomic { MUST(C4, tree[a] < n); tree[a] = n }
				atomic {
					swapped[n] = true;
					do
					:: low + 1 < LSNS && swapped[low + 1] -> low++; swapped[low] = false
					:: else -> break
					od
				}
				ack(n)
			fi
		fi;
		stripe[a] = false
	} unless { down }
}

inline lastOf(key, upTo, out) {
	out = 0;
	for (i : 1 .. LSNS - 1) { if :: i <= upTo && keyOf[i] == key -> out = i :: else fi }
	i = 0
}

inline syncFolder() {
	atomic {
		for (k : 1 .. NUMS - 1) {
			if :: gName[k] == SEEN -> gName[k] = FIRM :: gName[k] == GOING -> gName[k] = NONE :: else fi
		}
		k = 0
	}
}

inline syncSlots() {
#ifdef NO_SLOT_SYNC
	skip
#else
	atomic {
		for (k : 0 .. SLOTS - 1) { soft[k] = false; sWas[k] = 0 }
		k = 0
	}
#endif
}

/* Removes the node files that neither kept checkpoint names. */
inline tidy() {
	for (k : 1 .. NUMS - 1) {
		if
		:: !(last != 0 && k == mGen[last]) && !(prev != 0 && k == mGen[prev]) && (gName[k] == SEEN || gName[k] == FIRM) -> gName[k] = GOING
		:: else
		fi
	}
}

proctype Checkpointer(byte times) {
	byte to, v0, v1, covered, num, gen, st; bool ok, whole;
	{
		do
		:: times == 0 || poisoned -> break
		:: else ->
			times--;
#ifdef CAS
#ifndef ROOT_FIRST
			covered = low;
#endif
			atomic { v0 = tree[0]; v1 = tree[1] }
#ifdef ROOT_FIRST
			covered = low;
#endif
#else
			atomic { v0 = tree[0]; v1 = tree[1]; covered = vlsn }
#endif
#ifdef FRONTIER
			covered = written;
#endif
			if
			:: (last != 0 && mCovered[last] == covered) || covered == 0 -> skip
			:: else ->
				ok = true;
#ifdef RELAXED
#ifndef NO_LOG_SYNC
				syncLog(ok);
#endif
#endif
				if
				:: !ok -> break
				:: ok
				fi;
				atomic { /* blocks: a new file, or the end of the one there is */
					if
					:: whole = true
					:: last != 0 -> whole = false
					fi;
					stamp++; st = stamp;
#ifdef REUSE_NAMES
					num = last + 1;
					gen = (last == 0 -> 1 : (whole -> mGen[last] + 1 : mGen[last]));
#else
					freshNum++; num = freshNum;
					if :: whole -> freshGen++; gen = freshGen :: else -> gen = mGen[last] fi;
#endif
					assert(num < NUMS && gen < NUMS && st < NUMS);
					if
					:: whole -> gName[gen] = SEEN; gHas[gen] = 1 << st; gSynced[gen] = 0
					:: else -> gHas[gen] = gHas[gen] | (1 << st)
					fi
				}
#ifndef NO_NODE_SYNC
				gSynced[gen] = gHas[gen];
#endif
#ifndef NO_FOLDER_SYNC
				if :: whole -> syncFolder() :: else fi;
#endif
				atomic { /* over a manifest that is not needed */
#ifdef ONE_SLOT
					c = 0;
#else
					c = 0;
					do
					:: sNum[c] != 0 && (sNum[c] == last || sNum[c] == prev) -> c++
					:: else -> break
					od;
#endif
					sWas[c] = (soft[c] -> sWas[c] : sNum[c]); sNum[c] = num; soft[c] = true;
					c = 0;
					mGen[num] = gen; mStamp[num] = st;
					mCovered[num] = covered; mVal0[num] = v0; mVal1[num] = v1
				}
#ifndef RECLAIM_EARLY
				syncSlots();
#endif
				atomic {
					lastOf(0, covered, e); lastOf(1, covered, c);
					MUST(C5, v0 >= e && v1 >= c);
					e = 0; c = 0; v0 = 0; v1 = 0; to = 0; st = 0;
					prev = last; last = num;
					tidy();
					k = 0; num = 0; gen = 0
				}
				atomic {
					if
					:: prev != 0 ->
#ifdef RECLAIM_LAST
						reclaimed = mCovered[last]
#else
						reclaimed = (mCovered[prev] < mCovered[last] -> mCovered[prev] : mCovered[last])
#endif
					:: else
					fi
				}
#ifdef RECLAIM_EARLY
				syncSlots();
#endif
			fi
		od
	} unless { down }
}

/* A name after the crash: what was synced stays, the rest is drawn. */
inline settle(name) {
	if
	:: name == SEEN || name == GOING -> if :: name = NONE :: name = FIRM fi
	:: else
	fi
}

byte was[2];	/* what was visible at the end */
#define there(name) (name == SEEN || name == FIRM)
#define read(n) (sNum[0] == n || sNum[1] == n || sNum[2] == n)

/* A power cut keeps any of the unsynced records, and the log is read up to
 * the first that is missing. A kill takes nothing, and makes nothing durable. */
inline crash() {
	was[0] = tree[0]; was[1] = tree[1];
	if
	:: e = written
	:: e = firm;
		do
		:: e < written -> e++
		:: break
		od;
		for (k : 1 .. NUMS - 1) {
			settle(gName[k])
		}
		for (k : 0 .. SLOTS - 1) { /* the new manifest, the old one, or a torn sector */
			if
			:: soft[k] -> if :: skip :: sNum[k] = sWas[k] :: sNum[k] = 0 fi
			:: else
			fi;
			soft[k] = false; sWas[k] = 0
		}
	fi
}

/* The newest node file is lost, if the checkpoint before has another one. */
inline damage() {
#ifdef DAMAGE
	c = 0; g = 0;
	for (i : 1 .. NUMS - 1) {
		k = NUMS - i;
		if
		:: read(k) && c != 0 && g == 0 -> g = k
		:: read(k) && c == 0 && there(gName[mGen[k]]) -> c = k
		:: else
		fi
	}
	if
	:: !damaged && g != 0 && mGen[g] != mGen[c] && there(gName[mGen[g]]) -> damaged = true; gName[mGen[c]] = NONE
	:: skip
	fi;
	c = 0; g = 0
#else
	skip
#endif
}

inline recover() {
	last = 0; prev = 0; freshNum = 0; freshGen = 0;
	damage();
	for (i : 1 .. NUMS - 1) {
		k = NUMS - i; /* the newest first */
		if :: there(gName[k]) && k > freshGen -> freshGen = k :: else fi;
		if
		:: read(k) ->
			if :: k > freshNum -> freshNum = k :: else fi;
			if :: mGen[k] > freshGen -> freshGen = mGen[k] :: else fi;
			if
			:: last != 0 && prev == 0 -> prev = k
			:: last == 0 && there(gName[mGen[k]]) -> last = k
			:: else /* older than what is kept, or passed over */
			fi
		:: else
		fi
	}
	tidy();
	tree[0] = 0; tree[1] = 0; c = 0;
	if
	:: last != 0 ->
		c = mCovered[last];
		MUST(K6, (gHas[mGen[last]] & (1 << mStamp[last])) != 0);
		MUST(K1, (gSynced[mGen[last]] & (1 << mStamp[last])) != 0);
		tree[0] = mVal0[last]; tree[1] = mVal1[last]
	:: else
	fi;
	MUST(K2, reclaimed <= c);
	MUST(K7, e >= c && tree[0] <= e && tree[1] <= e);
	for (i : 1 .. LSNS - 1) { if :: i > c && i <= e -> tree[keyOf[i]] = i :: else fi }
	lastOf(0, e, c); MUST(C2, tree[0] == c);
	lastOf(1, e, c); MUST(C2, tree[1] == c);
	for (i : 1 .. LSNS - 1) {
		MUST(C1, !acked[i] || i <= e);
		if :: i > e -> keyOf[i] = 0 :: else fi
	}
#ifndef RELAXED
	MUST(C1, tree[0] >= was[0] && tree[1] >= was[1])
#endif
}

inline restart() {
	low = e; vlsn = e; written = e; durable = e;
#ifndef NO_OPEN_SYNC
	firm = e;
#endif
	turn = false; stripe[0] = false; stripe[1] = false; poisoned = false; sticky = false;
	was[0] = 0; was[1] = 0;
	for (i : 1 .. LSNS - 1) { swapped[i] = false; if :: i <= e -> acked[i] = true :: else fi } /* shown is promised */
	for (k : 1 .. NUMS - 1) { /* forget what nothing can ask for */
		if :: !read(k) && sWas[0] != k && sWas[1] != k && sWas[2] != k -> mGen[k] = 0; mStamp[k] = 0; mCovered[k] = 0; mVal0[k] = 0; mVal1[k] = 0 :: else fi;
		if :: gName[k] == NONE -> gHas[k] = 0; gSynced[k] = 0 :: else fi
	}
	k = 0; i = 0; c = 0; e = 0;
	down = false
}

init {
	atomic {
#ifdef CAS
		run Checkpointer(1);
		run Swapper(0); run Swapper(0); run Swapper(1)
#else
		run Checkpointer(2);
		run Leader(0, 2); run Leader(0, 1)
#endif
	}
	down = true;	/* at any moment: the others may have come anywhere */
	_nr_pr == 1;
	atomic { crash(); recover(); restart() }
	atomic {
		run Checkpointer(1);
#ifdef CAS
		run Swapper(1)
#else
		run Leader(1, 1)
#endif
	}
	down = true;
	_nr_pr == 1;
	atomic { crash(); recover() }
}
