/* The fold protocol: saves that leave an entry in the study, workers that fold
 * entries into the row, retries, duplicates. docs/screening.md, sections 3, 7, 9 and 10.
 *
 * One study and one row. Every save adds one to the study and owes one to the row. A
 * study remembers its last operation only, so that one more save makes the receipt
 * the only witness. Operation 1 is submitted twice, once as a resubmission. A
 * worker's transaction holds what it has written until it commits; what it has staged nobody
 * sees, so its last commands are one step, and a kill before the commit undoes it.
 *
 * Three things each keep an entry from being folded twice: the filter on its
 * id, the control row read before the study, and the receipt whose id is the entry's. The variants take
 * away two at a time. An entry without a readable id has the second alone, and one that a drop
 * took away meanwhile the first alone.
 *
 * invariants
 *   S1  code Store.filter  test TestASaveThatLostDoesNotWrite
 *       no write to a study loses another
 *   S2  code Store.take  test TestAFoldBetweenLoadAndWriteIsAFreeRetry
 *       version less folds counts what was not a fold
 *   S3  code Study.carry  test TestBudgetFold
 *       a change comes with its entry
 *   S4  code judge  test TestOverlayEqualsRecountAtAnyTime
 *       the study is its folded part and its pending entries
 *   S5  code Store.foldBatch  test TestTheWorkerSurvivesAKillAtAnyCommand
 *       an entry is pending, or has a receipt, or is gone (dropped, in quarantine): one of them at any time (W1, W3)
 *   S6  code Store.Read  test TestOverlayEqualsRecountAtAnyTime
 *       row and pending entries read at one timestamp are the recount of that timestamp
 *   F3  code moved  test TestAFoldBetweenLoadAndWriteIsAFreeRetry
 *       a retry is free if and only if folds alone moved the study
 *   F4  code Store.load  test TestAFoldCannotHideADuplicate
 *       an operation is saved once, if its second submission says that it is one or has
 *       loaded the study before the first was saved (F5)
 *   W2  code Store.take  test TestTwoWorkersFoldEachEntryOnce
 *       a study counts the entries that it has
 *   W4  code judge  test TestAnEntryThatCannotBeFoldedIsQuarantined
 *       an entry that cannot be read goes to quarantine, once (W6)
 *
 * variants
 *   JUNK      the study begins with an entry that cannot be read
 *   DROP      entries are dropped meanwhile
 *   CONTROL_LATE, NO_ENTRY_FILTER, NO_UNIQUE   two of the three are right as well, without JUNK and DROP
 */

/* switches of the unsafe twins:
 * IGNORE_VERSION   a save is written whatever the version is
 * SPLIT            the entry is written after the change
 * VERSION_ONLY     a retry is free if the version has moved
 * NO_FOLDS         a fold raises the version alone
 * RECEIPT_FIRST    receipts are read before the study and not after it
 * CONTROL_LATE     the control row is read after the study
 * NO_ENTRY_FILTER  a worker does not ask whether the entries are still there
 * NO_UNIQUE        a receipt may be there twice
 * EMPTY            a worker empties the pending set, instead of removing what it has read
 * RECEIPT_APART    receipts are written in a second transaction
 * ROWS_LATER       entries are removed in a first transaction, rows follow
 * DISCARD          JUNK: an entry that cannot be read is removed
 * NO_TIMESTAMP     row and pending entries are read one after the other
 */

#if defined(JUNK) || defined(DROP) || defined(CONTROL_LATE) || defined(NO_ENTRY_FILTER) || defined(NO_TIMESTAMP)
#define SAVERS 2	/* no resubmission: these are not about saves */
#else
#define SAVERS 3
#endif
#define IDS 4
#define ATTEMPTS 2
#define FREE 1

bool S1 = true, S2 = true, S3 = true, S4 = true, S5 = true, S6 = true, F3 = true, F4 = true, W2 = true, W4 = true;
#define MUST(name, cond) name = (cond); assert(name)

/* The study. A set of entries has a bit for each; JUNKED is the one without an id. */
#define JUNKED 128
#ifdef JUNK
byte pending = JUNKED, pendingCount = 1;
#else
byte pending, pendingCount;
#endif
byte version = 1, folds, contribution, recent;
/* The rest of the database. */
byte row, control = 1, receipts, junk;	/* junk: how often it is in quarantine */
bool epoch;				/* raised by the drop, which makes the row stale */
byte studyHeld, controlHeld;		/* by the transaction of a worker */

byte op[IDS], entries;			/* all that were ever written */
byte old, gone;				/* those of the first epoch; dropped or in quarantine */
byte writes, saves, landed[3], saving;		/* what has happened, for the invariants */

#define bit(i, set) (((set) >> (i)) & 1)
#define size(set) (bit(0, set) + bit(1, set) + bit(2, set) + bit(3, set) + bit(7, set))
#define named(set) ((set) & 127)
#define has(o, set) ((bit(0, set) && op[0] == o) || (bit(1, set) && op[1] == o) || (bit(2, set) && op[2] == o) || (bit(3, set) && op[3] == o))

/* In every committed state. */
inline check() {
	MUST(S1, version == 1 + writes && contribution == saves);
	MUST(S2, version == 1 + folds + saves);
	MUST(S3, contribution == entries);
	MUST(S5, (named(pending) & receipts) == 0 && (gone & (pending | receipts)) == 0 && (named(pending) | receipts | gone) == (1 << entries) - 1);
	MUST(S4, epoch || contribution == row + size(named(pending)));
#ifdef JUNK
	MUST(W4, junk + bit(7, pending) == 1);
#endif
	MUST(W2, pendingCount == size(pending))
}

