// The devices of the test bench, by port. A port that nobody claims reads as ones and ignores writes.
//   0x64           keyboard controller: the command 0xFE asks for a reset of the processor
//   0xE9           debug port: a byte written appears in the output of the run; reads as 0xE9, to be found by
//   0xF4           exit: the value written is the status of the guest
//   0x3F8-0x3FF    serial port
// A wider access to a port is one access per byte to the ports that follow, as on a bus of eight bits; only the exit
// port takes its status as a whole.
#pragma once
#include "core.hpp"
#include "devices/serial_port.hpp"

namespace emu {

class Devices {
 public:
    static constexpr u16 keyboard_command = 0x64, debug = 0xE9, exit = 0xF4;
    static constexpr u8 pulse_reset = 0xFE;

    Output text;
    Output serial_text;
    SerialPort serial{serial_text};

    u32 read(u16 port, u8 size);
    Outcome write(u16 port, u8 size, u32 value);
    void reset() { serial.reset(); }
    /// The form in which the core reaches them.
    Ports ports();

 private:
    u8 read_byte(u16 port);
    Outcome write_byte(u16 port, u8 value);
};

}  // namespace emu
