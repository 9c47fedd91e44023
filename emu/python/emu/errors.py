"""The one exception type of emu."""


class EmuError(Exception):
    """Something that emu was asked for and cannot do. The message is one sentence that says what, and what to do."""
