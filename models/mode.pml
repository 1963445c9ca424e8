/* Changes of mode under traffic: off, transactional, fold, and what each save does
 * that has read the mode before or after. docs/screening.md, sections 10 and 11.
 *
 * One study and one family. The two saves go by the mode that they have read. A worker
 * drains, an owner changes the mode twice and may die once, at any step (then the same
 * call is made again). Time is the waiting rule alone: when the wait is over, whoever may
 * have read the old mode has its write behind it, or finds that its deadline has passed.
 *
 * invariants
 *   S6  code Store.Read  test TestOverlayEqualsRecountAtAnyTime
 *       what is served is the recount
 *   S12  code Store.SetMode  test TestModesUnderTraffic
 *       the same once a transition has ended, and then it is served
 *   S15  code Store.publish  test TestRebuildWhileSavesGoOn
 *       a rebuild publishes the recount
 *
 * variants
 *   REBUILDER  somebody rebuilds the family when it pleases him, and the owner lives
 *   OWNERS     the first change has a second owner, which may sleep as long as it likes
 */

/* switches of the unsafe twins:
 * NO_WAIT         the owner does not wait
 * NO_DEADLINE     a save does not look at the clock before it writes
 * NO_RESTATE      guards stay as they are when the mode comes from off or goes there
 * ANYONE          REBUILDER: a family may be rebuilt while its project is on its way from off
 * STALE_OWNER     OWNERS: an owner does not ask whether the transition is still its own
 * NO_LEDGER       a rebuild publishes what it found first
 */

#define ATTEMPTS 1

bool S6 = true, S12 = true, S15 = true;
#define MUST(name, cond) name = (cond); assert(name)

mtype = { NONE, OFF, TRANSACTIONAL, FOLD, STALE, REBUILDING, SERVING };

/* The study. */
byte version = 1, contribution, pending;
/* The control row. Booked is the sum of the ledger. */
byte control = 1, epoch = 1, booked, transition;	/* the epoch of the one under way, or 0 */
mtype mode, from;
/* Guard and row. */
mtype guard;
byte guardVersion, guardEpoch = 1, row;

/* Time. Saves that may have read the old mode, that are sent, that are too late. */
byte began, old, sent, late;
#define me(i) (1 << (i))
#define is(set) ((set) & me(i))

byte saving;
#ifdef REBUILDER
byte deaths;
#else
byte deaths = 1;	/* of an owner */
#endif

#define exact (contribution == row + pending)
#define served (mode != OFF && guard == SERVING)
inline check() {
	MUST(S12, transition || !served || exact);
	MUST(S6, !served || exact)
}

proctype Saver(byte i) {
	byte v, c, p, n, cv, gv;
	mtype m = NONE, g = NONE;
	do
	:: n == ATTEMPTS -> break
	:: else ->
		n++;
		d_step { began = began | me(i) }
		if
		:: m = mode; d_step { v = version; c = contribution; p = pending }
		:: d_step { v = version; c = contribution; p = pending } m = mode
		fi;
		if
		:: m == TRANSACTIONAL ->
			d_step { m = mode; cv = control; g = guard; gv = guardVersion } /* its snapshot */
			d_step {
				if
				:: m == TRANSACTIONAL && version == v && control == cv && (g != SERVING || guardVersion == gv) ->
					version++; contribution++; booked++; control++;
					if :: g == SERVING -> row++; guardVersion++ :: else fi;
					n = ATTEMPTS;
					check()
				:: else
				fi
			}
		:: m != TRANSACTIONAL ->
			/* the deadline, and off it goes */
			d_step {
#ifdef NO_DEADLINE
				sent = sent | me(i)
#else
				if
				:: is(late) -> n = ATTEMPTS
				:: else -> sent = sent | me(i)
				fi
#endif
			}
			if
			:: d_step { is(sent) ->
				if
				:: version == v ->
					version++; contribution = c + 1; pending = p;
					if :: m == FOLD -> pending++ :: else fi;
					n = ATTEMPTS;
					check()
				:: else
				fi }
			:: true /* lost on its way */
			fi
		fi;
		d_step {
			began = began & ~me(i); old = old & ~me(i); sent = sent & ~me(i); late = late & ~me(i);
			v = 0; c = 0; p = 0; m = NONE; g = NONE; cv = 0; gv = 0
		}
	od;
	skip;
	d_step { n = 0; saving-- }
}

/* A batch of the worker: read, and commit or lose. */
inline batch() {
	cv = control;
	d_step { n = pending; g = guard; gv = guardVersion }
	d_step {
		if
		:: n > 0 && pending >= n && control == cv && (g != SERVING || guardVersion == gv) ->
			version++; pending = pending - n; booked = booked + n; control++;
			if :: g == SERVING -> row = row + n; guardVersion++ :: else fi;
			check()
		:: else
		fi;
		cv = 0; n = 0; g = NONE; gv = 0
	}
}

