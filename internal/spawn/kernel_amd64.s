//go:build linux

#include "textflag.h"

#define SYS_clone 56
// CLONE_VFORK | CLONE_VM | SIGCHLD
#define FLAGS 0x4111

// func sys(trap, a1, a2, a3, a4 uintptr) int
TEXT ·sys(SB),NOSPLIT|NOFRAME,$0-48
	MOVQ	trap+0(FP), AX
	MOVQ	a1+8(FP), DI
	MOVQ	a2+16(FP), SI
	MOVQ	a3+24(FP), DX
	MOVQ	a4+32(FP), R10
	MOVQ	$0, R8
	MOVQ	$0, R9
	SYSCALL
	MOVQ	AX, ret+40(FP)
	RET

// func vfork() int
//
// The child returns first and overwrites the return address, so that is kept
// in a register, which the kernel preserves.
TEXT ·vfork(SB),NOSPLIT|NOFRAME,$0-8
	MOVQ	$SYS_clone, AX
	MOVQ	$FLAGS, DI
	MOVQ	$0, SI
	MOVQ	$0, DX
	MOVQ	$0, R10
	MOVQ	$0, R8
	POPQ	R12
	SYSCALL
	PUSHQ	R12
	MOVQ	AX, ret+0(FP)
	RET