proctype Saver(byte o; bool resubmission) {
	byte v, f, c, p, charged, free, lastV, lastF, lastSaves;
	bool e, seen, known, again, late, isFree;
	do
	:: /* round 1, and after it what F4 asks for */
#ifdef RECEIPT_FIRST
		known = has(o, receipts);
#else
		if :: charged + free > 0 -> known = has(o, receipts) :: else fi;
#endif
#ifdef DROP
		e = epoch;
#endif
		d_step {
			v = version; f = folds; c = contribution; p = pending;
			seen = (recent == o || has(o, p));
			if
			:: charged + free > 0 ->
				again = (f > lastF);
#ifdef VERSION_ONLY
				isFree = (v != lastV && free < FREE);
#else
				isFree = (v - lastV == f - lastF && free < FREE);
#endif
				MUST(F3, isFree == (saves == lastSaves && free < FREE));
				if :: isFree -> charged--; free++ :: else fi
			:: else ->
				again = resubmission;
				late = (!resubmission && landed[o] > 0)
			fi;
			lastV = v; lastF = f; lastSaves = saves; isFree = false
		}
		if
		:: charged >= ATTEMPTS || seen || known -> break
		:: else
		fi;
#ifndef RECEIPT_FIRST
		if :: again -> known = has(o, receipts) :: else fi;
		if :: known -> break :: else fi;
#endif
		skip; /* round 2 */
		d_step { studyHeld == 0 ->
			charged++;
			if
#ifdef IGNORE_VERSION
			:: true ->
#else
			:: version == v ->
#endif
				landed[o]++; saves++;
				writes++; version = v + 1; folds = f; contribution = c + 1; recent = o;
				charged = 0; free = 0;
#ifdef SPLIT
				pending = p; pendingCount = size(p);
#else
				op[entries] = o; pending = p | (1 << entries);
				if :: !e -> old = old | (1 << entries) :: else fi;
				entries++; pendingCount = size(pending);
#endif
				check();
				MUST(F4, landed[o] == 1 || late)
			:: else
			fi;
			c = 0; p = 0; e = false; v = 0; f = 0
		}
		if :: charged + free == 0 -> break :: else fi
	od;
	skip;
#ifdef SPLIT
	d_step { op[entries] = o; pending = pending | (1 << entries); entries++; pendingCount++; check() }
#endif
	d_step { saving--; v = 0; f = 0; c = 0; p = 0; charged = 0; free = 0; lastV = 0; lastF = 0; lastSaves = 0; e = false; seen = false; known = false; again = false; late = false }
}

/* Killed at any command and started again, for as long as there is something to fold. */
proctype Worker() {
	byte c, p, good, r;
	bool e;
	do
	:: pendingCount > 0 ->
#ifdef CONTROL_LATE
		p = pending;
		d_step { c = control; e = epoch }
#else
		d_step { c = control; e = epoch }
		p = pending;
#endif
		d_step { good = named(p) & ~(e -> old : 0); r = row }
		/* the transaction: the study first */
		d_step { studyHeld == 0 ->
			if
#ifdef NO_ENTRY_FILTER
			:: p != 0 -> studyHeld = _pid
#else
			:: p != 0 && (named(p) & ~pending) == 0 -> studyHeld = _pid
#endif
			:: else
			fi
		}
		if
		:: studyHeld != _pid
		:: studyHeld == _pid -> studyHeld = 0 /* killed; or lost */
		:: d_step { studyHeld == _pid && controlHeld == 0 && control == c -> controlHeld = _pid }
		fi;
		if
		:: controlHeld != _pid
		:: d_step { controlHeld == _pid -> controlHeld = 0; studyHeld = 0 } /* killed */
		:: d_step { controlHeld == _pid ->
			controlHeld = 0; studyHeld = 0;
			if
#ifndef NO_UNIQUE
			:: (good & receipts) != 0 -> good = 0; r = 0 /* aborted */
#endif
			:: else ->
				control++; writes++; version++;
#ifndef NO_FOLDS
				folds++;
#endif
#ifdef EMPTY
				pending = 0; pendingCount = 0;
#else
				pending = pending & ~p; pendingCount = pendingCount - size(p);
#endif
				gone = gone | (named(p) & ~good);
#ifndef DISCARD
				junk = junk + bit(7, p);
#endif
#ifndef RECEIPT_APART
				receipts = receipts | good;
#endif
#ifndef ROWS_LATER
				row = r + size(good);
#endif
				check()
			fi
			}
#ifdef RECEIPT_APART
			receipts = receipts | good
#endif
#ifdef ROWS_LATER
			row = r + size(good)
#endif
		fi;
		d_step { c = 0; p = 0; good = 0; r = 0; e = false }
	:: saving == 0 && pendingCount == 0 -> break
	od
}

#ifdef DROP
proctype Dropper() {
	byte v, p;
	d_step { controlHeld == 0 -> control++; epoch = true }
	do
	:: d_step { v = version; p = pending & old }
		if
		:: p == 0 -> break
		:: d_step { p != 0 && studyHeld == 0 ->
			if
			:: version == v ->
				writes++; version++; folds++;
				pending = pending & ~p; pendingCount = size(pending);
				gone = gone | p; check()
			:: else
			fi
			}
		fi
	od
}
#endif

proctype Reader() {
#ifdef NO_TIMESTAMP
	byte r = row;
	MUST(S6, contribution == r + size(named(pending)))
#else
	d_step { MUST(S6, epoch || contribution == row + size(named(pending))) }
#endif
}

init {
	atomic {
		saving = SAVERS;
		run Saver(1, false); run Saver(2, false);
		if :: SAVERS > 2 -> run Saver(1, true) :: else fi;
		run Worker();
#ifdef DROP
		run Dropper();
#else
		run Worker();
#endif
		run Reader()
	}
}
