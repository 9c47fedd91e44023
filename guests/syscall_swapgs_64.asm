; question:  How does a kernel get a stack after SYSCALL, when no register is free?
; answer:    SWAPGS exchanges GS.base with IA32_KERNEL_GS_BASE. GS: then reaches memory of this processor, where RSP of
;            ring 3 is saved and RSP of ring 0 is found. On the way out the same, backwards. Linux does it this way.
; run:       emu run guests/syscall_swapgs_64.asm --trace checks
; mechanism: syscall, swapgs, stack
; bits:      64
; enter:     syscall
; leave:     sysret
; exit:      0
;
; Volume 2, SWAPGS; SYSCALL; SYSRET. Compare with guests/syscall_64.asm, the bare transition.

%include "lib/long_mode.inc"

STAR_HIGH       equ USER_CODE_32 << 16 | KERNEL_CODE    ; see guests/syscall_64.asm

; What the kernel keeps per processor, as offsets from GS.base.
USER_RSP        equ 0
KERNEL_RSP      equ 8

ring0
main:
        mov     ecx, IA32_EFER
        rdmsr
        or      eax, EFER_SCE
        wrmsr
        mov     ecx, IA32_STAR
        xor     eax, eax
        mov     edx, STAR_HIGH
        wrmsr
        write_msr IA32_LSTAR, witness
        write_msr IA32_FMASK, FLAG_IF
        mov     qword [PROCESSOR_DATA + KERNEL_RSP], KERNEL_STACK
        write_msr IA32_KERNEL_GS_BASE, PROCESSOR_DATA
        write_msr IA32_GS_BASE, thread          ; ring 3 uses GS too, for its own purposes
        enter_ring3 program

%macro enter_kernel 0
        swapgs                                  ; first of all: until then, GS: is memory of ring 3
        mov     [gs:USER_RSP], rsp
        mov     rsp, [gs:KERNEL_RSP]
%endmacro

%macro leave_kernel 0
        mov     rsp, [gs:USER_RSP]
        swapgs                                  ; one too few or too many raises no fault here, only much later
        o64 sysret
%endmacro

; The first trip: look at what the entry did. Now there is a stack.
witness:
        enter_kernel
        expect  rsp, KERNEL_STACK, 1
        push    rcx
        push    r11
        expect  qword [gs:USER_RSP], USER_STACK, 2
        expect  qword [rsp + 8], program.first, 3
        mov     ecx, IA32_GS_BASE
        rdmsr
        expect  eax, PROCESSOR_DATA, 4
        mov     ecx, IA32_KERNEL_GS_BASE
        rdmsr
        expect  eax, thread, 5                  ; waits here, to come back
        write_msr IA32_LSTAR, handler
        pop     r11
        pop     rcx
        leave_kernel

; All other trips: a stack is taken and given back, otherwise nothing but the transition.
handler:
        enter_kernel
        leave_kernel

THREAD          equ 0x0000C0DE              ; any value ring 3 can recognise

ring3
program:
        expect  dword [gs:0], THREAD, 6
        syscall
.first: mov     eax, cs
        expect  eax, USER_CODE, 7
        expect  rsp, USER_STACK, 8
        expect  dword [gs:0], THREAD, 9     ; GS of ring 3 is back

        mov     ebx, ROUNDS
.round: syscall
        dec     ebx
        jnz     .round
        exit_ok

thread: dd      THREAD
