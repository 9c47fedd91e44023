#!/bin/sh
# build.sh OUT: makes the kernel, an ELF32 file for Multiboot loaders.
#
#   tests/kernel/build.sh kernel.elf
#   qemu-system-x86_64 -kernel kernel.elf -display none -debugcon stdio -no-reboot -cpu max,vendor=GenuineIntel
set -eu
[ $# -eq 1 ] || { echo "usage: $0 OUT" >&2; exit 2; }

here=$(dirname "$0")
elf64=$(mktemp)
trap 'rm -f "$elf64"' EXIT

# -mgeneral-regs-only: nobody sets up the floating-point state. -mno-red-zone: handlers of ring 0 may share the stack.
"${CXX:-g++}" -std=c++20 -O2 -Wall -Wextra -Werror -masm=intel \
    -m64 -ffreestanding -fno-exceptions -fno-rtti -fno-pic -fno-stack-protector -fno-asynchronous-unwind-tables \
    -fcf-protection=none -mno-red-zone -mgeneral-regs-only \
    -nostdlib -static -no-pie -Wl,-T,"$here/link.ld" -Wl,--build-id=none,-z,noexecstack \
    -o "$elf64" "$here/boot.S" "$here/mechanisms.S" "$here/main.cpp"

# Multiboot 1 loaders want ELF32, even around 64-bit code. All addresses fit.
objcopy -O elf32-i386 "$elf64" "$1"
