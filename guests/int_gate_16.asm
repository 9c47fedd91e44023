; question:  How did the 80286, the first processor with rings, do a system call?
; answer:    As every later one, in words: SS, SP, FLAGS, CS and IP on the stack that SS0:SP0 of a 16-bit TSS names.
;            Only gate and TSS are smaller.
; run:       emu run guests/int_gate_16.asm --trace checks
; mechanism: interrupt gate
; bits:      16
; enter:     int
; leave:     iret
; exit:      0
;
; Volume 3, "Mixing 16-Bit and 32-Bit Code", and "Task Management", 16-Bit Task-State Segment (TSS).

%include "lib/protected_mode_16.inc"

ring0
main:
        set_gate 0x80, witness, INTERRUPT_GATE_16 | FROM_RING3
        enter_ring3 program

; The first trip: look at everything the processor did.
witness:
        mov     ax, cs
        expect  ax, KERNEL_CODE, 1
        mov     ax, ss
        expect  ax, KERNEL_DATA, 2              ; SS0 of the TSS
        expect  sp, KERNEL_SP - 5 * 2, 3        ; SP0 of the TSS
        mov     bp, sp                          ; 16-bit addresses cannot be formed from SP
        expect  word [bp + 0], program.first, 4 ; IP: after INT, not at it
        expect  word [bp + 2], USER_CODE, 5     ; CS with its RPL 3: the only memory of where we came from
        expect  word [bp + 6], USER_SP, 6
        expect  word [bp + 8], USER_DATA, 7
        mov     ax, [bp + 4]
        and     ax, FLAG_IF
        expect  ax, FLAG_IF, 8                  ; FLAGS are saved before IF is cleared
        pushf
        pop     ax
        and     ax, FLAG_IF
        expect  ax, 0, 9                        ; an interrupt gate clears IF
        mov     ax, KERNEL_DATA                 ; IRET gave ring 3 null data segments: the old ones had DPL 0
        mov     ds, ax
        set_gate 0x80, handler, INTERRUPT_GATE_16 | FROM_RING3
        iret

; All other trips: nothing but the transition.
handler:
        iret

ring3
program:
        int     0x80
.first: mov     ax, cs
        expect  ax, USER_CODE, 10
        mov     ax, ss
        expect  ax, USER_DATA, 11
        expect  sp, USER_SP, 12

        mov     ebx, ROUNDS                     ; the 80386 lets 16-bit code use 32-bit registers
.round: int     0x80
        dec     ebx
        jnz     .round
        exit_ok
