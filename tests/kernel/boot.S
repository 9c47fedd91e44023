# From the Multiboot loader (32-bit protected mode, no paging) to C++ in long mode.
#
# Multiboot Specification 0.6.96, "OS image format" and "I386 machine state": EAX holds a magic number, A20 is
# enabled, the segments are flat, and nothing is said about GDTR, IDTR and the stack.

        .intel_syntax noprefix

        .set    HEADER_MAGIC, 0x1BADB002
        .set    HEADER_FLAGS, 0
        .set    LOADER_MAGIC, 0x2BADB002
        .set    DEBUG_PORT, 0xE9

        .section .multiboot, "a"
        .balign 4
        .long   HEADER_MAGIC, HEADER_FLAGS, -(HEADER_MAGIC + HEADER_FLAGS)

        .text
        .code32
        .globl  multiboot_entry
multiboot_entry:
        cli
        cld
        cmp     eax, LOADER_MAGIC
        jne     not_multiboot

        # 512 pages of 2 MiB: the first GiB, mapped one to one. U/S is set everywhere, since ring 3 is part of this
        # program: the kernel measures crossings and protects nothing.
        .set    PRESENT_WRITABLE_USER, 7
        .set    PAGE_SIZE_2MB, 1 << 7
        lea     eax, [page_directory_pointer_table + PRESENT_WRITABLE_USER]
        mov     [pml4], eax
        lea     eax, [page_directory + PRESENT_WRITABLE_USER]
        mov     [page_directory_pointer_table], eax
        mov     eax, PRESENT_WRITABLE_USER | PAGE_SIZE_2MB
        lea     edi, [page_directory]
.Lnext_page:
        mov     [edi], eax
        add     eax, 0x200000
        add     edi, 8
        cmp     eax, 0x40000000
        jb      .Lnext_page

        # Volume 3, "Processor Management and Initialization", Initializing IA-32e Mode.
        mov     eax, cr4
        or      eax, 1 << 5             # CR4.PAE
        mov     cr4, eax
        lea     eax, [pml4]
        mov     cr3, eax
        mov     ecx, 0xC0000080         # IA32_EFER
        rdmsr
        or      eax, 1 << 8 | 1 << 0    # LME; and SCE, without which SYSCALL is #UD
        wrmsr
        mov     eax, cr0
        or      eax, 1 << 31            # CR0.PG
        mov     cr0, eax
        lgdt    [boot_gdt_register]
        ljmp    0x08, offset long_mode

# Prints why, and stops: HLT with interrupts disabled, for ever.
not_multiboot:
        lea     esi, [not_multiboot_message]
.Lnext_character:
        mov     al, [esi]
        inc     esi
        test    al, al
        jz      .Lstop
        out     DEBUG_PORT, al
        jmp     .Lnext_character
.Lstop: hlt
        jmp     .Lstop

        .code64
long_mode:
        lea     rsp, [rip + boot_stack_top]
        call    kernel_main             # does not return
        ud2

        .section .rodata
not_multiboot_message:
        .asciz  "error: not started by a Multiboot loader (EAX is not 0x2BADB002)\n"

        # Only for the far jump above; main.cpp makes the real one, with the same descriptor at 0x08.
        .balign 8
boot_gdt:
        .quad   0
        .quad   0x00AF9B000000FFFF      # 64-bit code, DPL 0
boot_gdt_register:
        .word   boot_gdt_register - boot_gdt - 1
        .long   boot_gdt

        .bss
        .balign 4096
pml4:                           .skip 4096
page_directory_pointer_table:   .skip 4096
page_directory:                 .skip 4096
                                .skip 16384
boot_stack_top:
