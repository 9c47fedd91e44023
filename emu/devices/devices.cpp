#include "devices/devices.hpp"

namespace emu {

u32 Devices::read(u16 port, u8 size) {
    u32 value = 0;
    for (u8 i = 0; i < size; ++i) value |= u32{read_byte(static_cast<u16>(port + i))} << (8 * i);
    return value;
}

Outcome Devices::write(u16 port, u8 size, u32 value) {
    if (port == exit) return Outcome::stop(StopReason::exit, static_cast<u32>(low_bits(value, 8u * size)));
    for (u8 i = 0; i < size; ++i) TRY(write_byte(static_cast<u16>(port + i), static_cast<u8>(value >> (8 * i))));
    return no_fault;
}

u8 Devices::read_byte(u16 port) {
    if (port == debug) return debug;
    if (port >= SerialPort::base && port <= SerialPort::last) return serial.read(port - SerialPort::base);
    return 0xFF;
}

Outcome Devices::write_byte(u16 port, u8 value) {
    if (port == keyboard_command && value == pulse_reset) return Outcome::stop(StopReason::reset);
    if (port == debug) text.append(value);
    if (port >= SerialPort::base && port <= SerialPort::last) serial.write(port - SerialPort::base, value);
    return no_fault;
}

Ports Devices::ports() {
    return {this, [](void* owner, u16 port, u8 size) { return static_cast<Devices*>(owner)->read(port, size); },
            [](void* owner, u16 port, u8 size, u32 value) {
                return static_cast<Devices*>(owner)->write(port, size, value);
            }};
}

}  // namespace emu