proctype Worker() {
	byte cv, n, gv;
	mtype g = NONE;
	do
	:: pending > 0 -> batch()
	:: saving == 0 && pending == 0 -> break
	od
}

/* The owner of a transition says which it is; 0 is anybody. Over says that it was
 * published, or refused. */
inline rebuild(own) {
	do
	:: /* out of service */
		d_step { gv = guardVersion; ge = guardEpoch }
		d_step {
#ifdef STALE_OWNER
			over = (mode == OFF);
#else
#ifdef ANYONE
			over = (mode == OFF || own && transition != own);
#else
			over = (mode == OFF || own && transition != own || !own && transition && from == OFF);
#endif
#endif
		}
		if :: over -> break :: else fi;
		d_step {
			over = (guardVersion != gv);
			if :: !over -> guard = REBUILDING; guardVersion++ :: else fi
		}
		if
		:: over
		:: d_step { !over && own && deaths > 0 -> deaths--; over = true }	/* and the same call again */
		:: !over ->
			d_step { n = contribution - pending; at = booked }	/* the foundation, at one timestamp */
			do
			:: over -> break
			:: else ->
				d_step { cv = control; more = booked - at }
				d_step {
					if
					:: control != cv
					:: control == cv && (guard != REBUILDING || guardEpoch != ge) -> over = true
					:: else ->
						control++; guard = SERVING; guardVersion++;
#ifdef NO_LEDGER
						row = n;
#else
						row = n + more;
#endif
						over = true; published = true;
						MUST(S15, exact);
						check()
					fi;
					cv = 0; more = 0
				}
			od
		fi;
		skip;
		d_step { n = 0; at = 0; ge = 0; gv = 0; over = false }
		if :: published -> break :: else fi
	od;
	skip;
	d_step { n = 0; at = 0; ge = 0; gv = 0; over = false; published = false }
}

proctype Rebuilder() {
	byte cv, n, gv, ge, at, more;
	bool over, published;
	rebuild(0)
}

/* Two changes, or as many as there are targets. */
proctype Owner(mtype to, next, last) {
	byte cv, n, gv, ge, at, more, mine;
	bool over, published;
	mtype g = NONE, before = NONE;
	do
	:: to == NONE -> break
	:: else ->
		d_step {
			before = from; mine = transition;
			if
			:: transition && mode != to -> mine = 0	/* refused: let that end first */
			:: transition && mode == to
			:: !transition && mode == to
			:: else ->
				from = mode; before = mode; mode = to; epoch++; control++; transition = epoch; mine = epoch;
				guardEpoch = epoch; guardVersion++;
#ifndef NO_RESTATE
				if :: from == OFF || mode == OFF -> guard = STALE :: else fi;
#endif
				old = began;
				check()
			fi
		}
		if
		:: mine == 0
		:: mine != 0 ->
#ifndef NO_WAIT
			d_step { (sent & old) == 0 -> late = late | old };
#endif
			if
			:: before != OFF ->
				do
				:: pending > 0 -> batch()
				:: pending == 0 -> break
				od
			:: else -> rebuild(mine)
			fi;
			skip;
			d_step {
				if
#ifdef STALE_OWNER
				:: transition && mode == to ->
#else
				:: transition == mine ->
#endif
					transition = 0; control++;
					MUST(S12, mode == OFF || guard != STALE);
					check();
					mine = 0
				:: else
				fi
			}
		fi;
		if
		:: to = next; next = last; last = NONE
		:: d_step { deaths > 0 -> deaths-- }	/* died on the way: the same call again */
		fi;
		d_step { mine = 0; before = NONE }
	od
}

init {
	atomic {
#ifdef OWNERS
		mode = OFF; guard = STALE;
		run Owner(FOLD, OFF, FOLD); run Owner(FOLD, NONE, NONE);
		saving = 1; run Saver(0);
#else
		if
		:: mode = OFF; guard = STALE;
			if :: run Owner(FOLD, OFF, NONE) :: run Owner(TRANSACTIONAL, FOLD, NONE) :: run Owner(FOLD, TRANSACTIONAL, NONE) fi
		:: mode = TRANSACTIONAL; guard = SERVING;
			if :: run Owner(OFF, FOLD, NONE) :: run Owner(FOLD, OFF, NONE) :: run Owner(FOLD, TRANSACTIONAL, NONE) fi
		:: mode = FOLD; guard = SERVING;
			if :: run Owner(OFF, FOLD, NONE) :: run Owner(OFF, TRANSACTIONAL, NONE) :: run Owner(TRANSACTIONAL, OFF, NONE) fi
		fi;
		saving++; run Saver(0);
#ifdef REBUILDER
		run Rebuilder();
#else
		saving++; run Saver(1);
#endif
#endif
		run Worker()
	}
}
