//go:build linux

#include "textflag.h"

#define SYS_clone 220
// CLONE_VFORK | CLONE_VM | SIGCHLD
#define FLAGS 0x4111

// func sys(trap, a1, a2, a3, a4 uintptr) int
TEXT ·sys(SB),NOSPLIT,$0-48
	MOVD	trap+0(FP), R8
	MOVD	a1+8(FP), R0
	MOVD	a2+16(FP), R1
	MOVD	a3+24(FP), R2
	MOVD	a4+32(FP), R3
	MOVD	$0, R4
	MOVD	$0, R5
	SVC
	MOVD	R0, ret+40(FP)
	RET

// func vfork() int
//
// The return address stays in a register, where the child cannot overwrite it.
TEXT ·vfork(SB),NOSPLIT,$0-8
	MOVD	$SYS_clone, R8
	MOVD	$FLAGS, R0
	MOVD	$0, R1
	MOVD	$0, R2
	MOVD	$0, R3
	MOVD	$0, R4
	SVC
	MOVD	R0, ret+0(FP)
	RET
